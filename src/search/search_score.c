/* search_score.c - preparing queries, and the scores of a block of rows: exact, and of the first
 * pass. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "search/search.h"

float pith__search_unit(float sumsq) { return sumsq == 0 ? 0 : 1 / sqrtf(sumsq); }

/* ---- queries ---- */

/* The bits of floats above 0, the first one the highest of its byte. */
static void score_pack_bits(uint8_t *bits, const float *x, size_t dim) {
    memset(bits, 0, (dim + 7) / 8);
    for (size_t i = 0; i < dim; i++) bits[i / 8] |= (uint8_t)((x[i] > 0) << (7 - i % 8));
}

/* A query is rounded as rows are, and then widened, which the kernel would do for each row again.
 */
static pith_status score_prepare_int8(pith__search_queries *q, pith__arena *arena,
                                      const pith_search_index *x, pith_error *err) {
    const size_t width = x->copy_row_bytes;
    int16_t *wide = pith__arena_array(arena, q->count, width * sizeof *wide);
    float *scales = pith__arena_array(arena, q->count, sizeof *scales);
    int8_t *narrow = pith__arena_alloc(arena, width);
    if (!wide || !scales || !narrow) return pith__fail_memory(err, q->count * width * sizeof *wide);
    for (size_t i = 0; i < q->count; i++) {
        scales[i] = pith__search_round(narrow, x, q->rows + i * x->dim);
        for (size_t c = 0; c < width; c++) wide[i * width + c] = narrow[c];
    }
    q->quick_int8 = wide;
    q->quick_scales = scales;
    return PITH_OK;
}

static pith_status score_prepare_quick(pith__search_queries *q, pith__arena *arena,
                                       const pith_search_index *x, pith_error *err) {
    const size_t width = x->copy_row_bytes;
    if (x->first_pass == PITH_FIRST_PASS_INT8) return score_prepare_int8(q, arena, x, err);
    uint8_t *bits = pith__arena_array(arena, q->count, width);
    if (!bits) return pith__fail_memory(err, q->count * width);
    for (size_t i = 0; i < q->count; i++)
        pith__search_round(bits + i * width, x, q->rows + i * x->dim);
    q->quick_bits = bits;
    return PITH_OK;
}

pith_status pith__search_prepare(pith__search_queries *queries, pith__arena *arena,
                                 const pith_search_index *index, const float *rows, size_t count,
                                 bool quick, pith_error *err) {
    const size_t packed = (index->dim + 7) / 8;
    pith__search_queries q = { .rows = rows, .count = count };
    if (index->bits) {
        uint8_t *bits = pith__arena_array(arena, count, packed);
        if (!bits) return pith__fail_memory(err, count * packed);
        for (size_t i = 0; i < count; i++)
            score_pack_bits(bits + i * packed, rows + i * index->dim, index->dim);
        q.bits = bits;
    } else if (index->metric == PITH_METRIC_COSINE) {
        float *units = pith__arena_array(arena, count, sizeof *units);
        if (!units) return pith__fail_memory(err, count * sizeof *units);
        PITH_KERNEL_FIND(pith__scores_fn, "scores_sumsq", PITH_F32, pith__cpu_get()->isa)
        (&(pith__scores){ .rows = rows,
                          .row_bytes = index->dim * sizeof *rows,
                          .row_count = count,
                          .dim = index->dim,
                          .scores = units });
        for (size_t i = 0; i < count; i++) units[i] = pith__search_unit(units[i]);
        q.units = units;
    }
    if (quick) PITH_TRY(score_prepare_quick(&q, arena, index, err));
    *queries = q;
    return PITH_OK;
}

pith__search_queries pith__search_query(const pith_search_index *index,
                                        const pith__search_queries *queries, size_t at) {
    pith__search_queries q = { .rows = queries->rows + at * index->dim, .count = 1 };
    if (queries->units) q.units = queries->units + at;
    if (queries->bits) q.bits = queries->bits + at * ((index->dim + 7) / 8);
    return q;
}

/* ---- room ---- */

size_t pith__search_block(size_t row_bytes) {
    const size_t bytes = 16384, most = 256, least = 4;
    const size_t n = row_bytes < bytes / most ? most : bytes / row_bytes;
    return n < least ? least : n / least * least;
}

bool pith__search_room_get(pith__search_room *room, pith__arena *arena, size_t queries,
                           size_t stride) {
    size_t count, bytes;
    if (pith__mul_overflows(queries, stride, &count) ||
        pith__mul_overflows(count, sizeof(float), &bytes))
        return false;
    *room = (pith__search_room){ .stride = stride };
    room->scores = pith__arena_alloc64(arena, bytes);
    room->sums = pith__arena_alloc64(arena, bytes);
    room->factors = pith__arena_alloc64(arena, stride * sizeof(float));
    return room->scores && room->sums && room->factors;
}

/* ---- exact ---- */

