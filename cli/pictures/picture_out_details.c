/* picture_out_details.c - see picture_out_details.h. */
#include "cli/pictures/picture_out_details.h"

#include <stdbool.h>
#include <string.h>

static size_t pixels_of(const pith_image *image) {
    return (size_t)image->width * (size_t)image->height;
}

/* In place: pixels move towards the first. */
static void flatten(pith_image *image, const uint8_t colour[3]) {
    const size_t pixels = pixels_of(image);
    for (size_t i = 0; i < pixels; i++) {
        const unsigned alpha = image->pixels[4 * i + 3];
        for (size_t c = 0; c < 3; c++)
            image->pixels[3 * i + c] =
                (uint8_t)((image->pixels[4 * i + c] * alpha + colour[c] * (255 - alpha) + 127) /
                          255);
    }
    image->channels = 3;
}

/* To one channel, if all three are the same everywhere. */
static bool to_grey(pith_image *image) {
    const size_t pixels = pixels_of(image);
    const uint8_t *p = image->pixels;
    for (size_t i = 0; i < pixels; i++)
        if (p[3 * i] != p[3 * i + 1] || p[3 * i] != p[3 * i + 2]) return false;
    for (size_t i = 0; i < pixels; i++) image->pixels[i] = p[3 * i];
    image->channels = 1;
    return true;
}

pith_image_details picture_out_details_fit(pith_image *image, const pith_image_details *details,
                                           const char *format, const uint8_t colour[3]) {
    pith_image_details fitted = *details;
    if (image->channels == 4 && !strcmp(format, "jpeg")) flatten(image, colour);
    const bool grey =
        details->profile_channels == 1 && details->channels == 1 && strcmp(format, "webp") != 0;
    if (details->profile && details->profile_channels != 3 && !(grey && to_grey(image)))
        fitted.profile = NULL;
    return fitted;
}

const char *picture_out_details_lost(const pith_image_details *details,
                                     const pith_image_details *fitted) {
    if (!details->profile || fitted->profile) return *details->colours ? details->colours : NULL;
    return details->profile_channels == 1 ? "its colour profile is for grey"
                                          : "its colour profile is not for RGB";
}
