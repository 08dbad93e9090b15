/* reduce.h - sums, extremes and other reductions over f32 rows and columns.
 *
 * Rows: element i of a row goes to lane i mod 16, each lane in ascending order, then the fixed tree
 * of vec.h. Columns: one sequential chain per column, ascending. NaN anywhere gives NaN, also for
 * max and min. A reduction of nothing gives 0 for sums, NaN for mean, -infinity for max, +infinity
 * for min. */
#ifndef PITH_ENGINE_KERNELS_REDUCE_H
#define PITH_ENGINE_KERNELS_REDUCE_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[r] = f(x[r * n], …, x[r * n + n - 1]) for r < rows. */
typedef void pith__reduce_rows_fn(const float *x, float *y, int64_t rows, int64_t n);
PITH_KERNEL_DECLARE(row_l1_f32, pith__reduce_rows_fn)
PITH_KERNEL_DECLARE(row_max_f32, pith__reduce_rows_fn)
PITH_KERNEL_DECLARE(row_mean_f32, pith__reduce_rows_fn)
PITH_KERNEL_DECLARE(row_min_f32, pith__reduce_rows_fn)
PITH_KERNEL_DECLARE(row_sum_f32, pith__reduce_rows_fn)
PITH_KERNEL_DECLARE(row_sumsq_f32, pith__reduce_rows_fn)

/* y[j] = f(x[j], x[stride + j], …) over rows, for j < n. y may not overlap x. Mean pooling of
 * tokens from..to of [tokens, n] is x + from * n, rows = to - from, stride = n. */
typedef void pith__reduce_columns_fn(const float *x, float *y, int64_t rows, int64_t n,
                                     int64_t stride);
PITH_KERNEL_DECLARE(column_l1_f32, pith__reduce_columns_fn)
PITH_KERNEL_DECLARE(column_max_f32, pith__reduce_columns_fn)
PITH_KERNEL_DECLARE(column_mean_f32, pith__reduce_columns_fn)
PITH_KERNEL_DECLARE(column_min_f32, pith__reduce_columns_fn)
PITH_KERNEL_DECLARE(column_sum_f32, pith__reduce_columns_fn)
PITH_KERNEL_DECLARE(column_sumsq_f32, pith__reduce_columns_fn)

#endif
