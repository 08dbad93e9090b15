/* affine.h - scaling of channels and the statistics of rows, for BatchNormalization and its
 * relatives. */
#ifndef PITH_ENGINE_KERNELS_AFFINE_H
#define PITH_ENGINE_KERNELS_AFFINE_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[i] = fma(x[i], a[i * step], b[i * step]), step 0 or 1; y may be x. */
typedef void pith__affine_fn(float *y, const float *x, const float *a, const float *b, int64_t n,
                             int step);
PITH_KERNEL_DECLARE(affine_f32, pith__affine_fn)

/* Mean and variance (divided by n) of n elements, n at least 1; NaN if an element is not finite.
 * Two passes. Each sums blocks of 1024 in f32, element i of a block in lane i mod 64, and the sums
 * of the blocks in double. */
typedef void pith__moments_fn(const float *x, int64_t n, double *mean, double *variance);
PITH_KERNEL_DECLARE(moments_f32, pith__moments_fn)

#endif
