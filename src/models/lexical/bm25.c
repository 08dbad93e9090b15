/* bm25.c - texts to sparse vectors. Source: fastembed 0.9, sparse/bm25.py. */
#include "models/lexical/bm25.h"

#include <stdatomic.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/murmur.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "base/progress.h"
#include "base/unicode/utf8.h"
#include "models/lexical/bm25_state.h"

/* Words of a text between two looks at whether the call must end; a power of two. */
enum { BM25_STOP_WORDS = 4096 };
enum { BM25_THREADS = 512, BM25_TEXTS_PER_PART = 64, BM25_PLACES_LEAST = 64 };
/* An idle worker has room for so many stems at most: 2 MB. */
enum { BM25_STEMS_KEPT = 1 << 16 };
/* A second hash tells stems apart that have the same number. */
#define BM25_CHECK_SEED 0x9E3779B9u

/* ---- workers ---- */

/* Workers are kept for later calls, because making a stemmer and a table of known words takes
 * longer than a short text. */
pith_status pith__bm25_borrow(bm25_worker **worker, pith_bm25 *b, pith_error *err) {
    bm25_worker *w = NULL;
    pthread_mutex_lock(&b->lock);
    if (b->idle_count) w = b->idle[--b->idle_count];
    pthread_mutex_unlock(&b->lock);
    if (!w) {
        w = pith__memory_alloc(&b->allocator, sizeof *w, 64);
        if (!w) return pith__fail_memory(err, sizeof *w);
        memset(w, 0, sizeof *w);
        pith_status status =
            b->stems ? pith__stemmer_create(&w->stemmer, b->language, err) : PITH_OK;
        if (status) {
            pith__memory_free(&b->allocator, w);
            return status;
        }
    }
    *worker = w;
    return PITH_OK;
}

void pith__bm25_end(pith_bm25 *b, bm25_worker *w) {
    pith__stemmer_destroy(&w->stemmer);
    pith__memory_free(&b->allocator, w->stems);
    pith__memory_free(&b->allocator, w->places);
    pith__memory_free(&b->allocator, w);
}

void pith__bm25_return(pith_bm25 *b, bm25_worker *w) {
    pthread_mutex_lock(&b->lock);
    bool kept = b->idle_count < BM25_IDLE && w->stem_capacity <= BM25_STEMS_KEPT;
    if (kept) b->idle[b->idle_count++] = w;
    pthread_mutex_unlock(&b->lock);
    if (!kept) pith__bm25_end(b, w);
}

/* ---- words to stems ---- */

/* What a word that is not left out becomes; *known.size says of what. An id of UINT32_MAX: nothing.
 */
static pith_status bm25_look_up(bm25_known *known, const pith_bm25 *b, bm25_worker *w,
                                pith_error *err) {
    pith_str word = { w->words.word, w->words.size }, stem = word;
    known->id = UINT32_MAX;
    if (w->words.characters > b->longest || (word.size == 1 && *word.data == '_')) return PITH_OK;
    if (pith__map_get(&b->stops, word) != UINT32_MAX) return PITH_OK;
    if (w->stemmer.snowball) stem = pith__stemmer_run(&w->stemmer, word);
    if (!stem.data) return pith__fail_memory(err, word.size);
    if (!stem.size) return PITH_OK;
    known->id = pith__murmur3_number(pith__murmur3_32(stem.data, stem.size, 0));
    known->check = pith__murmur3_32(stem.data, stem.size, BM25_CHECK_SEED);
    return PITH_OK;
}

/* A fast hash of up to 27 bytes, eight at a time. Only the table of known words uses it, so it is
 * no part of any result. */
