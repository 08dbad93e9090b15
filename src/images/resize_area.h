/* resize_area.h - resizing by area, as OpenCV's INTER_AREA does it. */
#ifndef PITH_IMAGES_RESIZE_AREA_H
#define PITH_IMAGES_RESIZE_AREA_H

#include <stdbool.h>

#include "base/memory/memory.h"
#include "pith/image.h"

/* A rectangle of pixels; parts of it may lie outside of the picture, where all channels are 0. */
typedef struct pith__area_window {
    int64_t left, top;
    int32_t width, height; /* at least 1 */
} pith__area_window;

/* Resizes the window to width by height, both at least 1: pixels[height, width, 3]. Grey pictures
 * give three equal channels, alpha is dropped. Where the window shrinks in both directions, a pixel
 * is the mean of what it covers; else pixels are interpolated. rounded: to whole numbers, half to
 * even, as OpenCV does with bytes. Takes memory from the arena. PITH_ERR_MEMORY is the only
 * error. */
pith_status pith__area_resize(float *pixels, int32_t width, int32_t height, const pith_image *image,
                              const pith__area_window *window, bool rounded, pith__arena *arena,
                              pith_error *err);

#endif
