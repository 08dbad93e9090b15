/* interpolate.h - weighted sums of a few elements, for interpolation. */
#ifndef PITH_ENGINE_KERNELS_INTERPOLATE_H
#define PITH_ENGINE_KERNELS_INTERPOLATE_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[i] = the sum over ascending t of fma(weights[t], x[offsets[t] + i], …), from +0, i < n. Terms
 * whose weight is 0 are left out. Family "mix_rows". */
typedef void pith__mix_rows_fn(float *y, const float *x, const int64_t *offsets,
                               const float *weights, int64_t taps, int64_t n);
PITH_KERNEL_DECLARE(mix_rows_f32, pith__mix_rows_fn)

/* y[i] = the same with weights[t * n + i] and x[index[t * n + i]], all terms; x has an element 0.
 * Family "mix_columns". */
typedef void pith__mix_columns_fn(float *y, const float *x, const int32_t *index,
                                  const float *weights, int64_t taps, int64_t n);
PITH_KERNEL_DECLARE(mix_columns_f32, pith__mix_columns_fn)

#endif
