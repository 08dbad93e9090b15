/* norm.h - row-wise normalisations and softmax over contiguous rows (16-lane sums, see
 * docs/architecture.md). */
#ifndef PITH_ENGINE_KERNELS_NORM_H
#define PITH_ENGINE_KERNELS_NORM_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over each row of n; two passes (mean,
 * then variance). If residual is not NULL, x + residual (+ bias[n] if not NULL, added first) is
 * normalised, and stored to sum if that is not NULL. gamma, beta and bias may be NULL. y may be x.
 * mean_out and inv_out (1 / sqrt(…), one per row) may be NULL. */
typedef struct pith__layer_norm {
    const float *x, *residual, *bias, *gamma, *beta;
    float *y, *sum, *mean_out, *inv_out;
    int64_t rows, n;
    float epsilon;
} pith__layer_norm;
typedef void pith__layer_norm_f32_fn(const pith__layer_norm *a);
PITH_KERNEL_DECLARE(layer_norm_f32, pith__layer_norm_f32_fn)

/* y = x / sqrt(mean(x^2) + epsilon) * gamma; the same struct, beta ignored. */
PITH_KERNEL_DECLARE(rms_norm_f32, pith__layer_norm_f32_fn)

/* Softmax, log-softmax over each of rows rows of n contiguous floats; y may be x. */
typedef void pith__row_f32_fn(const float *x, float *y, int64_t rows, int64_t n);
PITH_KERNEL_DECLARE(softmax_f32, pith__row_f32_fn)
PITH_KERNEL_DECLARE(log_softmax_f32, pith__row_f32_fn)
/* Divides each row by max(its L2 norm, 1e-12), as torch.nn.functional.normalize does. family
 * "l2_normalize" */
PITH_KERNEL_DECLARE(l2_normalize_f32, pith__row_f32_fn)

/* `columns` lines side by side, of n elements that are `inner` apart (1: one line, along its
 * elements), each divided by its norm: the sum of the magnitudes, or with `square` the root of the
 * sum of squares; lines of zeros stay. Sums are made in double: along elements in 16 lanes, else in
 * order. A line is multiplied by the reciprocal, in double. Family "lp_normalize". */
typedef void pith__lp_normalize_fn(const float *x, float *y, int64_t n, int64_t inner,
                                   int64_t columns, bool square);
PITH_KERNEL_DECLARE(lp_normalize_f32, pith__lp_normalize_fn)

#endif
