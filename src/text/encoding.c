/* encoding.c - buffers that grow and are kept, origins of bytes, the splitter, and the pool of
 * encodings.
 *
 * An encoding owns two text buffers. `text` is one of them or the caller's source; `out` and
 * `spare` are the rest. Growing doubles a buffer, so the cost per byte is constant. The pool is a
 * few atomic slots: taking and giving back never waits. */
#include "text/encoding.h"

#include <stdatomic.h>

/* Encodings that a tokenizer keeps for the next call. If more threads use it at once, the others
 * make and free their own. */
#define POOL_SIZE 16
/* An encoding that has grown beyond this many bytes is freed instead of kept, so that one huge text
 * does not hold memory. */
#define KEEP_BYTES ((size_t)8 << 20)

struct pith__encoding_pool {
    _Atomic(pith__encoding *) calls[POOL_SIZE];
};

/* Bytes of a text between two looks. Smaller: calls end sooner, and each look asks the clock. */
#define LOOK_BYTES ((size_t)16 << 10)

bool pith__encoding_look(pith__encoding *enc, size_t at) {
    enc->look = at < SIZE_MAX - LOOK_BYTES ? at + LOOK_BYTES : SIZE_MAX;
    enc->stopped = enc->stopped || pith__stop_asked(enc->stop);
    return enc->stopped;
}

static bool grow(pith__encoding *enc, void **memory, size_t used_bytes, size_t bytes) {
    /* Once refused nothing is tried again: steps go on to the end of the text before anybody looks.
     */
    void *fresh = enc->out_of_memory ? NULL : pith__memory_alloc(enc->allocator, bytes, 64);
    if (!fresh) {
        enc->out_of_memory = true;
        return false;
    }
    if (used_bytes) memcpy(fresh, *memory, used_bytes);
    pith__memory_free(enc->allocator, *memory);
    *memory = fresh;
    return true;
}

bool pith__encoding_reserve_slow(pith__encoding *enc, size_t more) {
    pith__text *out = &enc->out;
    size_t need = out->size + more + 16;
    if (need > (size_t)PITH_TEXT_MAX * 2) {
        enc->out_of_memory = true;
        return false;
    }
    size_t capacity = out->capacity ? out->capacity : 256;
    while (capacity < need) capacity *= 2;
    if (capacity > out->capacity) {
        if (!grow(enc, (void **)&out->data, out->size, capacity)) return false;
        if (enc->offsets && !grow(enc, (void **)&out->origin, out->size * sizeof *out->origin,
                                  capacity * sizeof *out->origin))
            return false;
        if (!enc->offsets) {
            pith__memory_free(enc->allocator, out->origin);
            out->origin = NULL;
        }
        out->capacity = capacity;
    }
    return true;
}

void pith__encoding_origin(pith__encoding *enc, size_t at, size_t bytes, uint32_t from) {
    uint32_t origin =
        enc->text.origin && !(from & PITH_ORIGIN_EMPTY) ? enc->text.origin[from] : from;
    for (size_t i = 0; i < bytes; i++) enc->out.origin[at + i] = origin;
}

void pith__encoding_copy(pith__encoding *enc, uint32_t begin, uint32_t end) {
    if (begin == end || !pith__encoding_reserve(enc, end - begin)) return;
    pith__text *out = &enc->out;
    memcpy(out->data + out->size, enc->text.data + begin, end - begin);
    if (enc->offsets) {
        if (enc->text.origin)
            memcpy(out->origin + out->size, enc->text.origin + begin,
                   (end - begin) * sizeof *out->origin);
        else
            for (uint32_t i = begin; i < end; i++) out->origin[out->size + i - begin] = i;
    }
    out->size += end - begin;
}

/* The span of the source that bytes [begin, end) of the text come from. An origin is a byte within
 * a character of the source; the span is widened to whole characters. An origin with
 * PITH_ORIGIN_EMPTY is a place between two characters: of text that was put in and comes from
 * nothing. */
void pith__encoding_range(const pith__encoding *enc, uint32_t begin, uint32_t end,
                          uint32_t *source_begin, uint32_t *source_end) {
    const uint32_t *origin = enc->text.origin;
    const char *source = enc->source.data;
    uint32_t b = origin ? origin[begin] : begin, e = origin ? origin[end - 1] : end - 1;
    if (b & PITH_ORIGIN_EMPTY)
        b &= ~PITH_ORIGIN_EMPTY;
    else
        while (b > 0 && (source[b] & 0xC0) == 0x80) b--;
    if (e & PITH_ORIGIN_EMPTY)
        e &= ~PITH_ORIGIN_EMPTY;
    else
        do e++;
        while (e < enc->source.size && (source[e] & 0xC0) == 0x80);
    *source_begin = b;
    *source_end = e;
}

static bool grow_pieces(pith__encoding *enc, pith__piece **pieces, size_t count, size_t *capacity) {
    size_t wanted = *capacity ? *capacity * 2 : 64;
    if (!grow(enc, (void **)pieces, count * sizeof **pieces, wanted * sizeof **pieces))
        return false;
    *capacity = wanted;
    return true;
}

