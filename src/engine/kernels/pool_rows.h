/* pool_rows.h - maxima and means of sliding windows, read where the input lies: windows of rank 1
 * and 2 that lie one or two places apart along the last axis. Other windows are those of
 * sliding_windows.h.
 *
 * A mean is a sum over the window's rows and columns in ascending order, divided by its places. A
 * maximum is that of its rows' maxima, each of which is computed once for all windows that share
 * the row. Of equal zeros it is the first one, as if the window were walked place by place. */
#ifndef PITH_ENGINE_KERNELS_POOL_ROWS_H
#define PITH_ENGINE_KERNELS_POOL_ROWS_H

#include <stdbool.h>

#include "engine/kernels/window_shape.h"

enum { PITH_POOL_ROWS_MOST = 16 }; /* rows and columns of a window */

typedef struct pith__pool_planes {
    const pith__window *window; /* pith__pool_rows_fits */
    const float *x;             /* [channels, in], dense; nothing else is read */
    float *y;                   /* [channels, out], dense */
    int64_t channels;
    const float *counts; /* of means: [out of the last axis], the places of each window along it */
    bool padded;         /* of means: whether the counts include stated padding, and those along
                            axis 0 do */
} pith__pool_planes;

bool pith__pool_rows_fits(const pith__window *w);

/* Families "pool_rows_max" (NaN if one is NaN, -infinity for windows of padding alone) and
 * "pool_rows_mean" (NaN for windows without places). */
typedef void pith__pool_rows_fn(const pith__pool_planes *a);
PITH_KERNEL_DECLARE(pool_rows_max_f32, pith__pool_rows_fn)
PITH_KERNEL_DECLARE(pool_rows_mean_f32, pith__pool_rows_fn)

#endif