static uint32_t bm25_place(const char *word, size_t size) {
    uint64_t h = size, part = 0;
    for (; size >= sizeof part; size -= sizeof part, word += sizeof part) {
        memcpy(&part, word, sizeof part);
        h = (h ^ part) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    for (part = 0; size; size--) part = part << 8 | (unsigned char)word[size - 1];
    return (uint32_t)((h ^ part) * 0xBF58476D1CE4E5B9u >> 40) % BM25_KNOWN;
}

/* The stem of the worker's current word. */
static pith_status bm25_stem(const bm25_known **stem, const pith_bm25 *b, bm25_worker *w,
                             bm25_known *other, pith_error *err) {
    const size_t size = w->words.size;
    *stem = other;
    if (size > BM25_KNOWN_BYTES) return bm25_look_up(other, b, w, err);
    bm25_known *known = &w->known[bm25_place(w->words.word, size)];
    *stem = known;
    if (known->size == size && !memcmp(known->word, w->words.word, size)) return PITH_OK;
    known->size = 0;
    PITH_TRY(bm25_look_up(known, b, w, err));
    known->size = (uint8_t)size;
    memcpy(known->word, w->words.word, size);
    return PITH_OK;
}

/* Makes room for a text of so many stems at most, and for a table that stays half empty. */
static pith_status bm25_reserve(const pith_bm25 *b, bm25_worker *w, size_t most, pith_error *err) {
    size_t places = BM25_PLACES_LEAST, stems, table;
    if (most <= w->stem_capacity) return PITH_OK;
    while (places < 2 * most && places <= UINT32_MAX / 2) places *= 2;
    if (places < 2 * most || pith__mul_overflows(most, 2 * sizeof *w->stems, &stems) ||
        pith__mul_overflows(places, sizeof *w->places, &table))
        return pith__fail_memory(err, SIZE_MAX);
    pith__memory_free(&b->allocator, w->stems);
    pith__memory_free(&b->allocator, w->places);
    w->stem_capacity = 0;
    w->stems = pith__memory_alloc(&b->allocator, stems, 64); /* the second half is for sorting */
    w->places = pith__memory_alloc(&b->allocator, table, 64);
    if (!w->stems || !w->places) return pith__fail_memory(err, stems);
    memset(w->places, 0, table);
    w->mask = (uint32_t)places - 1;
    w->stem_capacity = most;
    return PITH_OK;
}

/* Counts a stem. */
static void bm25_count(bm25_worker *w, uint32_t id, uint32_t check) {
    uint32_t at = id & w->mask;
    for (; w->places[at]; at = (at + 1) & w->mask) {
        bm25_counted *stem = &w->stems[w->places[at] - 1];
        if (stem->id == id && stem->check == check) {
            stem->times++;
            return;
        }
    }
    w->stems[w->stem_count++] = (bm25_counted){ id, check, 1, at };
    w->places[at] = (uint32_t)w->stem_count;
}

/* The distinct stems of a text, in the order in which they first occur; *count: of all stems. */
static pith_status bm25_collect(size_t *count, const pith_bm25 *b, bm25_worker *w, pith_str text,
                                pith__stop *stop, pith_error *err) {
    size_t words = 0;
    bm25_known other;
    const bm25_known *stem;
    pith_status status = PITH_OK;
    *count = w->stem_count = 0;
    if (pith__utf8_valid_prefix(text.data, text.size) < text.size)
        return pith__fail(err, PITH_ERR_ARGUMENT, "is not UTF-8");
    PITH_TRY(bm25_reserve(b, w, text.size / 2 + 1, err)); /* words have a character and a gap */
    pith__words_begin(&w->words, text);
    while (!status && pith__words_next(&w->words)) {
        status = bm25_stem(&stem, b, w, &other, err);
        if (!status && !(++words & (BM25_STOP_WORDS - 1))) status = pith__stop_check(stop, err);
        if (status || stem->id == UINT32_MAX) continue;
        bm25_count(w, stem->id, stem->check);
        ++*count;
    }
    for (size_t i = 0; i < w->stem_count; i++) w->places[w->stems[i].place] = 0;
    return status;
}

/* Sorts by number, and keeps the order of equal ones: by each byte of the number in turn. Returns
 * the sorted list. */
static const bm25_counted *bm25_sort(bm25_worker *w) {
    enum { SHORT = 32, BYTE = 256 };
    bm25_counted *from = w->stems, *to = w->stems + w->stem_capacity;
    const size_t n = w->stem_count;
    if (n <= SHORT)
        for (size_t i = 1; i < n; i++) {
            bm25_counted item = from[i];
            size_t at = i;
            for (; at && item.id < from[at - 1].id; at--) from[at] = from[at - 1];
            from[at] = item;
        }
    if (n > SHORT)
        for (int shift = 0; shift < 32; shift += 8) {
            size_t begins[BYTE + 1] = { 0 };
            for (size_t i = 0; i < n; i++) begins[(from[i].id >> shift & (BYTE - 1)) + 1]++;
            for (int i = 0; i < BYTE; i++) begins[i + 1] += begins[i];
            for (size_t i = 0; i < n; i++) to[begins[from[i].id >> shift & (BYTE - 1)]++] = from[i];
            bm25_counted *swap = from;
            from = to;
            to = swap;
        }
    return from;
}

/* The vector of a text of `count` stems. Of two stems with the same number, the one that first
 * occurs later counts, as in fastembed. Returns the number of entries. */
static size_t bm25_weigh(int32_t *indices, float *values, const pith_bm25 *b, bm25_worker *w,
                         size_t count, bool query) {
    const bm25_counted *stems = bm25_sort(w);
    const double length = b->k * (1 - b->b + b->b * (double)count / b->avg_len);
    size_t n = 0;
    for (size_t i = 0; i < w->stem_count; i++) {
        const double times = stems[i].times;
        n += !n || indices[n - 1] != (int32_t)stems[i].id;
        indices[n - 1] = (int32_t)stems[i].id;
        values[n - 1] = query ? 1 : (float)(times * (b->k + 1) / (times + length));
    }
    return n;
}

/* ---- a call ---- */

typedef struct bm25_text {
    int32_t *indices; /* in an arena of a worker */
    float *values;
    size_t count;
} bm25_text;

typedef struct bm25_call {
    pith_bm25 *b;
    const pith_str *texts;
    size_t count;
    bool query;
    pith__stop *stop;
    pith__progress *progress;
    atomic_size_t done;
    bm25_text *results;
    pith__arena *arenas; /* by worker */
    bm25_worker **workers;
    atomic_size_t failed; /* the first text that failed; SIZE_MAX: none */
    pthread_mutex_t lock; /* of the fault */
    pith_error fault;
} bm25_call;

/* Results go to the arena of the worker, and to one block when all texts are done. */
static pith_status bm25_text_run(bm25_call *c, bm25_worker *w, pith__arena *arena, size_t text,
                                 pith_error *err) {
    size_t count;
    bm25_text *r = &c->results[text];
    PITH_TRY(pith__stop_check(c->stop, err));
    PITH_TRY(bm25_collect(&count, c->b, w, c->texts[text], c->stop, err));
    r->indices = pith__arena_alloc(arena, w->stem_count * sizeof *r->indices);
    r->values = pith__arena_alloc(arena, w->stem_count * sizeof *r->values);
    if (!r->indices || !r->values)
        return pith__fail_memory(err, w->stem_count * sizeof *r->indices);
    r->count = bm25_weigh(r->indices, r->values, c->b, w, count, c->query);
    return PITH_OK;
}

static void bm25_note(bm25_call *c, size_t text, const pith_error *fault) {
    pthread_mutex_lock(&c->lock);
    if (text < atomic_load_explicit(&c->failed, memory_order_relaxed)) {
        atomic_store_explicit(&c->failed, text, memory_order_relaxed);
        c->fault = *fault;
    }
    pthread_mutex_unlock(&c->lock);
}

/* After a failure only texts before it still run, so that the first one that fails is reported
 * whatever the threads do. */
static void bm25_part(void *context, size_t part, int index) {
    bm25_call *c = context;
    const size_t first = part * BM25_TEXTS_PER_PART, left = c->count - first;
    const size_t end = first + (left < BM25_TEXTS_PER_PART ? left : BM25_TEXTS_PER_PART);
    pith_error fault = PITH_ERROR_INIT;
    if (!c->workers[index] && pith__bm25_borrow(&c->workers[index], c->b, &fault)) {
        bm25_note(c, first, &fault);
        return;
    }
    for (size_t i = first; i < end && i < atomic_load_explicit(&c->failed, memory_order_relaxed);
         i++)
        if (bm25_text_run(c, c->workers[index], &c->arenas[index], i, &fault))
            bm25_note(c, i, &fault);
    const size_t done =
        atomic_fetch_add_explicit(&c->done, end - first, memory_order_relaxed) + end - first;
    pith__progress_tell(c->progress, "texts", done, c->count);
}

/* The rows of all texts, in one block. */
static pith_status bm25_join(pith_bm25_rows *rows, const bm25_call *c, pith_error *err) {
    size_t total = 0, heads, items, bytes;
    for (size_t i = 0; i < c->count; i++) total += c->results[i].count;
    if (pith__mul_overflows(c->count + 1, sizeof(int64_t), &heads) ||
        pith__mul_overflows(total, 8, &items) || pith__add_overflows(heads, items, &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    char *memory = pith__memory_alloc(&c->b->allocator, bytes, 64);
    if (!memory) return pith__fail_memory(err, bytes);
    int64_t *offsets = (int64_t *)(void *)memory;
    int32_t *indices = (int32_t *)(void *)(memory + heads);
    float *values = (float *)(void *)(memory + heads + total * sizeof *indices);
    offsets[0] = 0;
    for (size_t i = 0; i < c->count; i++) {
        const bm25_text *r = &c->results[i];
        memcpy(indices + offsets[i], r->indices, r->count * sizeof *indices);
        memcpy(values + offsets[i], r->values, r->count * sizeof *values);
        offsets[i + 1] = offsets[i] + (int64_t)r->count;
    }
    *rows = (pith_bm25_rows){ { offsets, indices, values }, memory };
    return PITH_OK;
}

/* Texts are shared out in parts; each worker index has an arena and at most one worker. */
static pith_status bm25_run(pith_bm25_rows *rows, bm25_call *c, int threads, pith__arena *arena,
                            pith_error *err) {
    c->results = pith__arena_array(arena, c->count, sizeof *c->results);
    c->arenas = pith__arena_array(arena, (size_t)threads, sizeof *c->arenas);
    c->workers = pith__arena_array(arena, (size_t)threads, sizeof *c->workers);
    if (!c->results || !c->arenas || !c->workers)
        return pith__fail_memory(err, c->count * sizeof *c->results);
    for (int i = 0; i < threads; i++) pith__arena_init(&c->arenas[i], &c->b->allocator);
    pith__threads_run_until(c->stop, bm25_part, c,
                            (c->count + BM25_TEXTS_PER_PART - 1) / BM25_TEXTS_PER_PART, threads);
    size_t failed = atomic_load_explicit(&c->failed, memory_order_relaxed);
    pith_status status = pith__stop_check(c->stop, err);
    if (!status)
        status = failed == SIZE_MAX
                     ? bm25_join(rows, c, err)
                     : pith__fail(err, c->fault.code, "text %zu: %s", failed, c->fault.message);
    if (!status) pith__progress_tell(c->progress, "texts", c->count, c->count);
    for (int i = 0; i < threads; i++) {
        if (c->workers[i]) pith__bm25_return(c->b, c->workers[i]);
        pith__arena_free(&c->arenas[i]);
    }
    return status;
}

/* The formula is that of fastembed's Bm25: k, b and avg_len are given, not measured, so a text's
 * vector depends on nothing else. */
pith_status pith__bm25_encode(pith_bm25_rows *rows, const pith_bm25 *bm25, const pith_str *texts,
                              size_t count, int32_t role, const pith_call *call, pith_error *err) {
    pith_bm25 *b = (pith_bm25 *)(uintptr_t)bm25; /* but for idle workers, behind a lock, it does not
                                                    change */
    if (role != PITH_ROLE_DOCUMENT && role != PITH_ROLE_QUERY)
        return pith__fail(err, PITH_ERR_ARGUMENT, "role is %d, which is not a PITH_ROLE_* value",
                          role);
    pith_call taken = PITH_CALL_INIT;
    PITH_TAKE_OPTIONS(taken, call, err);
    PITH_TRY(pith__threads_check(taken.threads, err));
    pith__stop own, *stop = pith__stop_begin(&own, &taken);
    pith__progress told;
    PITH_TRY(pith__stop_check(stop, err));
    int threads = pith__threads_count(taken.threads);
    if (threads > BM25_THREADS) threads = BM25_THREADS;
    bm25_call c = { .b = b,
                    .texts = texts,
                    .count = count,
                    .query = role == PITH_ROLE_QUERY,
                    .stop = stop,
                    .progress = pith__progress_begin(&told, &taken) };
    atomic_init(&c.failed, SIZE_MAX);
    atomic_init(&c.done, 0);
    if (pthread_mutex_init(&c.lock, NULL)) return pith__fail_memory(err, sizeof c.lock);
    pith__arena arena;
    pith__arena_init(&arena, &b->allocator);
    pith_status status = bm25_run(rows, &c, threads, &arena, err);
    pith__arena_free(&arena);
    pthread_mutex_destroy(&c.lock);
    return status;
}

void pith__bm25_free(pith_bm25_rows *rows, const pith_bm25 *bm25) {
    pith__memory_free(&bm25->allocator, rows->memory);
    *rows = (pith_bm25_rows){ { NULL, NULL, NULL }, NULL };
}
