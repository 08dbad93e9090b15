/* detect_levels.h - the sizes at which a face detector looks at a picture.
 *
 * Faces of any size are found by looking at the picture at up to two sizes. Beyond full HD their
 * inputs together have at most three times the pixels of 640x640. A network that takes one size
 * only gets windows of it. */
#ifndef PITH_MODELS_FACES_DETECT_LEVELS_H
#define PITH_MODELS_FACES_DETECT_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "pith/image.h"

/* The most windows of a picture; more are not asked for, whatever its proportions. */
enum { PITH_DETECT_WINDOWS = 64 };

/* A part of the scaled picture, in the top left corner of an input. */
typedef struct pith__detect_window {
    int32_t scaled_width, scaled_height; /* of the whole picture */
    int32_t left, top, width, height;    /* the part that is in the input */
    int64_t whole_width, whole_height;   /* of the input; zeros fill it on the right and below */
    int32_t from_x, to_x, from_y,
        to_y;        /* faces whose middle is here are this window's, in pixels of the scaled
                        picture */
    int32_t largest; /* faces with a longer side are left to another level; 0: there is none */
} pith__detect_window;

typedef struct pith__detect_levels {
    pith__detect_window windows[PITH_DETECT_WINDOWS]; /* the fine level, then the coarse one */
    int count;
    bool weak_only; /* the last window is looked at only if those before have a large face with a
                       low score */
} pith__detect_levels;

/* The windows of a picture of width by height pixels. input: height and width of the only input
 * that the network takes; NULL: it takes any. stride: inputs are multiples of it. False: more
 * windows than there is room for are needed, or an input has a side of more than side_most
 * pixels. */
bool pith__detect_levels_of(pith__detect_levels *levels, int32_t width, int32_t height,
                            const int64_t *input, int stride, int64_t side_most);

/* Width and height of the picture scaled, in its proportions, to fit into so many pixels. */
void pith__detect_fit(int32_t size[2], int32_t width, int32_t height, int64_t most_width,
                      int64_t most_height);

#endif
