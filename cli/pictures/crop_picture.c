/* crop_picture.c - see crop_picture.h.
 *
 * The crop is first taken at the picture's own resolution: pixel by pixel where it is not turned,
 * with bilinear interpolation where it is. Then it is resized as a whole, with a filter that skips
 * nothing. */
#include "cli/pictures/crop_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A crop at the picture's resolution has at most so many pixels along a side. A face that is a
 * small part of its crop could ask for any number. */
enum { CROP_SIDE_MOST = 10000 };

crop_place crop_place_of(const pith_face *face, const crop_rule *rule) {
    const double x = (double)face->box[0], y = (double)face->box[1], w = (double)face->box[2],
                 h = (double)face->box[3];
    const double eye_x = ((double)face->landmarks[0][0] + (double)face->landmarks[1][0]) / 2,
                 eye_y = ((double)face->landmarks[0][1] + (double)face->landmarks[1][1]) / 2;
    const double across = (double)face->landmarks[1][0] - (double)face->landmarks[0][0],
                 along = (double)face->landmarks[1][1] - (double)face->landmarks[0][1];
    const double angle = rule->level && (across != 0 || along != 0) ? atan2(along, across) : 0;
    crop_place p = { .height = h * 100 / rule->face, .cosine = cos(angle), .sine = sin(angle) };
    p.width = p.height * rule->width / rule->height;
    /* What is held in place, and where in the crop it is: the face's middle in the middle, or the
     * eyes at a third. */
    double hold_x = x + w / 2, hold_y = y + h / 2, at_x = p.width / 2, at_y = p.height / 2;
    if (rule->position == CROP_THIRDS) hold_x = eye_x, hold_y = eye_y, at_y = p.height / 3;
    at_x += p.width * rule->right / 100;
    at_y += p.height * rule->down / 100;
    p.left = hold_x - (at_x * p.cosine - at_y * p.sine);
    p.top = hold_y - (at_x * p.sine + at_y * p.cosine);
    return p;
}

static const uint8_t *pixel_at(const pith_image *image, int64_t x, int64_t y, const uint8_t *fill) {
    if (x < 0 || y < 0 || x >= image->width || y >= image->height) return fill;
    return image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
}

/* Between the middles of four pixels. Colours count as much as they are opaque. */
static void pixel_between(uint8_t *to, const pith_image *image, double x, double y,
                          const uint8_t *fill) {
    const int64_t ix = (int64_t)floor(x), iy = (int64_t)floor(y);
    const double a = x - (double)ix, b = y - (double)iy;
    const uint8_t *p[4] = { pixel_at(image, ix, iy, fill), pixel_at(image, ix + 1, iy, fill),
                            pixel_at(image, ix, iy + 1, fill),
                            pixel_at(image, ix + 1, iy + 1, fill) };
    if (image->channels == 3) {
        for (int c = 0; c < 3; c++)
            to[c] = (uint8_t)((p[0][c] * (1 - a) + p[1][c] * a) * (1 - b) +
                              (p[2][c] * (1 - a) + p[3][c] * a) * b + 0.5);
        return;
    }
    const double part[4] = { (1 - a) * (1 - b) * p[0][3], a * (1 - b) * p[1][3],
                             (1 - a) * b * p[2][3], a * b * p[3][3] };
    const double alpha = part[0] + part[1] + part[2] + part[3];
    for (int c = 0; c < 3; c++) {
        const double sum =
            part[0] * p[0][c] + part[1] * p[1][c] + part[2] * p[2][c] + part[3] * p[3][c];
        to[c] = alpha > 0 ? (uint8_t)(sum / alpha + 0.5) : p[0][c];
    }
    to[3] = (uint8_t)(alpha + 0.5);
}

static void crop_take(pith_image *crop, const pith_image *image, const crop_place *p,
                      const uint8_t *colour) {
    const bool turned = p->sine != 0;
    const size_t channels = (size_t)image->channels;
    const uint8_t fill[4] = { colour[0], colour[1], colour[2], 255 };
    const int64_t left = (int64_t)floor(p->left + 0.5), top = (int64_t)floor(p->top + 0.5);
    for (int32_t y = 0; y < crop->height; y++)
        for (int32_t x = 0; x < crop->width; x++) {
            uint8_t *to = crop->pixels + ((size_t)y * (size_t)crop->width + (size_t)x) * channels;
            if (!turned) {
                memcpy(to, pixel_at(image, left + x, top + y, fill), channels);
                continue;
            }
            const double u = x + 0.5, v = y + 0.5;
            pixel_between(to, image, p->left + u * p->cosine - v * p->sine - 0.5,
                          p->top + u * p->sine + v * p->cosine - 0.5, fill);
        }
}

static pith_status crop_refuse(pith_error *err, pith_status code, const char *message) {
    err->code = code;
    strcpy(err->message, message);
    return code;
}

pith_status crop_picture(pith_image *crop, const pith_image *image, const crop_place *place,
                         const crop_rule *rule, pith_error *err) {
    const double width = place->width < 1 ? 1 : floor(place->width + 0.5),
                 height = place->height < 1 ? 1 : floor(place->height + 0.5);
    if (!(width <= CROP_SIDE_MOST && height <= CROP_SIDE_MOST && fabs(place->left) < 1e9 &&
          fabs(place->top) < 1e9))
        return crop_refuse(err, PITH_ERR_ARGUMENT,
                           "the crop is too large; give a larger --face-height");
    pith_image taken = { .width = (int32_t)width,
                         .height = (int32_t)height,
                         .channels = image->channels };
    taken.pixels = malloc((size_t)taken.width * (size_t)taken.height * (size_t)taken.channels);
    if (!taken.pixels) return crop_refuse(err, PITH_ERR_MEMORY, "out of memory");
    crop_take(&taken, image, place, rule->fill);
    pith_image_resize_options resize = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    resize.width = rule->width;
    resize.height = rule->height;
    resize.filter = PITH_IMAGE_LANCZOS;
    pith_status status = pith_image_resize(crop, &taken, &resize, err);
    free(taken.pixels);
    return status;
}

static double crop_grey(const pith_image *image, int32_t x, int32_t y) {
    const uint8_t *p =
        image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
    return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]; /* ITU-R 601-2 */
}

double crop_sharpness(const pith_image *image) {
    double sum = 0, squares = 0;
    const double count = (double)(image->width - 2) * (image->height - 2);
    if (image->width < 3 || image->height < 3) return 0;
    for (int32_t y = 1; y < image->height - 1; y++)
        for (int32_t x = 1; x < image->width - 1; x++) {
            double d = crop_grey(image, x - 1, y) + crop_grey(image, x + 1, y) +
                       crop_grey(image, x, y - 1) + crop_grey(image, x, y + 1) -
                       4 * crop_grey(image, x, y);
            sum += d;
            squares += d * d;
        }
    return squares / count - sum / count * (sum / count);
}
