/* call.c - buffers that grow and are kept, origins, the splitter and the pool of calls.
 *
 * A call owns two text buffers; `text` is one of them or the caller's source, `out` and `spare` are the rest. Growing
 * doubles, so the cost per byte is constant. The pool is a few atomic places: taking and giving back never waits. */
#include "text/call.h"

#include <stdatomic.h>

/* Calls a tokenizer keeps: more threads than this make and free their own. */
#define POOL_SIZE 16
/* A call that has grown beyond this many bytes is freed rather than kept. */
#define KEEP_BYTES ((size_t)8 << 20)

struct pith_call_pool {
    _Atomic(pith_call *) calls[POOL_SIZE];
};

static bool grow(pith_call *call, void **memory, size_t used_bytes, size_t bytes) {
    /* Once refused nothing is tried again: steps go on to the end of the text before anybody looks. */
    void *fresh = call->out_of_memory ? NULL : pith_memory_alloc(call->allocator, bytes, 64);
    if (!fresh) {
        call->out_of_memory = true;
        return false;
    }
    if (used_bytes) memcpy(fresh, *memory, used_bytes);
    pith_memory_free(call->allocator, *memory);
    *memory = fresh;
    return true;
}

bool pith_call_reserve_slow(pith_call *call, size_t more) {
    pith_text *out = &call->out;
    size_t need = out->size + more + 16;
    if (need > (size_t)PITH_TEXT_MAX * 2) {
        call->out_of_memory = true;
        return false;
    }
    size_t capacity = out->capacity ? out->capacity : 256;
    while (capacity < need) capacity *= 2;
    if (capacity > out->capacity) {
        if (!grow(call, (void **)&out->data, out->size, capacity)) return false;
        if (call->offsets &&
            !grow(call, (void **)&out->origin, out->size * sizeof *out->origin, capacity * sizeof *out->origin))
            return false;
        if (!call->offsets) {
            pith_memory_free(call->allocator, out->origin);
            out->origin = NULL;
        }
        out->capacity = capacity;
    }
    return true;
}

void pith_call_origin(pith_call *call, size_t at, size_t bytes, uint32_t from) {
    uint32_t origin = call->text.origin && !(from & PITH_ORIGIN_EMPTY) ? call->text.origin[from] : from;
    for (size_t i = 0; i < bytes; i++) call->out.origin[at + i] = origin;
}

void pith_call_copy(pith_call *call, uint32_t begin, uint32_t end) {
    if (begin == end || !pith_call_reserve(call, end - begin)) return;
    pith_text *out = &call->out;
    memcpy(out->data + out->size, call->text.data + begin, end - begin);
    if (call->offsets) {
        if (call->text.origin)
            memcpy(out->origin + out->size, call->text.origin + begin, (end - begin) * sizeof *out->origin);
        else
            for (uint32_t i = begin; i < end; i++) out->origin[out->size + i - begin] = i;
    }
    out->size += end - begin;
}

void pith_call_range(const pith_call *call, uint32_t begin, uint32_t end, uint32_t *source_begin,
                     uint32_t *source_end) {
    const uint32_t *origin = call->text.origin;
    const char *source = call->source.data;
    uint32_t b = origin ? origin[begin] : begin, e = origin ? origin[end - 1] : end - 1;
    if (b & PITH_ORIGIN_EMPTY)
        b &= ~PITH_ORIGIN_EMPTY;
    else
        while (b > 0 && (source[b] & 0xC0) == 0x80) b--;
    if (e & PITH_ORIGIN_EMPTY)
        e &= ~PITH_ORIGIN_EMPTY;
    else
        do e++;
        while (e < call->source.size && (source[e] & 0xC0) == 0x80);
    *source_begin = b;
    *source_end = e;
}

static bool grow_pieces(pith_call *call, pith_piece **pieces, size_t count, size_t *capacity) {
    size_t wanted = *capacity ? *capacity * 2 : 64;
    if (!grow(call, (void **)pieces, count * sizeof **pieces, wanted * sizeof **pieces)) return false;
    *capacity = wanted;
    return true;
}

bool pith_call_grow_pieces(pith_call *call) {
    return grow_pieces(call, &call->next, call->next_count, &call->next_capacity);
}

