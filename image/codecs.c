/* codecs.c - the module's table of decoders, and what decoders share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"

enum { GREY = 1u << 1, RGB = 1u << 3, RGBA = 1u << 4 };

static const pith_image_codec codecs[] = {
    { "JPEG", pith_jpeg_decode, pith_jpeg_encode, GREY | RGB },
    { "PNG", pith_png_decode, pith_png_encode, GREY | RGB | RGBA },
    { "WebP", pith_webp_decode, pith_webp_encode, RGB | RGBA },
    { "TIFF", pith_tiff_decode, NULL, 0 },
    { "JPEG 2000", pith_jpeg2000_decode, NULL, 0 },
};

__attribute__((visibility("default")))
const pith_image_module pith_image_codecs = { PITH_IMAGE_MODULE_ABI, PITH_IMAGE_VERSION, codecs,
                                              sizeof codecs / sizeof codecs[0] };

pith_image_outcome pith_codec_fail(pith_image_call *call, pith_image_outcome outcome, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(call->message, sizeof call->message, format, args);
    va_end(args);
    size_t length = strlen(call->message);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)call->message[i] < ' ' || (unsigned char)call->message[i] > '~') call->message[i] = ' ';
    while (length && call->message[length - 1] == ' ') call->message[--length] = 0;
    return outcome;
}
