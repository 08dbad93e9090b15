/* resize.h - Pillow's resampling of 8-bit pictures, and the geometry around it. */
#ifndef PITH_IMAGES_RESIZE_H
#define PITH_IMAGES_RESIZE_H

#include "base/stop.h"
#include "pith/image.h"

/* Edges of a resized picture are at most this. A strip of one pixel may otherwise ask for billions
 * of pixels. */
#define PITH_RESIZE_MAX_EDGE (1 << 24)

/* A picture is resized to whole_width by whole_height, of which only a part is computed: crops cost
 * nothing. */
typedef struct pith__resize_window {
    int32_t whole_width, whole_height;
    int32_t x, y, width, height;
    pith__stop *stop; /* may be NULL */
} pith__resize_window;

/* pixels: [height, width, channels] of the window. limit: the most weights, and the most pixels
 * between the passes, that are kept in memory. filter: a pith_image_filter, not the default. */
pith_status pith__resize_run(uint8_t *pixels, const pith_image *image,
                             const pith__resize_window *window, int filter, uint64_t limit,
                             const pith_allocator *allocator, pith_error *err);

/* The size that keeps the proportions: the short edge becomes `shortest` and the other one follows,
 * rounded down; with `longest` it is the limit of the long edge. shortest 0: the long edge becomes
 * `longest`. */
pith_status pith__resize_edges(int32_t *new_width, int32_t *new_height, int32_t width,
                               int32_t height, int32_t shortest, int32_t longest, pith_error *err);

/* An edge of `size` pixels cut or padded to `wanted` around its middle: `count` pixels from `from`
 * go to `to`; the rest of the result is zero. */
typedef struct pith__crop {
    int32_t from, to, count;
} pith__crop;
pith__crop pith__crop_edge(int32_t size, int32_t wanted);

#endif
