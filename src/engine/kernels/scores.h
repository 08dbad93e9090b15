/* scores.h - how near rows are to queries: the inner loops of src/search.
 *
 * A score belongs to one row and one query alone, so its bits do not depend on how many of either a
 * call has. Sixteen sums, one for each index modulo 16, start at +0 and take the components in
 * ascending order; vf_sum adds them. Rows may be of any alignment that their element type
 * allows. */
#ifndef PITH_ENGINE_KERNELS_SCORES_H
#define PITH_ENGINE_KERNELS_SCORES_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* scores[q * stride + r] of row_count rows, row_bytes apart, and query_count queries,
 * [query_count][dim]. Rows of smaller types are widened to f32, which is exact. */
typedef struct pith__scores {
    const void *rows;
    size_t row_bytes, row_count, dim;
    const float *queries;
    size_t query_count;
    float *scores;
    size_t stride;
} pith__scores;

/* Families "scores_dot": sums of fma(row, query); "scores_l2": sums of fma(d, d), d = row - query;
 * "scores_sumsq": sums of fma(row, row) in scores[r], without queries. */
typedef void pith__scores_fn(const pith__scores *a);
PITH_KERNEL_DECLARE(scores_dot_f32, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_dot_u8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_dot_i8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_dot_f16, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_l2_f32, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_l2_u8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_l2_i8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_l2_f16, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_sumsq_f32, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_sumsq_u8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_sumsq_i8, pith__scores_fn)
PITH_KERNEL_DECLARE(scores_sumsq_f16, pith__scores_fn)

/* Rows and queries in whole numbers, whose scores are exact. */
typedef struct pith__int_scores {
    const void *rows, *queries;
    size_t row_bytes, row_count;
    size_t width; /* of a row: see the families */
    size_t query_count;
    int32_t *scores;
    size_t stride;
} pith__int_scores;

/* Family "scores_int8": the dot products of rows of int8 and queries of int16. width is their
 * length, a multiple of 32; the sums must fit int32. Family "scores_hamming": the bits that differ.
 * width is in bits; a row and a query have (width + 7) / 8 bytes, the first bit is the highest of a
 * byte, and bits behind the last one do not count. */
typedef void pith__int_scores_fn(const pith__int_scores *a);
PITH_KERNEL_DECLARE(scores_int8_i8, pith__int_scores_fn)
/* family "scores_int8_vnni": AVX512_VNNI or AVX_VNNI */
PITH_KERNEL_DECLARE(scores_int8_vnni_i8, pith__int_scores_fn)
PITH_KERNEL_DECLARE(scores_hamming_u8, pith__int_scores_fn)

#endif