bool pith_call_emit_piece(pith_call *call, pith_piece piece) {
    if (call->next_count == call->next_capacity && !pith_call_grow_pieces(call)) return false;
    call->next[call->next_count++] = piece;
    return true;
}

bool pith_call_room(pith_call *call, size_t tokens) {
    size_t need = call->count + tokens;
    if (need <= call->capacity) return true;
    size_t capacity = call->capacity ? call->capacity : 256;
    while (capacity < need) capacity *= 2;
    size_t used = call->count * sizeof(int32_t), bytes = capacity * sizeof(int32_t);
    if (!grow(call, (void **)&call->ids, used, bytes) || !grow(call, (void **)&call->begin, used, bytes) ||
        !grow(call, (void **)&call->end, used, bytes) || !grow(call, (void **)&call->words, used, bytes))
        return false;
    call->capacity = capacity;
    return true;
}

void *pith_call_scratch(pith_call *call, int slot, size_t bytes) {
    if (call->scratch[slot].size >= bytes) return call->scratch[slot].data;
    if (!grow(call, &call->scratch[slot].data, 0, bytes)) return NULL;
    memset(call->scratch[slot].data, 0, bytes);
    call->scratch[slot].size = bytes;
    return call->scratch[slot].data;
}

bool pith_call_begin(pith_call *call, pith_str source, bool offsets) {
    call->source = source;
    call->offsets = offsets;
    call->source_offsets = false;
    call->word = 0;
    if (call->text.capacity) { /* a buffer of the last text */
        pith_text *home = call->out.capacity ? &call->spare : &call->out;
        *home = call->text;
    }
    call->text = (pith_text){ (char *)(uintptr_t)source.data, NULL, source.size, 0 };
    call->out.size = call->spare.size = 0;
    pith_text *own[2] = { &call->out, &call->spare };
    for (int i = 0; offsets && i < 2; i++)
        if (own[i]->capacity && !own[i]->origin &&
            !grow(call, (void **)&own[i]->origin, 0, own[i]->capacity * sizeof *own[i]->origin))
            return false;
    call->piece_count = call->next_count = 0;
    if (!call->piece_capacity && !grow_pieces(call, &call->pieces, 0, &call->piece_capacity)) return false;
    if (source.size) call->pieces[call->piece_count++] = (pith_piece){ 0, (uint32_t)source.size, -1 };
    return true;
}

void pith_call_swap_text(pith_call *call) {
    pith_text old = call->text;
    call->text = call->out;
    if (!call->offsets && call->text.origin) { /* an earlier text wanted offsets: this one has none to show */
        pith_memory_free(call->allocator, call->text.origin);
        call->text.origin = NULL;
    }
    if (call->text.data) memset(call->text.data + call->text.size, 0, 16);
    if (old.capacity)
        call->out = old;
    else {
        call->out = call->spare;
        call->spare = (pith_text){ 0 };
    }
    call->out.size = 0;
}

void pith_call_swap_pieces(pith_call *call) {
    pith_piece *pieces = call->pieces;
    size_t capacity = call->piece_capacity;
    call->pieces = call->next;
    call->piece_count = call->next_count;
    call->piece_capacity = call->next_capacity;
    call->next = pieces;
    call->next_capacity = capacity;
    call->next_count = 0;
}

/* ---- splitting ---- */

void pith_split_begin(pith_splitter *s, pith_call *call, pith_piece piece, pith_behavior behavior, bool invert) {
    *s = (pith_splitter){ call, behavior, invert, false, false, 0, 0, piece.begin, piece.end };
}

static void flush(pith_splitter *s) {
    if (s->open) pith_call_emit(s->call, s->begin, s->end);
    s->open = false;
}

/* One part of the piece, match or not. The open piece is the last one emitted, which a later part may still extend. */
static void part(pith_splitter *s, uint32_t begin, uint32_t end, bool match) {
    bool join = false;
    switch (s->behavior) {
    case PITH_SPLIT_REMOVED:
        if (!match) pith_call_emit(s->call, begin, end);
        return;
    case PITH_SPLIT_ISOLATED: pith_call_emit(s->call, begin, end); return;
    case PITH_SPLIT_CONTIGUOUS: join = match == s->last_match; break;
    case PITH_SPLIT_MERGED_WITH_PREVIOUS: join = match && !s->last_match; break;
    case PITH_SPLIT_MERGED_WITH_NEXT: join = !match && s->last_match; break;
    }
    s->last_match = match;
    if (join && s->open) {
        s->end = end;
        return;
    }
    flush(s);
    s->open = true;
    s->begin = begin;
    s->end = end;
}

