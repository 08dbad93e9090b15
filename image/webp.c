/* webp.c - WebP by libwebp: lossy and lossless; of an animation the first frame on its canvas. */
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "codec.h"

/* Pixels of a picture that is worth to be decoded in pieces: some tens of milliseconds. */
enum { WEBP_LARGE = 1 << 20 };

/* Chunks lie in the file's bytes, so they stay when the demuxer goes. */
static void webp_details(pith_image_header *header, const WebPData *data) {
    WebPDemuxer *demuxer = WebPDemux(data);
    WebPChunkIterator chunk;
    if (demuxer && WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) {
        pith__exif_read(header, chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    if (demuxer && WebPDemuxGetChunk(demuxer, "ICCP", 1, &chunk)) {
        header->profile = chunk.chunk.bytes;
        header->profile_size = chunk.chunk.size;
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(demuxer);
}

static pith_image_outcome webp_fail(pith_image_call *call, VP8StatusCode status) {
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY: return PITH_IMAGE_NO_MEMORY;
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "it is cut off");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return pith__codec_fail(call, PITH_IMAGE_UNKNOWN,
                                "it has a feature that libwebp does not know");
    default: return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "its bit stream is broken");
    }
}

static pith_image_outcome webp_first_frame(pith_image_call *call, const WebPData *data, uint8_t *to,
                                           size_t size) {
    WebPAnimDecoderOptions options;
    WebPAnimDecoderOptionsInit(&options);
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(data, &options);
    uint8_t *canvas;
    int time;
    int done = decoder && WebPAnimDecoderGetNext(decoder, &canvas, &time);
    if (done) memcpy(to, canvas, size);
    WebPAnimDecoderDelete(decoder);
    return done ? PITH_IMAGE_DECODED
                : pith__codec_fail(call, PITH_IMAGE_DAMAGED, "its first frame is broken");
}

/* Decodes as if the file came piece by piece, so that it can be stopped in between. Few bytes may
 * be many pixels, so the pieces are parts of the file. Anything but success is told by WebPDecode,
 * which decodes again. */
static pith_image_outcome webp_pieces(pith_image_call *call, WebPDecoderConfig *config) {
    enum { PIECES = 128, LEAST = 512, MOST = 1 << 16 };
    size_t piece = call->size / PIECES, size = 0;
    if (piece < LEAST) piece = LEAST;
    if (piece > MOST) piece = MOST;
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
    VP8StatusCode status = decoder ? VP8_STATUS_SUSPENDED : VP8_STATUS_OUT_OF_MEMORY;
    int stopped = 0;
    while (status == VP8_STATUS_SUSPENDED && size < call->size &&
           !(stopped = pith__decode_stops(call))) {
        size = call->size - size < piece ? call->size : size + piece;
        status = WebPIUpdate(decoder, call->data, size);
    }
    WebPIDelete(decoder);
    if (stopped) return PITH_IMAGE_STOPPED;
    return status ? PITH_IMAGE_UNKNOWN : PITH_IMAGE_DECODED;
}

pith_image_outcome pith__webp_decode(pith_image_call *call) {
    WebPDecoderConfig config;
    WebPInitDecoderConfig(&config);
    VP8StatusCode status = WebPGetFeatures(call->data, call->size, &config.input);
    if (status) return webp_fail(call, status);
    WebPData data = { call->data, call->size };
    int animated = config.input.has_animation;
    uint32_t channels = animated || config.input.has_alpha ? 4 : 3;
    pith_image_header header = { .width = (uint32_t)config.input.width,
                                 .height = (uint32_t)config.input.height,
                                 .channels = channels,
                                 .meaning = config.input.has_alpha ? 4 : 3 };
    webp_details(&header, &data);
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    size_t row = (size_t)header.width * channels, size = row * header.height;
    if (animated) return webp_first_frame(call, &data, to, size);
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){ .rgba = to, .stride = (int)row, .size = size };
    if (call->stops && (uint64_t)header.width * header.height > WEBP_LARGE) {
        const pith_image_outcome outcome = webp_pieces(call, &config);
        if (outcome != PITH_IMAGE_UNKNOWN) return outcome;
    }
    status = WebPDecode(call->data, call->size, &config);
    return status ? webp_fail(call, status) : PITH_IMAGE_DECODED;
}
