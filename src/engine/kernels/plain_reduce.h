/* plain_reduce.h - reductions of rows and columns in plain C, for the types and functions that
 * reduce.h does not have.
 *
 * Families and their meaning are those of reduce.h ("row_sum", "column_max", …), plus prod and
 * log_sum_exp. Sums of integers wrap; the mean of integers truncates; a reduction of nothing gives
 * 0, 1 for prod, and the type's smallest or largest number for max and min. */
#ifndef PITH_ENGINE_KERNELS_PLAIN_REDUCE_H
#define PITH_ENGINE_KERNELS_PLAIN_REDUCE_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[r] = f(x[r * n], …, x[r * n + n - 1]) for r < rows. */
typedef void pith__fold_rows_fn(const void *x, void *y, int64_t rows, int64_t n);
/* y[j] = f(x[j], x[stride + j], …) over rows, for j < n. */
typedef void pith__fold_columns_fn(const void *x, void *y, int64_t rows, int64_t n, int64_t stride);

#endif