bool pith__encoding_grow_pieces(pith__encoding *enc) {
    return grow_pieces(enc, &enc->next, enc->next_count, &enc->next_capacity);
}

bool pith__encoding_emit_piece(pith__encoding *enc, pith__piece piece) {
    if (enc->next_count == enc->next_capacity && !pith__encoding_grow_pieces(enc)) return false;
    enc->next[enc->next_count++] = piece;
    return true;
}

bool pith__encoding_room(pith__encoding *enc, size_t tokens) {
    size_t need = enc->count + tokens;
    if (need <= enc->capacity) return true;
    size_t capacity = enc->capacity ? enc->capacity : 256;
    while (capacity < need) capacity *= 2;
    size_t used = enc->count * sizeof(int32_t), bytes = capacity * sizeof(int32_t);
    if (!grow(enc, (void **)&enc->ids, used, bytes) ||
        !grow(enc, (void **)&enc->begin, used, bytes) ||
        !grow(enc, (void **)&enc->end, used, bytes) ||
        !grow(enc, (void **)&enc->words, used, bytes))
        return false;
    enc->capacity = capacity;
    return true;
}

void *pith__encoding_scratch(pith__encoding *enc, int slot, size_t bytes) {
    if (enc->scratch[slot].size >= bytes) return enc->scratch[slot].data;
    if (!grow(enc, &enc->scratch[slot].data, 0, bytes)) return NULL;
    memset(enc->scratch[slot].data, 0, bytes);
    enc->scratch[slot].size = bytes;
    return enc->scratch[slot].data;
}

bool pith__encoding_begin(pith__encoding *enc, pith_str source, bool offsets) {
    enc->source = source;
    enc->offsets = offsets;
    enc->source_offsets = false;
    enc->word = 0;
    if (enc->text.capacity) { /* a buffer of the last text */
        pith__text *home = enc->out.capacity ? &enc->spare : &enc->out;
        *home = enc->text;
    }
    enc->text = (pith__text){ (char *)(uintptr_t)source.data, NULL, source.size, 0 };
    enc->out.size = enc->spare.size = 0;
    pith__text *own[2] = { &enc->out, &enc->spare };
    if (offsets) {
        for (int i = 0; i < 2; i++)
            if (own[i]->capacity && !own[i]->origin &&
                !grow(enc, (void **)&own[i]->origin, 0, own[i]->capacity * sizeof *own[i]->origin))
                return false;
    }
    enc->piece_count = enc->next_count = 0;
    if (!enc->piece_capacity && !grow_pieces(enc, &enc->pieces, 0, &enc->piece_capacity))
        return false;
    if (source.size)
        enc->pieces[enc->piece_count++] = (pith__piece){ 0, (uint32_t)source.size, -1 };
    return true;
}

/* What a normalizer has written becomes the text, and the buffer of the old text is written to
 * next. The caller's source is never written to: it has no capacity, so the spare buffer takes its
 * turn. */
void pith__encoding_swap_text(pith__encoding *enc) {
    pith__text old = enc->text;
    enc->text = enc->out;
    if (!enc->offsets && enc->text.origin) { /* an earlier text wanted offsets: this one has none to
                                                show */
        pith__memory_free(enc->allocator, enc->text.origin);
        enc->text.origin = NULL;
    }
    if (enc->text.data) memset(enc->text.data + enc->text.size, 0, 16);
    if (old.capacity)
        enc->out = old;
    else {
        enc->out = enc->spare;
        enc->spare = (pith__text){ 0 };
    }
    enc->out.size = 0;
}

void pith__encoding_swap_pieces(pith__encoding *enc) {
    pith__piece *pieces = enc->pieces;
    size_t capacity = enc->piece_capacity;
    enc->pieces = enc->next;
    enc->piece_count = enc->next_count;
    enc->piece_capacity = enc->next_capacity;
    enc->next = pieces;
    enc->next_capacity = capacity;
    enc->next_count = 0;
}

/* ---- splitting ---- */

void pith__split_begin(pith__splitter *s, pith__encoding *enc, pith__piece piece,
                       pith__behavior behavior, bool invert) {
    *s = (pith__splitter){ enc, behavior, invert, false, false, 0, 0, piece.begin, piece.end };
}

static void encoding_flush(pith__splitter *s) {
    if (s->open) pith__encoding_emit(s->enc, s->begin, s->end);
    s->open = false;
}

/* One part of the piece, match or not. The open piece is the last one emitted, which a later part
 * may still extend. */
static void encoding_part(pith__splitter *s, uint32_t begin, uint32_t end, bool match) {
    bool join = false;
    switch (s->behavior) {
    case PITH_SPLIT_REMOVED:
        if (!match) pith__encoding_emit(s->enc, begin, end);
        return;
    case PITH_SPLIT_ISOLATED: pith__encoding_emit(s->enc, begin, end); return;
    case PITH_SPLIT_CONTIGUOUS: join = match == s->last_match; break;
    case PITH_SPLIT_MERGED_WITH_PREVIOUS: join = match && !s->last_match; break;
    case PITH_SPLIT_MERGED_WITH_NEXT: join = !match && s->last_match; break;
    }
    s->last_match = match;
    if (join && s->open) {
        s->end = end;
        return;
    }
    encoding_flush(s);
    s->open = true;
    s->begin = begin;
    s->end = end;
}

