/* webp_write.c - WebP by libwebp: lossy, and lossless with quality 100; colour profile, and the
 * resolution as EXIF. */
#include <stdio.h>
#include <stdlib.h>

#include <webp/encode.h>
#include <webp/mux.h>

#include "codec.h"

/* The file as a container of the picture, its profile and its resolution. The chunks are not
 * copied. */
static pith_image_outcome webp_wrap(pith_image_encode_call *call, const WebPData *file, int dots) {
    uint8_t exif[PITH_EXIF_DOTS];
    WebPData profile = { call->profile, call->profile_size }, block = { exif, 0 },
             whole = { NULL, 0 };
    WebPMux *mux = WebPMuxNew();
    int good = mux && WebPMuxSetImage(mux, file, 0) == WEBP_MUX_OK;
    if (dots) block.size = pith__exif_of_dots(exif, call->dots);
    if (good && profile.bytes) good = WebPMuxSetChunk(mux, "ICCP", &profile, 0) == WEBP_MUX_OK;
    if (good && dots) good = WebPMuxSetChunk(mux, "EXIF", &block, 0) == WEBP_MUX_OK;
    good = good && WebPMuxAssemble(mux, &whole) == WEBP_MUX_OK;
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    if (!good)
        outcome = PITH_IMAGE_NO_MEMORY;
    else if (call->write(call, whole.bytes, whole.size))
        outcome = PITH_IMAGE_REFUSED;
    WebPDataClear(&whole);
    WebPMuxDelete(mux);
    return outcome;
}

pith_image_outcome pith__webp_encode(pith_image_encode_call *call) {
    uint8_t *file = NULL;
    size_t size;
    const int w = (int)call->width, h = (int)call->height, row = w * (int)call->channels;
    if (call->width > WEBP_MAX_DIMENSION || call->height > WEBP_MAX_DIMENSION) {
        snprintf(call->message, sizeof call->message, "an edge has more than %d pixels",
                 WEBP_MAX_DIMENSION);
        return PITH_IMAGE_UNKNOWN;
    }
    if (call->quality == 100)
        size = call->channels == 3 ? WebPEncodeLosslessRGB(call->pixels, w, h, row, &file)
                                   : WebPEncodeLosslessRGBA(call->pixels, w, h, row, &file);
    else
        size = call->channels == 3
                   ? WebPEncodeRGB(call->pixels, w, h, row, (float)call->quality, &file)
                   : WebPEncodeRGBA(call->pixels, w, h, row, (float)call->quality, &file);
    if (!size) return PITH_IMAGE_NO_MEMORY;
    const int dots = call->dots[0] > 0 && call->dots[1] > 0;
    const WebPData bare = { file, size };
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    if (call->profile || dots)
        outcome = webp_wrap(call, &bare, dots);
    else if (call->write(call, file, size))
        outcome = PITH_IMAGE_REFUSED;
    WebPFree(file);
    return outcome;
}
