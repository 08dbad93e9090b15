/* grid_sample.h - weighted sums of elements at any places, the same places in every channel. */
#ifndef PITH_ENGINE_KERNELS_GRID_SAMPLE_H
#define PITH_ENGINE_KERNELS_GRID_SAMPLE_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

enum { PITH_GRID_POINTS = 256 }; /* the most that are done together */

/* y[c * y_step + i] = the sum over k < taps, in this order, of weights[k * stride + i] * x[c *
 * x_step + at[k * stride + i]], for c < channels and i < n, by multiply-adds from 0 on. Places
 * below 0 are left out. stride is n rounded up to 16 or more, and there the places behind n can be
 * read as well. n is at most PITH_GRID_POINTS. */
typedef struct pith__grid {
    const float *x, *weights;
    const int32_t *at;
    float *y;
    int64_t taps, stride, n, channels, x_step, y_step;
} pith__grid;
typedef void pith__grid_fn(const pith__grid *g);
PITH_KERNEL_DECLARE(grid_f32, pith__grid_fn)

#endif
