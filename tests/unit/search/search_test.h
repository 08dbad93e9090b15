/* search_test.h - the definitions of pith/search.h in plain C, one row and one query at a time. */
#ifndef PITH_TESTS_SEARCH_TEST_H
#define PITH_TESTS_SEARCH_TEST_H

#include "support/kernel_test.h"

#include <math.h>
#include <stdio.h>

#include "base/half.h"
#include "pith/search.h"

typedef struct set {
    void *rows;
    size_t count, dim, row_bytes, queries;
    float *query; /* [queries][dim] */
    pith_search_index_options how;
} set;

static inline float set_value(const set *s, size_t row, size_t i) {
    const char *p = (const char *)s->rows + row * s->row_bytes;
    uint16_t half;
    float x;
    if (s->how.bits) return ((const uint8_t *)p)[i / 8] >> (7 - i % 8) & 1 ? 1.0f : -1.0f;
    switch (s->how.dtype) {
    case 0:
    case PITH_F32: memcpy(&x, p + 4 * i, sizeof x); return x;
    case PITH_U8: return (float)((const uint8_t *)p)[i];
    case PITH_I8: return (float)((const int8_t *)p)[i];
    default: memcpy(&half, p + 2 * i, sizeof half); return pith__f32_of_f16(half);
    }
}

static inline float sum_of(const float *sums) {
    float s[16];
    memcpy(s, sums, sizeof s);
    for (int half = 8; half; half /= 2) {
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    }
    return s[0];
}

static inline float unit_of(float sumsq) { return sumsq == 0 ? 0.0f : 1.0f / sqrtf(sumsq); }

/* The score of a row by its definition, to the bit. */
static inline float set_score(const set *s, const float *query, size_t row) {
    float dot[16] = { 0 }, l2[16] = { 0 }, xx[16] = { 0 }, qq[16] = { 0 };
    for (size_t i = 0; i < s->dim; i++) {
        const float x = set_value(s, row, i),
                    q = s->how.bits ? (query[i] > 0 ? 1.0f : -1.0f) : query[i], d = x - q;
        dot[i % 16] = fmaf(x, q, dot[i % 16]);
        l2[i % 16] = fmaf(d, d, l2[i % 16]);
        xx[i % 16] = fmaf(x, x, xx[i % 16]);
        qq[i % 16] = fmaf(q, q, qq[i % 16]);
    }
    if (s->how.metric == PITH_METRIC_L2)
        return s->how.bits ? 2 * sqrtf(sum_of(l2) / 4) : sqrtf(sum_of(l2));
    if (s->how.metric != PITH_METRIC_COSINE) return sum_of(dot);
    return s->how.bits ? sum_of(dot) / (float)s->dim
                       : sum_of(dot) * unit_of(sum_of(qq)) * unit_of(sum_of(xx));
}

/* The same in double, or NaN where floats overflow. */
static inline double set_score_double(const set *s, const float *query, size_t row) {
    double dot = 0, l2 = 0, xx = 0, qq = 0;
    for (size_t i = 0; i < s->dim; i++) {
        const double x = set_value(s, row, i),
                     q = s->how.bits ? (query[i] > 0 ? 1.0 : -1.0) : query[i];
        dot += x * q, l2 += (x - q) * (x - q), xx += x * x, qq += q * q;
    }
    if (s->how.metric == PITH_METRIC_L2) return sqrt(l2);
    return s->how.metric != PITH_METRIC_COSINE ? dot : xx > 0 && qq > 0 ? dot / sqrt(xx * qq) : 0;
}

