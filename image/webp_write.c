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

/* libwebp tells how far it is; 0 ends it. */
static int webp_write_progress(int percent, const WebPPicture *picture) {
    pith_image_encode_call *call = picture->user_data;
    (void)percent;
    return !call->stops || !call->stops(call);
}

/* As WebPEncodeRGB and its kin, which nobody can stop. */
static pith_image_outcome webp_write_picture(pith_image_encode_call *call,
                                             WebPMemoryWriter *writer) {
    enum { LOSSLESS_QUALITY = 70 }; /* of WebPEncodeLosslessRGB */
    const int lossless = call->quality == 100, row = (int)(call->width * call->channels);
    WebPConfig config;
    WebPPicture picture;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT,
                          (float)(lossless ? LOSSLESS_QUALITY : call->quality)) ||
        !WebPPictureInit(&picture))
        return PITH_IMAGE_NO_MEMORY;
    config.lossless = picture.use_argb = lossless;
    picture.width = (int)call->width;
    picture.height = (int)call->height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = writer;
    picture.progress_hook = webp_write_progress;
    picture.user_data = call;
    const int done = (call->channels == 3 ? WebPPictureImportRGB(&picture, call->pixels, row)
                                          : WebPPictureImportRGBA(&picture, call->pixels, row)) &&
                     WebPEncode(&config, &picture);
    const int stopped = picture.error_code == VP8_ENC_ERROR_USER_ABORT;
    WebPPictureFree(&picture);
    if (done) return PITH_IMAGE_DECODED;
    return stopped ? PITH_IMAGE_STOPPED : PITH_IMAGE_NO_MEMORY;
}

pith_image_outcome pith__webp_encode(pith_image_encode_call *call) {
    WebPMemoryWriter writer;
    if (call->width > WEBP_MAX_DIMENSION || call->height > WEBP_MAX_DIMENSION) {
        snprintf(call->message, sizeof call->message, "an edge has more than %d pixels",
                 WEBP_MAX_DIMENSION);
        return PITH_IMAGE_UNKNOWN;
    }
    WebPMemoryWriterInit(&writer);
    pith_image_outcome outcome = webp_write_picture(call, &writer);
    const int dots = call->dots[0] > 0 && call->dots[1] > 0;
    const WebPData bare = { writer.mem, writer.size };
    if (!outcome && (call->profile || dots))
        outcome = webp_wrap(call, &bare, dots);
    else if (!outcome && call->write(call, bare.bytes, bare.size))
        outcome = PITH_IMAGE_REFUSED;
    WebPMemoryWriterClear(&writer);
    return outcome;
}
