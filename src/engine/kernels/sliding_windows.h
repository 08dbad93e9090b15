/* sliding_windows.h - sliding windows over one padded plane, for depthwise convolutions and pools
 * of rank 1 and 2.
 *
 * The plane is copied once with its padding, in phases: phase p of an axis holds places p, p +
 * stride, … The elements that neighbouring windows need for a tap are then contiguous for any
 * stride, and rows of windows follow each other. Output row r, window j has tap t at x[r * step +
 * offsets[t] + j]; step is at least the number of windows of a row. */
#ifndef PITH_ENGINE_KERNELS_SLIDING_WINDOWS_H
#define PITH_ENGINE_KERNELS_SLIDING_WINDOWS_H

#include <stdbool.h>

#include "engine/kernels/window_shape.h"

enum {
    PITH_TAPS_BLOCK = 64
}; /* windows computed together; the plane is readable that far behind
                                  its end */

typedef struct pith__taps {
    const float *x;
    float *y;               /* [rows, columns], dense */
    const int64_t *offsets; /* [taps] */
    const float *weights;   /* [taps]; not read by taps_max */
    const float *bias;      /* one number that taps_sum adds to each sum; NULL: none */
    int64_t taps, rows, columns, step;
} pith__taps;

/* y = sum over ascending t of fma(weights[t], x, …), from +0. y = the largest x, or -infinity; NaN
 * if one is NaN. */
typedef void pith__taps_fn(const pith__taps *a);
PITH_KERNEL_DECLARE(taps_sum_f32, pith__taps_fn) /* family "taps_sum" */
PITH_KERNEL_DECLARE(taps_max_f32, pith__taps_fn) /* family "taps_max" */

/* The sums of taps_sum for windows of 3 x 3 that are `stride` places apart, 1 or 2, and begin
 * `begin` places before x; places outside of x count as +0. With stride 1, begin is 1 and y has the
 * size of x; with 2, begin is 0 or 1. */
typedef struct pith__depthwise {
    const float *x;       /* [rows, columns], dense */
    float *y;             /* [out_rows, out_columns], dense */
    const float *weights; /* [9] */
    const float *bias;    /* as in pith__taps */
    int64_t rows, columns, out_rows, out_columns;
    int64_t stride, begin[2];
} pith__depthwise;
typedef void pith__depthwise_fn(const pith__depthwise *a);
PITH_KERNEL_DECLARE(depthwise_f32, pith__depthwise_fn) /* family "depthwise" */
/* Whether such a kernel can do the windows; sets the sizes of *a. */
bool pith__depthwise_fits(pith__depthwise *a, const pith__window *w);

/* The padded plane: the phases that the kernel needs lie one after the other, each with rows and
 * columns of its own. */
typedef struct pith__taps_layout {
    int64_t rows, columns; /* of a phase */
    int64_t row_phases, column_phases;
    int last; /* the axis of columns; axis 0 is that of rows if last is 1 */
} pith__taps_layout;
/* False on overflow. */
bool pith__taps_layout_of(pith__taps_layout *p, const pith__window *w);
/* Returns the floats of the padded plane for a window of rank 1 or 2, or -1 on overflow. */
int64_t pith__taps_floats(const pith__window *w);
/* Fills offsets [taps of the kernel] and *step. */
void pith__taps_offsets(int64_t *offsets, int64_t *step, const pith__window *w);
/* Fills the plane from x. Family "taps_plane". */
typedef void pith__taps_plane_fn(float *plane, const float *x, const pith__window *w,
                                 float padding);
PITH_KERNEL_DECLARE(taps_plane_f32, pith__taps_plane_fn)

#endif