void pith__split_match(pith__splitter *s, uint32_t begin, uint32_t end) {
    if (s->at != begin) encoding_part(s, s->at, begin, s->invert);
    encoding_part(s, begin, end, !s->invert);
    s->at = end;
}

void pith__split_end(pith__splitter *s) {
    if (s->at != s->stop) encoding_part(s, s->at, s->stop, s->invert);
    encoding_flush(s);
}

pith__behavior pith__json_behavior(pith__json *j) {
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous" };
    pith_str name = pith__json_string(j);
    for (int i = 0; i < 5; i++)
        if (pith__str_is(name, names[i])) return (pith__behavior)i;
    if (!j->failed)
        pith__json_fail(j, PITH_ERR_FORMAT, "unknown behavior \"" PITH_STR_FMT "\"",
                        PITH_STR_ARG(name));
    return PITH_SPLIT_REMOVED;
}

/* ---- the pool ---- */

static void encoding_call_free(pith__encoding *enc) {
    const pith_allocator *a = enc->allocator;
    if (enc->text.capacity) {
        pith__memory_free(a, enc->text.data);
        pith__memory_free(a, enc->text.origin);
    }
    pith__memory_free(a, enc->out.data);
    pith__memory_free(a, enc->out.origin);
    pith__memory_free(a, enc->spare.data);
    pith__memory_free(a, enc->spare.origin);
    pith__memory_free(a, enc->pieces);
    pith__memory_free(a, enc->next);
    pith__memory_free(a, enc->ids);
    pith__memory_free(a, enc->begin);
    pith__memory_free(a, enc->end);
    pith__memory_free(a, enc->words);
    for (int i = 0; i < PITH_SCRATCH_SLOTS; i++) pith__memory_free(a, enc->scratch[i].data);
    pith__memory_free(a, enc);
}

static size_t call_bytes(const pith__encoding *enc) {
    size_t bytes = 5 * (enc->text.capacity + enc->out.capacity + enc->spare.capacity) +
                   16 * enc->capacity +
                   sizeof(pith__piece) * (enc->piece_capacity + enc->next_capacity);
    for (int i = 0; i < PITH_SCRATCH_SLOTS; i++) bytes += enc->scratch[i].size;
    return bytes;
}

/* Takes an encoding from the pool, or makes one. A slot is read before it is exchanged, since an
 * exchange of an empty slot would still take its cache line away from other threads. */
pith__encoding *pith__encoding_acquire(const pith_tokenizer *tokenizer) {
    struct pith__encoding_pool *pool = tokenizer->calls;
    pith__encoding *enc = NULL;
    for (int i = 0; i < POOL_SIZE && !enc; i++)
        if (atomic_load_explicit(&pool->calls[i], memory_order_relaxed))
            enc = atomic_exchange(&pool->calls[i], NULL);
    if (!enc) {
        enc = pith__memory_alloc(tokenizer->allocator, sizeof *enc, 64);
        if (!enc) return NULL;
        memset(enc, 0, sizeof *enc);
        enc->tokenizer = tokenizer;
        enc->allocator = tokenizer->allocator;
    }
    enc->count = 0;
    enc->limit = SIZE_MAX;
    enc->out_of_memory = false;
    enc->stop = NULL;
    enc->look = SIZE_MAX;
    enc->stopped = false;
    enc->tokens_allocator = tokenizer->allocator;
    return enc;
}

void pith__encoding_release(pith__encoding *enc) {
    struct pith__encoding_pool *pool = enc->tokenizer->calls;
    if (call_bytes(enc) <= KEEP_BYTES) {
        for (int i = 0; i < POOL_SIZE; i++) {
            pith__encoding *empty = NULL;
            if (atomic_compare_exchange_strong(&pool->calls[i], &empty, enc)) return;
        }
    }
    encoding_call_free(enc);
}

size_t pith__encoding_missing_bytes(const pith_tokenizer *tokenizer, size_t count) {
    size_t idle = 0, largest = 0;
    for (int i = 0; i < POOL_SIZE; i++) {
        pith__encoding *enc = atomic_exchange(&tokenizer->calls->calls[i], NULL);
        if (!enc) continue;
        size_t bytes = sizeof *enc + call_bytes(enc);
        if (bytes > largest) largest = bytes;
        idle++;
        pith__encoding_release(enc);
    }
    return count > idle ? (count - idle) * largest : 0;
}

bool pith__encoding_pool_create(pith_tokenizer *tokenizer) {
    tokenizer->calls = pith__arena_array(tokenizer->arena, 1, sizeof *tokenizer->calls);
    return tokenizer->calls;
}

void pith__encoding_pool_free(const pith_tokenizer *tokenizer) {
    if (!tokenizer->calls) return;
    for (int i = 0; i < POOL_SIZE; i++) {
        pith__encoding *enc = atomic_exchange(&tokenizer->calls->calls[i], NULL);
        if (enc) encoding_call_free(enc);
    }
}
