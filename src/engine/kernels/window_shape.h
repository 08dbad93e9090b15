/* window_shape.h - sliding windows over the spatial axes of one channel, for convolutions and
 * pools.
 *
 * Window o covers the places o * stride - begin + k * dilation, k < kernel, along each axis; places
 * outside [0, in) are padding. Axes are row-major, the last one fastest. */
#ifndef PITH_ENGINE_KERNELS_WINDOW_SHAPE_H
#define PITH_ENGINE_KERNELS_WINDOW_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/kernel.h"

#define PITH_WINDOW_RANK 8

typedef struct pith__window {
    int rank; /* spatial axes, at least 1 */
    int64_t in[PITH_WINDOW_RANK], out[PITH_WINDOW_RANK], kernel[PITH_WINDOW_RANK],
        stride[PITH_WINDOW_RANK];
    int64_t dilation[PITH_WINDOW_RANK], begin[PITH_WINDOW_RANK], end[PITH_WINDOW_RANK];
} pith__window;

/* Number of places of a list of sizes. */
int64_t pith__window_count(const int64_t *sizes, int rank);

/* Places of window o along axis d that are inside, or also those in the stated padding. */
int64_t pith__window_places(const pith__window *w, int d, int64_t o, bool padded);

/* columns[(c * kernel + k) * (o1 - o0) + o - o0] = x[c][place of k in window o], zero in the
 * padding, for windows [o0, o1) and all kernel places of `channels` channels. x's channels are
 * dense. Elements of `size` (4 or 8) bytes, zero is all zero bits. */
void pith__window_columns(void *columns, const void *x, const pith__window *w, int64_t channels,
                          int64_t o0, int64_t o1, size_t size);
/* The reverse, added: y[c][place of k in window i] += columns[(c * kernel + k) * windows + i] over
 * all windows. */
typedef void pith__window_add_fn(void *y, const void *columns, const pith__window *w,
                                 int64_t channels); /* "window_add" */

/* One channel: y[o] = f over window o. Families "pool_max" (indices: the place in x of the largest,
 * or NULL), "pool_mean" (divided by the places inside, or also those in the stated padding if p is
 * 1), "pool_lp" (the p-norm). */
typedef void pith__pool_fn(void *y, int64_t *indices, const void *x, const pith__window *w,
                           int64_t p);

#endif
