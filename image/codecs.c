/* codecs.c - the table of libpith_image.so. */
#include "codec.h"

enum { GREY = 1u << 1, RGB = 1u << 3, RGBA = 1u << 4 };

static const pith_image_codec codecs[] = {
    { "JPEG", pith__jpeg_decode, pith__jpeg_encode, GREY | RGB },
    { "PNG", pith__png_decode, pith__png_encode, GREY | RGB | RGBA },
    { "WebP", pith__webp_decode, pith__webp_encode, RGB | RGBA },
    { "TIFF", pith__tiff_decode, NULL, 0 },
    { "JPEG 2000", pith__jpeg2000_decode, NULL, 0 },
    { "GIF", pith__gif_decode, NULL, 0 },
};

__attribute__((visibility("default")))
const pith_image_module pith_image_codecs = { PITH_IMAGE_MODULE_ABI, PITH_IMAGE_VERSION, codecs,
                                              sizeof codecs / sizeof codecs[0] };
