/* webp_write.c - WebP by libwebp: lossy, and lossless with quality 100. */
#include <stdio.h>
#include <stdlib.h>

#include <webp/encode.h>

#include "codec.h"

pith_image_outcome pith_webp_encode(pith_image_encode_call *call) {
    uint8_t *file = NULL;
    size_t size;
    const int w = (int)call->width, h = (int)call->height, row = w * (int)call->channels;
    if (call->width > WEBP_MAX_DIMENSION || call->height > WEBP_MAX_DIMENSION) {
        snprintf(call->message, sizeof call->message, "an edge has more than %d pixels", WEBP_MAX_DIMENSION);
        return PITH_IMAGE_UNKNOWN;
    }
    if (call->quality == 100)
        size = call->channels == 3 ? WebPEncodeLosslessRGB(call->pixels, w, h, row, &file)
                                   : WebPEncodeLosslessRGBA(call->pixels, w, h, row, &file);
    else
        size = call->channels == 3 ? WebPEncodeRGB(call->pixels, w, h, row, (float)call->quality, &file)
                                   : WebPEncodeRGBA(call->pixels, w, h, row, (float)call->quality, &file);
    if (!size) return PITH_IMAGE_NO_MEMORY;
    pith_image_outcome outcome = call->write(call, file, size) ? PITH_IMAGE_REFUSED : PITH_IMAGE_DECODED;
    WebPFree(file);
    return outcome;
}
