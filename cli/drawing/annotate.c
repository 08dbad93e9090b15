/* annotate.c - see annotate.h. */
#include "cli/drawing/annotate.h"

#include <string.h>

/* Lines are one pixel wide for this many pixels of the shorter side, and two at least. */
enum { PIXELS_PER_WIDTH = 250, WIDTH_LEAST = 2 };

static const uint8_t green[] = { 0, 255, 0 }, red[] = { 255, 0, 0 }, yellow[] = { 255, 255, 0 },
                     blue[] = { 0, 128, 255 };

/* From x0, y0 up to, but without, x1, y1. */
/* The pixel at x, or the nearest edge of a picture of so many. */
static int32_t annotate_within(double x, double pixels) {
    if (x <= 0) return 0;
    return (int32_t)(x < pixels ? x : pixels);
}

static void fill(pith_image *image, double x0, double y0, double x1, double y1,
                 const uint8_t *colour) {
    const double w = image->width, h = image->height;
    const int32_t left = annotate_within(x0, w), right = annotate_within(x1, w);
    const int32_t top = annotate_within(y0, h), bottom = annotate_within(y1, h);
    for (int32_t y = top; y < bottom; y++)
        for (int32_t x = left; x < right; x++) {
            uint8_t *to = image->pixels +
                          ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
            memcpy(to, colour, 3);
            if (image->channels == 4) to[3] = 255;
        }
}

void annotate_faces(pith_image *image, const pith_faces *faces) {
    const uint8_t *colours[PITH_FACE_LANDMARKS] = { red, blue, yellow, red, blue };
    int32_t side = image->width < image->height ? image->width : image->height;
    const double line =
        side / PIXELS_PER_WIDTH > WIDTH_LEAST ? side / PIXELS_PER_WIDTH : WIDTH_LEAST;
    for (size_t i = 0; i < faces->count; i++) {
        const pith_face *f = &faces->faces[i];
        const double x0 = (double)f->box[0], y0 = (double)f->box[1], x1 = x0 + (double)f->box[2],
                     y1 = y0 + (double)f->box[3];
        fill(image, x0, y0, x1, y0 + line, green);
        fill(image, x0, y1 - line, x1, y1, green);
        fill(image, x0, y0, x0 + line, y1, green);
        fill(image, x1 - line, y0, x1, y1, green);
        for (int k = 0; k < PITH_FACE_LANDMARKS; k++) {
            const double x = (double)f->landmarks[k][0], y = (double)f->landmarks[k][1];
            fill(image, x - line, y - line, x + line, y + line, colours[k]);
        }
    }
}
