/* webp.c - WebP by libwebp: lossy and lossless; of an animation the first frame on its canvas. */
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "codec.h"

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
    status = WebPDecode(call->data, call->size, &config);
    return status ? webp_fail(call, status) : PITH_IMAGE_DECODED;
}
