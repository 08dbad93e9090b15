/* int_sums.h - what follows an exact matmul of 8-bit matrices: zero points, and scales. */
#ifndef PITH_ENGINE_KERNELS_INT_SUMS_H
#define PITH_ENGINE_KERNELS_INT_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/kernel.h"

/* c[i, j] += k * p * q - p * column_sums[j] - q * (sum of row i of a), modulo 2^32, where p =
 * row_zeros[i] and q = column_zeros[j] (NULL: all are 0, and a is not read). */
typedef struct pith__sums_shift {
    int32_t *c;       /* [rows, n], `row` elements from row to row */
    const uint8_t *a; /* [rows, k] */
    const int32_t *row_zeros, *column_sums, *column_zeros;
    int64_t rows, n, row, k;
    bool a_signed;
} pith__sums_shift;
typedef void pith__sums_shift_fn(const pith__sums_shift *s);
PITH_KERNEL_DECLARE(sums_shift_i32, pith__sums_shift_fn) /* family "sums_shift" */

/* y[j] = (float)sums[j] * (scale * scales[j]) + bias[j]; bias may be NULL. Family "sums_scale". */
typedef void pith__sums_scale_fn(float *y, const int32_t *sums, int64_t n, float scale,
                                 const float *scales, const float *bias);
PITH_KERNEL_DECLARE(sums_scale_i32, pith__sums_scale_fn)

#endif
