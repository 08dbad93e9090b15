/* detect_levels.c - see detect_levels.h.
 *
 * YuNet's scores fall for faces of less than 30 and of more than about 400 pixels. A picture that
 * fits into 640x640 is looked at in its own size, and at half of it if there is a large face with a
 * low score. A larger one is looked at scaled to fit into 320x320, for large faces, and in its own
 * size if that is no more than full HD, else at the size that three runs of 640x640 leave. What is
 * small at one of them is large enough at the other. With windows, which may cut faces off, there
 * is a size of 640x640 between them. */
#include "models/faces/detect_levels.h"

#include <math.h>

enum { LEVEL_SIDE = 640, LEVEL_COARSE = 320, LEVEL_FACE_LARGEST = 400 };
/* Pictures of no more than full HD are looked at in their own size. */
enum { LEVEL_OWN_WIDE = 1920, LEVEL_OWN_PIXELS = 1920 * 1080 };
/* The pixels of the fine level of others: three runs without the coarse level, a quarter of one at
 * most. */
enum { LEVEL_FINE_PIXELS = LEVEL_SIDE * LEVEL_SIDE / 4 * 11 };

void pith__detect_fit(int32_t size[2], int32_t width, int32_t height, int64_t most_width,
                      int64_t most_height) {
    /* the tighter side decides */
    const bool wide = (int64_t)width * most_height > (int64_t)height * most_width;
    int64_t other = wide ? height * most_width / width : width * most_height / height;
    if (other < 1) other = 1;
    size[0] = (int32_t)(wide ? most_width : other);
    size[1] = (int32_t)(wide ? other : most_height);
}

static int64_t level_multiple(int64_t x, int64_t of) { return (x + of - 1) / of * of; }

/* The size of the fine level, at most the picture's own. Its padded area is what three runs of
 * 640x640 would take. The factor goes down in steps of one per cent until the padding, which is in
 * whole strides, fits as well; a strip of a picture, which is mostly padding, may take twice as
 * much. */
static void level_fine(int32_t size[2], int32_t width, int32_t height, int stride) {
    if (width <= LEVEL_OWN_WIDE && height <= LEVEL_OWN_WIDE &&
        (int64_t)width * height <= LEVEL_OWN_PIXELS) {
        size[0] = width;
        size[1] = height;
        return;
    }
    double factor = sqrt(LEVEL_FINE_PIXELS / ((double)width * height));
    if (factor > 1) factor = 1;
    for (;; factor *= 0.99) {
        size[0] = (int32_t)(width * factor) > 1 ? (int32_t)(width * factor) : 1;
        size[1] = (int32_t)(height * factor) > 1 ? (int32_t)(height * factor) : 1;
        const int64_t pixels = level_multiple(size[0], stride) * level_multiple(size[1], stride);
        if (pixels <= LEVEL_FINE_PIXELS || size[0] * (int64_t)size[1] == 1) return;
        /* a strip: its padding counts */
        if (size[0] == 1 || size[1] == 1 || size[0] <= stride || size[1] <= stride)
            if (pixels <= 2 * (int64_t)LEVEL_FINE_PIXELS) return;
    }
}

/* Windows along one side overlap by a quarter at least. */
static int level_count(int32_t side, int64_t window) {
    return side <= window ? 1 : 1 + (int)((side - window + window * 3 / 4 - 1) / (window * 3 / 4));
}

/* Where window i of count begins: at a cell of the network's grids, so that windows give the
 * numbers of the whole. */
static int32_t level_begin(int32_t side, int64_t window, int i, int count, int stride) {
    return count == 1 ? 0 : (int32_t)level_multiple((side - window) * i / (count - 1), stride);
}

/* The part of a side that is window i's own: up to the middle of what it shares with the next. */
static void level_part(int32_t *from, int32_t *to, int32_t side, int64_t window, int i, int count,
                       int stride) {
    const int64_t begin = level_begin(side, window, i, count, stride);
    *from = i ? (int32_t)((level_begin(side, window, i - 1, count, stride) + window + begin) / 2)
              : INT32_MIN;
    *to = i + 1 < count
              ? (int32_t)((begin + window + level_begin(side, window, i + 1, count, stride)) / 2)
              : INT32_MAX;
}

/* Adds a level of this size as one window, or as several that overlap where the network's input is
 * fixed. Each window is answerable for a part of the level (from and to), so that a face in two
 * windows is taken from one. False if the level would take too many windows. */
static bool level_add(pith__detect_levels *l, const int32_t size[2], const int64_t *input,
                      int stride, int32_t largest) {
    const int64_t wide = input ? input[1] : level_multiple(size[0], stride),
                  high = input ? input[0] : level_multiple(size[1], stride);
    const int columns = level_count(size[0], wide), rows = level_count(size[1], high);
    if (columns > PITH_DETECT_WINDOWS || rows > PITH_DETECT_WINDOWS ||
        columns * rows > PITH_DETECT_WINDOWS - l->count)
        return false;
    for (int i = 0; i < columns * rows; i++) {
        const int x = i % columns, y = i / columns;
        pith__detect_window *w = &l->windows[l->count++];
        *w = (pith__detect_window){ .scaled_width = size[0],
                                    .scaled_height = size[1],
                                    .left = level_begin(size[0], wide, x, columns, stride),
                                    .top = level_begin(size[1], high, y, rows, stride),
                                    .whole_width = wide,
                                    .whole_height = high,
                                    .largest = largest };
        w->width = size[0] - w->left < wide ? size[0] - w->left : (int32_t)wide;
        w->height = size[1] - w->top < high ? size[1] - w->top : (int32_t)high;
        level_part(&w->from_x, &w->to_x, size[0], wide, x, columns, stride);
        level_part(&w->from_y, &w->to_y, size[1], high, y, rows, stride);
    }
    return true;
}

bool pith__detect_levels_of(pith__detect_levels *levels, int32_t width, int32_t height,
                            const int64_t *input, int stride, int64_t side_most) {
    const bool small = width <= LEVEL_SIDE && height <= LEVEL_SIDE;
    int32_t fine[2] = { width, height },
            coarse[2] = { width > 1 ? width / 2 : 1, height > 1 ? height / 2 : 1 };
    int32_t middle[2] = { width, height }; /* for faces that are cut off by windows */
    levels->count = 0;
    levels->weak_only = small;
    if (!small) {
        level_fine(fine, width, height, stride);
        pith__detect_fit(middle, width, height, LEVEL_SIDE, LEVEL_SIDE);
        pith__detect_fit(coarse, width, height, LEVEL_COARSE, LEVEL_COARSE);
    }
    return fine[0] <= side_most && fine[1] <= side_most &&
           level_add(levels, fine, input, stride, small ? 0 : LEVEL_FACE_LARGEST) &&
           (small || !input || level_add(levels, middle, input, stride, LEVEL_FACE_LARGEST)) &&
           level_add(levels, coarse, input, stride, 0);
}
