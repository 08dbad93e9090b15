/* taps.h - sliding windows over one padded plane, for depthwise convolutions and pools of rank 1 and 2.
 *
 * The plane is copied once with its padding. Each row is stored as `stride` phases: phase p holds places p, p + stride,
 * … The elements that neighbouring windows need for a tap are then contiguous for any stride. Output row r, window j
 * has tap t at x[r * step + offsets[t] + j]. */
#ifndef PITH_KERNELS_TAPS_H
#define PITH_KERNELS_TAPS_H

#include "kernels/window.h"

enum { PITH_TAPS_BLOCK = 64 }; /* windows computed together; the plane is readable that far behind its end */

typedef struct pith_taps {
    const float *x;
    float *y;               /* [rows, columns], dense */
    const int64_t *offsets; /* [taps] */
    const float *weights;   /* [taps]; not read by taps_max */
    int64_t taps, rows, columns, step;
} pith_taps;

/* y = sum over ascending t of fma(weights[t], x, …), from +0. y = the largest x, or -infinity; NaN if one is NaN. */
typedef void pith_taps_fn(const pith_taps *a);
PITH_KERNEL_DECLARE(taps_sum_f32, pith_taps_fn) /* family "taps_sum" */
PITH_KERNEL_DECLARE(taps_max_f32, pith_taps_fn) /* family "taps_max" */

/* Returns the floats of the padded plane for a window of rank 1 or 2, or -1 on overflow. */
int64_t pith_taps_floats(const pith_window *w);
/* Fills the plane from x, offsets [taps of the kernel] and *step. */
void pith_taps_plane(float *plane, int64_t *offsets, int64_t *step, const float *x, const pith_window *w,
                     float padding);

#endif
