/* codec.h - the decoders of the modules, and what they share. */
#ifndef PITH_IMAGE_CODEC_H
#define PITH_IMAGE_CODEC_H

#include "pith/image_module.h"

pith_image_outcome pith__jpeg_decode(pith_image_call *call);
pith_image_outcome pith__png_decode(pith_image_call *call);
pith_image_outcome pith__webp_decode(pith_image_call *call);
pith_image_outcome pith__tiff_decode(pith_image_call *call);
pith_image_outcome pith__jpeg2000_decode(pith_image_call *call);
pith_image_outcome pith__gif_decode(pith_image_call *call);

pith_image_outcome pith__jpeg_encode(pith_image_encode_call *call);
pith_image_outcome pith__png_encode(pith_image_encode_call *call);
pith_image_outcome pith__webp_encode(pith_image_encode_call *call);

/* Pixels that are decoded or encoded between two looks whether to stop: a millisecond or so. */
enum { PITH_STOP_PIXELS = 1 << 16 };

/* Whether the picture is not wanted any more. */
static inline int pith__decode_stops(pith_image_call *call) {
    return call->stops && call->stops(call);
}
/* The same before row y of so many pixels; it is not looked for before each of short rows. */
static inline int pith__decode_stops_at(pith_image_call *call, uint32_t y, uint32_t width) {
    return call->stops && y % (PITH_STOP_PIXELS / (width + 1) + 1) == 0 && call->stops(call);
}
static inline int pith__encode_stops_at(pith_image_encode_call *call, uint32_t y) {
    return call->stops && y % (PITH_STOP_PIXELS / (call->width + 1) + 1) == 0 && call->stops(call);
}

/* Sets the message, without control characters, and returns the outcome. */
pith_image_outcome pith__codec_fail(pith_image_call *call, pith_image_outcome outcome,
                                    const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The orientation of an EXIF block (a TIFF header and what follows) and, where the header has none,
 * its resolution. */
void pith__exif_read(pith_image_header *header, const uint8_t *exif, size_t size);
/* An EXIF block that says nothing but a resolution. Returns its size. */
enum { PITH_EXIF_DOTS = 66 };
size_t pith__exif_of_dots(uint8_t exif[PITH_EXIF_DOTS], const double dots[2]);

/* a * b / 255 for bytes, rounded to nearest. */
static inline uint32_t pith__mul255(uint32_t a, uint32_t b) {
    uint32_t t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

#endif