/* Bits stand for +1 and -1, so all metrics follow from the number of bits that differ. */
static void score_bits(pith__search_room *room, const pith_search_index *x,
                       const pith__search_queries *q, const char *rows, size_t n) {
    x->hamming(&(pith__int_scores){ .rows = rows,
                                    .queries = q->bits,
                                    .row_bytes = x->row_bytes,
                                    .row_count = n,
                                    .width = x->dim,
                                    .query_count = q->count,
                                    .scores = room->sums,
                                    .stride = room->stride });
    for (size_t i = 0; i < q->count; i++) {
        for (size_t r = 0; r < n; r++) {
            const int64_t differ = room->sums[i * room->stride + r];
            const float dot = (float)((int64_t)x->dim - 2 * differ);
            float score = dot;
            if (x->metric == PITH_METRIC_COSINE) score = dot / (float)x->dim;
            if (x->metric == PITH_METRIC_L2) score = -2 * sqrtf((float)differ);
            room->scores[i * room->stride + r] = score;
        }
    }
}

/* Cosine scales the dot product by the inverse lengths of row and query, of which the rows' are
 * computed here each time: keeping them would take memory and another array to read. L2 is the
 * negated distance, so that higher is better for every metric. */
/* Cosine scales the dot product by the inverse lengths of row and query, of which the rows' are
 * computed here each time: keeping them would take memory and another array to read. L2 is the
 * negated distance, so that higher is better for every metric. */
static void score_exact(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, const char *rows, size_t n) {
    if (index->bits) {
        score_bits(room, index, queries, rows, n);
        return;
    }
    pith__scores a = { .rows = rows,
                       .row_bytes = index->row_bytes,
                       .row_count = n,
                       .dim = index->dim,
                       .queries = queries->rows,
                       .query_count = queries->count,
                       .scores = room->scores,
                       .stride = room->stride };
    index->score(&a);
    if (index->metric == PITH_METRIC_COSINE) {
        a.scores = room->factors;
        index->sumsq(&a);
        for (size_t r = 0; r < n; r++) room->factors[r] = pith__search_unit(room->factors[r]);
    }
    for (size_t i = 0; i < queries->count; i++) {
        float *scores = room->scores + i * room->stride;
        if (index->metric == PITH_METRIC_COSINE) {
            const float unit = queries->units[i];
            for (size_t r = 0; r < n; r++) scores[r] = scores[r] * unit * room->factors[r];
        } else if (index->metric == PITH_METRIC_L2) {
            for (size_t r = 0; r < n; r++) scores[r] = -sqrtf(scores[r]);
        }
    }
}

/* The room of the items behind the first `at` ones. */
static pith__search_room score_room_at(const pith__search_room *room, size_t at) {
    return (pith__search_room){ .scores = room->scores + at,
                                .sums = room->sums + at,
                                .factors = room->factors + at,
                                .stride = room->stride };
}

void pith__search_score(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, size_t row, size_t n) {
    for (size_t at = 0, some; at < n; at += some) {
        pith__search_room there = score_room_at(room, at);
        some = pith__search_within(index, row + at, n - at);
        score_exact(&there, index, queries,
                    pith__search_segment_of(index, row + at)->rows +
                        pith__search_place(index, row + at) * index->row_bytes,
                    some);
    }
}

/* ---- the first pass ---- */

/* Scores of the first pass, in a unit of their own: only their order for one query matters. Bits:
 * how many agree. int8: the integer product times the row's factor. For L2 the order of -|q - x|^2
 * is that of 2 q x - |x|^2, whose second term is the row's shift. */
/* Scores of the first pass, in a unit of their own: only their order for one query matters. Bits:
 * how many agree. int8: the integer product times the row's factor. For L2 the order of -|q - x|^2
 * is that of 2 q x - |x|^2, whose second term is the row's shift. row: its place in the segment. */
static void score_quick(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, const pith__search_copy *copy,
                        size_t row, size_t n) {
    const size_t width = index->copy_row_bytes;
    const bool int8 = index->first_pass == PITH_FIRST_PASS_INT8;
    const pith__int_scores a = { .rows = (const char *)copy->rows + row * width,
                                 .queries =
                                     int8 ? (const void *)queries->quick_int8 : queries->quick_bits,
                                 .row_bytes = width,
                                 .row_count = n,
                                 .width = int8 ? width : width * 8,
                                 .query_count = queries->count,
                                 .scores = room->sums,
                                 .stride = room->stride };
    (int8 ? index->int8 : index->hamming)(&a);
    for (size_t i = 0; i < queries->count; i++) {
        const int32_t *sums = room->sums + i * room->stride;
        float *scores = room->scores + i * room->stride;
        if (!int8) {
            for (size_t r = 0; r < n; r++) scores[r] = (float)-sums[r];
        } else if (copy->shifts) {
            const float scale = queries->quick_scales[i];
            for (size_t r = 0; r < n; r++)
                scores[r] = (float)sums[r] * scale * copy->factors[row + r] + copy->shifts[row + r];
        } else {
            for (size_t r = 0; r < n; r++) scores[r] = (float)sums[r] * copy->factors[row + r];
        }
    }
}

void pith__search_quick(pith__search_room *room, const pith_search_index *index,
                        const pith__search_queries *queries, size_t row, size_t n) {
    for (size_t at = 0, some; at < n; at += some) {
        pith__search_room there = score_room_at(room, at);
        some = pith__search_within(index, row + at, n - at);
        score_quick(&there, index, queries, &pith__search_segment_of(index, row + at)->copy,
                    pith__search_place(index, row + at), some);
    }
}
