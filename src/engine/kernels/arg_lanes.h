/* arg_lanes.h - the place of the largest or smallest of many rows or columns of f32 at once. */
#ifndef PITH_ENGINE_KERNELS_ARG_LANES_H
#define PITH_ENGINE_KERNELS_ARG_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[j] = what pith__arg_fn (axis_scan.h) gives for x[j], x[stride + j], … x[(n - 1) * stride + j],
 * for j < columns. n is 1 to INT32_MAX; stride is at least columns. If both are 1 the row is
 * searched along its elements. Families "arg_max_lanes" and "arg_min_lanes". */
typedef void pith__arg_lanes_fn(const float *x, int64_t *y, int64_t n, int64_t stride,
                                int64_t columns, bool last);
PITH_KERNEL_DECLARE(arg_max_lanes_f32, pith__arg_lanes_fn)
PITH_KERNEL_DECLARE(arg_min_lanes_f32, pith__arg_lanes_fn)

#endif
