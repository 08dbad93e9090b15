/* search_copy.c - the copy of an index's rows that a first pass reads: int8 with a scale for each
 * row, or one bit for each component. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/stop.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "engine/kernels/small_floats.h"
#include "search/search.h"

/* Rows of a task: enough that taking one costs nothing beside the work. */
enum { COPY_ROWS = 512 };

static void *copy_alloc(pith_search_index *x, size_t count, size_t size) {
    size_t bytes;
    if (pith__mul_overflows(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    void *memory = pith__memory_alloc(&x->allocator, bytes, 64);
    if (memory) x->bytes += bytes;
    return memory;
}

void pith__search_copy_free(pith_search_index *index) {
    pith__search_copy *copy = &index->whole.copy;
    pith__memory_free(&index->allocator, copy->rows);
    pith__memory_free(&index->allocator, copy->factors);
    pith__memory_free(&index->allocator, copy->shifts);
    *copy = (pith__search_copy){ 0 };
}

static float copy_round_int8(int8_t *to, const pith_search_index *x, const float *row) {
    const pith__isa isa = pith__cpu_get()->isa;
    float low = 0, high = 0, sumsq;
    memset(to, 0, x->copy_row_bytes);
    PITH_KERNEL_FIND(pith__range_fn, "range", PITH_F32, isa)(row, x->dim, &low, &high);
    PITH_KERNEL_FIND(pith__scores_fn, "scores_sumsq", PITH_F32, isa)
    (&(pith__scores){ .rows = row, .row_count = 1, .dim = x->dim, .scores = &sumsq });
    const float most = high > -low ? high : -low;
    if (isnan(sumsq) || most > FLT_MAX) return NAN;
    if (most > 0) PITH_KERNEL_FIND(pith__quantize_fn, "quantize", PITH_U8, isa)
    (row, (uint8_t *)to, x->dim, most / 127, -127, 127, 0);
    return most / 127;
}

static void copy_round_bits(uint8_t *to, const pith_search_index *x, const float *row) {
    memset(to, 0, x->copy_row_bytes);
    for (size_t i = 0; i < x->dim; i++) to[i / 8] |= (uint8_t)((row[i] > 0) << i % 8);
}

float pith__search_round(void *to, const pith_search_index *index, const float *x) {
    if (index->first_pass == PITH_FIRST_PASS_INT8) return copy_round_int8(to, index, x);
    copy_round_bits(to, index, x);
    return 1;
}

typedef struct copy_job {
    pith_search_index *index;
    size_t from, to; /* rows */
    float *wide;     /* [threads][dim], for rows of f16 */
    pith__stop *stop;
} copy_job;

/* Rounds a row to the copy, and keeps what its scores are multiplied by: the scale of the row, for
 * cosine with the inverse of its length, for L2 twice the scale and the sum of squares to be taken
 * off. */
static void copy_one(pith_search_index *x, size_t row, const float *values) {
    const pith__search_copy *copy = &pith__search_segment_of(x, row)->copy;
    const size_t at = pith__search_place(x, row);
    const float scale = pith__search_round((char *)copy->rows + at * x->copy_row_bytes, x, values);
    if (!copy->factors) return;
    float sumsq;
    PITH_KERNEL_FIND(pith__scores_fn, "scores_sumsq", PITH_F32, pith__cpu_get()->isa)
    (&(pith__scores){ .rows = values, .row_count = 1, .dim = x->dim, .scores = &sumsq });
    float factor = scale;
    if (x->metric == PITH_METRIC_COSINE) factor = scale * pith__search_unit(sumsq);
    if (x->metric == PITH_METRIC_L2) factor = 2 * scale;
    copy->factors[at] = factor;
    if (copy->shifts) copy->shifts[at] = -sumsq;
}

static void copy_task(void *context, size_t part, int worker) {
    const copy_job *j = context;
    pith_search_index *x = j->index;
    const size_t begin = j->from + part * COPY_ROWS,
                 end = j->to - begin < COPY_ROWS ? j->to : begin + COPY_ROWS;
    if (pith__stop_asked(j->stop)) return;
    for (size_t row = begin; row < end; row++) {
        const void *values =
            pith__search_segment_of(x, row)->rows + pith__search_place(x, row) * x->row_bytes;
        if (x->dtype == PITH_F16) {
            float *wide = j->wide + (size_t)worker * x->dim;
            PITH_KERNEL_FIND(pith__widen_f16_fn, "widen", PITH_F16, pith__cpu_get()->isa)
            (values, wide, x->dim);
            values = wide;
        }
        copy_one(x, row, values);
    }
}

pith_status pith__search_copy_rows(pith_search_index *index, size_t from, size_t to, int threads,
                                   pith__stop *stop, pith_error *err) {
    const size_t count = to - from, parts = count / COPY_ROWS + (count % COPY_ROWS != 0);
    if ((size_t)threads > parts) threads = parts ? (int)parts : 1;
    pith__arena arena;
    pith__arena_init(&arena, &index->allocator);
    copy_job j = { .index = index, .from = from, .to = to, .stop = stop };
    j.wide = pith__arena_array(&arena, index->dtype == PITH_F16 ? (size_t)threads : 0,
                               index->dim * sizeof(float));
    if (j.wide) pith__threads_run_until(stop, copy_task, &j, parts, threads);
    const bool done = j.wide != NULL;
    pith__arena_free(&arena);
    if (!done)
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory for the copy of the first pass");
    return pith__stop_check(stop, err);
}

/* Only L2 on int8 needs shifts. */
pith_status pith__search_copy_make(pith_search_index *index, int threads, pith__stop *stop,
                                   pith_error *err) {
    const bool int8 = index->first_pass == PITH_FIRST_PASS_INT8;
    const size_t count = index->count;
    pith__search_copy *copy = &index->whole.copy;
    copy->rows = copy_alloc(index, count, index->copy_row_bytes);
    if (!copy->rows)
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory for the copy of the first pass");
    if (int8) copy->factors = copy_alloc(index, count, sizeof *copy->factors);
    if (int8 && index->metric == PITH_METRIC_L2)
        copy->shifts = copy_alloc(index, count, sizeof *copy->shifts);
    if (int8 && (!copy->factors || (index->metric == PITH_METRIC_L2 && !copy->shifts)))
        return pith__fail(err, PITH_ERR_MEMORY, "out of memory for the scales of the first pass");
    return pith__search_copy_rows(index, 0, count, threads, stop, err);
}
