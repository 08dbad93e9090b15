/* build_vectors.c - a vector for each distinct text, by the caller's embedder or by hashing its
 * words. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"
#include "tables/database/hash_words.h"
#include "tables/database/stoppable_sort.h"

/* Texts of a call of the embedder: enough to fill its batches, few enough to show progress and to
 * be cancelled. */
enum { VECTOR_TEXTS = 1024 };

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80;
}

/* Four signed buckets a word, so that two words never fully collide. */
static void word_add(float *vector, const char *word, size_t size) {
    char lower[64];
    if (size > sizeof lower) size = sizeof lower;
    for (size_t i = 0; i < size; i++)
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
    const uint64_t hash = pith__hash_of(lower, size);
    for (int k = 0; k < 4; k++) {
        const uint32_t bits = (uint32_t)(hash >> 16 * k) & 0xFFFF;
        vector[(bits & 0x7FFF) % PITH_HASH_WORDS_DIM] += bits >> 15 ? -1.0f : 1.0f;
    }
}

void pith__hash_words(float *vector, pith_str text) {
    float squares = 0;
    memset(vector, 0, PITH_HASH_WORDS_DIM * sizeof *vector);
    for (size_t i = 0, begin; i < text.size;) {
        while (i < text.size && !word_char(text.data[i])) i++;
        for (begin = i; i < text.size && word_char(text.data[i]);) i++;
        if (i > begin) word_add(vector, text.data + begin, i - begin);
    }
    for (int i = 0; i < PITH_HASH_WORDS_DIM; i++) squares += vector[i] * vector[i];
    if (squares == 0) return;
    const float factor = 1 / sqrtf(squares);
    for (int i = 0; i < PITH_HASH_WORDS_DIM; i++) vector[i] *= factor;
}

static pith_status vectors_hash(void *user, float *vectors, const pith_str *texts, size_t count,
                                pith_error *err) {
    (void)user, (void)err;
    for (size_t i = 0; i < count; i++)
        pith__hash_words(vectors + i * PITH_HASH_WORDS_DIM, texts[i]);
    return PITH_OK;
}

typedef struct vector_text {
    pith_str text;
    uint32_t number;
} vector_text;

/* By length, so that a batch holds texts of like length; then by number. */
static int vector_compare(const void *a, const void *b) {
    const vector_text *x = a, *y = b;
    if (x->text.size != y->text.size) return x->text.size < y->text.size ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* All texts one after the other, which the strings in the list are from now on. */
static pith_status vectors_text(pith__build *b, pith_error *err) {
    const uint32_t n = b->rdb->string_count;
    uint64_t *begin = pith__arena_array(PITH_BUILD_ARENA(b), (size_t)n + 1, sizeof *begin);
    if (!begin) return pith__fail_memory(err, n * sizeof *begin);
    for (uint32_t i = 0; i < n; i++) begin[i + 1] = begin[i] + b->string_list[i].size;
    char *bytes = pith__arena_alloc(PITH_BUILD_ARENA(b), (size_t)begin[n] + 1);
    if (!bytes) return pith__fail_memory(err, (size_t)begin[n]);
    for (uint32_t i = 0; i < n; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        memcpy(bytes + begin[i], b->string_list[i].data, b->string_list[i].size);
        b->string_list[i].data = bytes + begin[i];
    }
    b->rdb->string_begin = begin;
    b->rdb->string_bytes = bytes;
    return PITH_OK;
}

static pith_status vectors_embed(pith__build *b, float *vectors, const pith_text_embedder *e,
                                 pith_error *err) {
    const uint32_t n = b->rdb->string_count;
    pith__arena *arena = PITH_BUILD_ARENA(b);
    vector_text *order = pith__arena_array(arena, (size_t)n + 1, sizeof *order);
    pith_str *texts = pith__arena_array(arena, VECTOR_TEXTS, sizeof *texts);
    float *some = pith__arena_array(arena, VECTOR_TEXTS, e->dim * sizeof *some);
    if (!order || !texts || !some) return pith__fail_memory(err, n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) order[i] = (vector_text){ b->string_list[i], i };
    if (!pith__sort(order, n, sizeof *order, vector_compare, b->work->stop, arena))
        return pith__stop_check(b->work->stop, err);
    for (uint32_t at = 0; at < n; at += VECTOR_TEXTS) {
        const uint32_t count = n - at < VECTOR_TEXTS ? n - at : VECTOR_TEXTS;
        PITH_TRY(pith__stop_check(b->work->stop, err));
        pith__work_tell(b->work, "texts", at, n);
        for (uint32_t i = 0; i < count; i++) texts[i] = order[at + i].text;
        PITH_TRY(e->embed(e->user, some, texts, count, err));
        for (size_t i = 0; i < count * e->dim; i++)
            if (!isfinite(some[i]))
                return pith__fail(err, PITH_ERR_RUN,
                                  "the embedder gave a vector that is not finite for '" PITH_STR_FMT
                                  "'",
                                  PITH_STR_ARG(texts[i / e->dim]));
        for (uint32_t i = 0; i < count; i++)
            memcpy(vectors + (size_t)order[at + i].number * e->dim, some + i * e->dim,
                   e->dim * sizeof *some);
    }
    pith__work_tell(b->work, "texts", n, n);
    return PITH_OK;
}

pith_status pith__build_vectors(pith__build *b, pith_error *err) {
    static const pith_text_embedder hash = { "hash", PITH_HASH_WORDS_DIM, vectors_hash, NULL };
    const pith_text_embedder *e = b->options->embedder ? b->options->embedder : &hash;
    size_t size;
    if (!e->embed || !e->name || !e->dim || e->dim > 16384)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "an embedder needs a name, a function and 1 to 16384 components");
    if (pith__mul_overflows(b->rdb->string_count, e->dim * sizeof(float), &size))
        return pith__fail_memory(err, SIZE_MAX);
    float *vectors = pith__arena_alloc64(PITH_BUILD_ARENA(b), size);
    if (!vectors) return pith__fail_memory(err, size);
    PITH_TRY(vectors_text(b, err));
    PITH_TRY(vectors_embed(b, vectors, e, err));
    b->rdb->vectors = vectors;
    b->rdb->dim = (uint32_t)e->dim;
    b->rdb->embedder = pith__str_of(e->name);
    return PITH_OK;
}
