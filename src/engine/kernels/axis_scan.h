/* axis_scan.h - running sums and products, and the place of the largest, along one axis, in plain
 * C. */
#ifndef PITH_ENGINE_KERNELS_AXIS_SCAN_H
#define PITH_ENGINE_KERNELS_AXIS_SCAN_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* y[i * stride] = x[0] + … + x[i * stride]; exclusive: without the element itself; reverse: from
 * the end. Families "scan_sum" and "scan_prod". y may be x. */
typedef void pith__scan_fn(const void *x, void *y, int64_t n, int64_t stride, bool exclusive,
                           bool reverse);

/* Index of the largest (smallest) of x[0], x[stride], …; the last one of equals if `last`. A NaN is
 * larger (smaller) than anything. n is at least 1. Families "arg_max" and "arg_min". */
typedef int64_t pith__arg_fn(const void *x, int64_t n, int64_t stride, bool last);

#endif