/* The order of hits: qsort over hits whose scores are such that more is better. */
static inline int hit_order(const void *a, const void *b) {
    const pith_hit *x = a, *y = b;
    const int x_nan = isnan(x->score), y_nan = isnan(y->score);
    if (x_nan != y_nan) return x_nan - y_nan;
    if (!x_nan && x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* All rows of the set in the order of their scores. */
static inline void set_order(pith_hit *all, const set *s, const float *query) {
    const float sign = s->how.metric == PITH_METRIC_L2 ? -1.0f : 1.0f;
    for (size_t r = 0; r < s->count; r++)
        all[r] = (pith_hit){ (int64_t)r, sign * set_score(s, query, r) };
    qsort(all, s->count, sizeof *all, hit_order);
    for (size_t r = 0; r < s->count; r++) all[r].score *= sign;
}

static inline pith_search_index *set_index(const set *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    pith_search_index_options how = s->how;
    how.row_bytes = s->row_bytes;
    if (pith_search_index_create(&index, s->rows, s->count, s->dim, &how, &err))
        fail_msg("%s", err.message);
    return index;
}

static inline void search(pith_hit *hits, const pith_search_index *index, const float *queries,
                          size_t count, size_t k, const pith_search_options *options) {
    pith_error err = PITH_ERROR_INIT;
    memset(hits, 0xA5, count * k * sizeof *hits);
    if (pith_search(hits, index, queries, count, k, options, &err)) fail_msg("%s", err.message);
}

static inline void assert_hits(const pith_hit *hits, const pith_hit *wanted, size_t have, size_t k,
                               const char *what) {
    for (size_t i = 0; i < k; i++) {
        const pith_hit none = { -1, NAN }, want = i < have ? wanted[i] : none;
        if (hits[i].index != want.index || !same_float(hits[i].score, want.score))
            fail_msg("%s, hit %zu of %zu: row %lld with %a, wanted is row %lld with %a", what, i, k,
                     (long long)hits[i].index, (double)hits[i].score, (long long)want.index,
                     (double)want.score);
    }
}

/* Rows of this kind with a gap between them, and queries; special: infinities, NaN and zeros too.
 */
static inline set set_make(int dtype, int bits, int metric, size_t count, size_t dim,
                           size_t queries, int special) {
    static const size_t sizes[] = { [PITH_F32] = 4, [PITH_U8] = 1, [PITH_I8] = 1, [PITH_F16] = 2 };
    set s = {
        .count = count, .dim = dim, .queries = queries, .how = PITH_SEARCH_INDEX_OPTIONS_INIT
    };
    s.how.dtype = dtype, s.how.bits = bits, s.how.metric = metric;
    s.row_bytes =
        (bits ? (dim + 7) / 8 : dim * sizes[dtype]) + (size_t)random_below(2) * sizes[dtype];
    s.rows = malloc(count * s.row_bytes + 1);
    s.query = floats((int64_t)(queries * dim));
    for (size_t i = 0; i < count * s.row_bytes; i++) ((uint8_t *)s.rows)[i] = (uint8_t)random_u32();
    for (size_t r = 0; r < count && (dtype == PITH_F32 || dtype == PITH_F16); r++) {
        char *row = (char *)s.rows + r * s.row_bytes;
        const uint32_t kind = special ? random_u32() % 8 : 7;
        for (size_t i = 0; i < dim; i++) {
            float x = random_float();
            if (kind == 0) x = 0;
            if (kind == 1 && i % 5 == 2) x = random_u32() % 2 ? INFINITY : -INFINITY;
            if (kind == 2 && i % 5 == 3) x = NAN;
            if (kind == 3) x *= 0x1p-140f;
            if (kind == 4) x *= 0x1p100f;
            uint16_t half = pith__f16_of_f32(x);
            if (dtype == PITH_F32)
                memcpy(row + 4 * i, &x, 4);
            else
                memcpy(row + 2 * i, &half, 2);
        }
    }
    for (size_t q = 0; special && q < queries; q++) {
        const uint32_t kind = random_u32() % 8;
        for (size_t i = 0; i < dim && kind < 3; i++)
            s.query[q * dim + i] = kind == 0   ? 0.0f
                                   : kind == 1 ? NAN
                                   : i % 3     ? s.query[q * dim + i]
                                               : INFINITY;
    }
    return s;
}

static inline void set_free(set s) {
    free(s.rows);
    free(s.query);
}

#endif