void pith_split_match(pith_splitter *s, uint32_t begin, uint32_t end) {
    if (s->at != begin) part(s, s->at, begin, s->invert);
    part(s, begin, end, !s->invert);
    s->at = end;
}

void pith_split_end(pith_splitter *s) {
    if (s->at != s->stop) part(s, s->at, s->stop, s->invert);
    flush(s);
}

pith_behavior pith_json_behavior(pith_json *j) {
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous" };
    pith_str name = pith_json_string(j);
    for (int i = 0; i < 5; i++)
        if (pith_str_is(name, names[i])) return (pith_behavior)i;
    if (!j->failed) pith_json_fail(j, PITH_ERR_FORMAT, "unknown behavior \"" PITH_STR_FMT "\"", PITH_STR_ARG(name));
    return PITH_SPLIT_REMOVED;
}

/* ---- the pool ---- */

static void call_free(pith_call *call) {
    const pith_allocator *a = call->allocator;
    if (call->text.capacity) {
        pith_memory_free(a, call->text.data);
        pith_memory_free(a, call->text.origin);
    }
    pith_memory_free(a, call->out.data);
    pith_memory_free(a, call->out.origin);
    pith_memory_free(a, call->spare.data);
    pith_memory_free(a, call->spare.origin);
    pith_memory_free(a, call->pieces);
    pith_memory_free(a, call->next);
    pith_memory_free(a, call->ids);
    pith_memory_free(a, call->begin);
    pith_memory_free(a, call->end);
    pith_memory_free(a, call->words);
    for (int i = 0; i < PITH_SCRATCH_SLOTS; i++) pith_memory_free(a, call->scratch[i].data);
    pith_memory_free(a, call);
}

static size_t call_bytes(const pith_call *call) {
    size_t bytes = 5 * (call->text.capacity + call->out.capacity + call->spare.capacity) + 16 * call->capacity +
                   sizeof(pith_piece) * (call->piece_capacity + call->next_capacity);
    for (int i = 0; i < PITH_SCRATCH_SLOTS; i++) bytes += call->scratch[i].size;
    return bytes;
}

pith_call *pith_call_acquire(const pith_tokenizer *tokenizer) {
    struct pith_call_pool *pool = tokenizer->calls;
    pith_call *call = NULL;
    for (int i = 0; i < POOL_SIZE && !call; i++)
        if (atomic_load_explicit(&pool->calls[i], memory_order_relaxed)) call = atomic_exchange(&pool->calls[i], NULL);
    if (!call) {
        call = pith_memory_alloc(tokenizer->allocator, sizeof *call, 64);
        if (!call) return NULL;
        memset(call, 0, sizeof *call);
        call->tokenizer = tokenizer;
        call->allocator = tokenizer->allocator;
    }
    call->count = 0;
    call->limit = SIZE_MAX;
    call->out_of_memory = false;
    call->tokens_allocator = tokenizer->allocator;
    return call;
}

void pith_call_release(pith_call *call) {
    struct pith_call_pool *pool = call->tokenizer->calls;
    if (call_bytes(call) <= KEEP_BYTES) {
        for (int i = 0; i < POOL_SIZE; i++) {
            pith_call *empty = NULL;
            if (atomic_compare_exchange_strong(&pool->calls[i], &empty, call)) return;
        }
    }
    call_free(call);
}

bool pith_call_pool_create(pith_tokenizer *tokenizer) {
    tokenizer->calls = pith_arena_array(tokenizer->arena, 1, sizeof *tokenizer->calls);
    return tokenizer->calls;
}

void pith_call_pool_free(const pith_tokenizer *tokenizer) {
    for (int i = 0; tokenizer->calls && i < POOL_SIZE; i++) {
        pith_call *call = atomic_exchange(&tokenizer->calls->calls[i], NULL);
        if (call) call_free(call);
    }
}
