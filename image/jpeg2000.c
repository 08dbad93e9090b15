/* jpeg2000.c - JPEG 2000 by OpenJPEG: JP2 files and bare codestreams; grey, RGB and sYCC, with or
 * without alpha, up to 16 bits, components of half width or height.
 *
 * OpenJPEG takes memory by the counts that the codestream declares, before anything is decoded;
 * jpeg2000_cost.c counts first. */
#include <stdlib.h>
#include <string.h>

#include <openjpeg.h>

#include "codec.h"
#include "jpeg2000_cost.h"

typedef struct jpeg2000_state {
    pith_image_call *call;
    size_t at;
} jpeg2000_state;

static OPJ_SIZE_T jpeg2000_read(void *to, OPJ_SIZE_T count, void *user) {
    jpeg2000_state *s = user;
    if (s->at >= s->call->size || pith__decode_stops(s->call)) return (OPJ_SIZE_T)-1;
    if (count > s->call->size - s->at) count = s->call->size - s->at;
    memcpy(to, s->call->data + s->at, count);
    s->at += count;
    return count;
}

static OPJ_OFF_T jpeg2000_skip(OPJ_OFF_T count, void *user) {
    jpeg2000_state *s = user;
    if (count < 0 || (uint64_t)count > s->call->size - s->at) return -1;
    s->at += (size_t)count;
    return count;
}

static OPJ_BOOL jpeg2000_seek(OPJ_OFF_T at, void *user) {
    jpeg2000_state *s = user;
    if (at < 0 || (uint64_t)at > s->call->size) return OPJ_FALSE;
    s->at = (size_t)at;
    return OPJ_TRUE;
}

/* The first error is the cause. */
static void jpeg2000_on_error(const char *text, void *user) {
    pith_image_call *call = user;
    if (!call->message[0]) pith__codec_fail(call, PITH_IMAGE_DAMAGED, "%s", text);
}

static void jpeg2000_on_message(const char *text, void *user) { (void)text, (void)user; }

static uint32_t jpeg2000_u32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

typedef struct jpeg2000_boxes {
    const uint8_t *at, *end;
} jpeg2000_boxes;

/* The next box of a file or of a box: its type, and its contents up to *end. A box is its length
 * and its type; length 1: a length of 8 bytes follows, 0: up to the end. ISO/IEC 15444-1, annex I.
 * NULL: there is none. */
static const uint8_t *jpeg2000_box(jpeg2000_boxes *b, const uint8_t **type, const uint8_t **end) {
    if (b->end - b->at < 16) return NULL;
    const uint8_t *p = b->at;
    uint64_t length = jpeg2000_u32(p), header = length == 1 ? 16 : 8;
    if (length == 1) length = (uint64_t)jpeg2000_u32(p + 8) << 32 | jpeg2000_u32(p + 12);
    if (!length) length = (uint64_t)(b->end - p);
    *type = p + 4;
    const int broken = length < header || length > (uint64_t)(b->end - p);
    *end = broken ? b->end : p + length;
    b->at = *end;
    return broken && memcmp(p + 4, "jp2c", 4) != 0 ? NULL : p + header;
}

/* Where the codestream begins: a file without boxes is one; else the box jp2c holds it. */
static const uint8_t *jpeg2000_codestream(const pith_image_call *call) {
    jpeg2000_boxes file = { call->data, call->data + call->size };
    const uint8_t *type, *end, *p = call->data;
    if (p[0] == 0xFF) return p;
    while ((p = jpeg2000_box(&file, &type, &end)))
        if (!memcmp(type, "jp2c", 4)) return p;
    return NULL;
}

/* Numerators and denominators down and across, then powers of ten; per metre. */
static void jpeg2000_dots(pith_image_header *header, const uint8_t *p) {
    for (int i = 0; i < 2; i++) {
        const unsigned above = (unsigned)p[4 - 4 * i] << 8 | p[5 - 4 * i],
                       below = (unsigned)p[6 - 4 * i] << 8 | p[7 - 4 * i];
        int power = (int8_t)p[9 - i];
        double dots = below ? (double)above / below : 0;
        for (; power > 0; power--) dots *= 10;
        for (; power < 0; power++) dots /= 10;
        header->dots[i] = dots * 0.0254;
    }
}

/* The box jp2h has boxes with the profile (colr, of method 2 or 3) and with the resolution (res,
 * and in it resc). */
static void jpeg2000_details(pith_image_header *header, const pith_image_call *call) {
    jpeg2000_boxes file = { call->data, call->data + call->size }, inner, res;
    const uint8_t *type, *end, *p, *q;
    if (call->data[0] == 0xFF) return;
    while ((p = jpeg2000_box(&file, &type, &end))) {
        if (memcmp(type, "jp2h", 4) != 0) continue;
        inner = (jpeg2000_boxes){ p, end };
        while ((p = jpeg2000_box(&inner, &type, &end)))
            if (!memcmp(type, "colr", 4) && end - p > 3 && (p[0] == 2 || p[0] == 3) &&
                !header->profile) {
                header->profile = p + 3;
                header->profile_size = (size_t)(end - p - 3);
            } else if (!memcmp(type, "res ", 4)) {
                res = (jpeg2000_boxes){ p, end };
                while ((q = jpeg2000_box(&res, &type, &end)))
                    if (!memcmp(type, "res", 3) && end - q >= 10) jpeg2000_dots(header, q);
            }
        return;
    }
}

/* Sample of a component at a pixel of the picture as a byte. */
static int jpeg2000_sample(const opj_image_t *image, int component, uint32_t x, uint32_t y) {
    const opj_image_comp_t *c = &image->comps[component];
    uint32_t cx = x / c->dx < c->w ? x / c->dx : c->w - 1,
             cy = y / c->dy < c->h ? y / c->dy : c->h - 1;
    int64_t value = c->data[(size_t)cy * c->w + cx];
    int bits = (int)c->prec;
    if (c->sgnd) value += (int64_t)1 << (bits - 1);
    if (bits > 8)
        value = (value + ((int64_t)1 << (bits - 9))) >> (bits - 8);
    else if (bits < 8)
        value = value * 255 / ((1 << bits) - 1);
    if (value < 0) return 0;
    return value > 255 ? 255 : (int)value;
}

static uint8_t jpeg2000_clip(double v) {
    if (v < 0) return 0;
    return v > 255 ? 255 : (uint8_t)(v + 0.5);
}

/* Full-range YCbCr of ITU-R BT.601, as in JFIF. */
static void jpeg2000_from_ycc(uint8_t rgb[3]) {
    double y = rgb[0], cb = rgb[1] - 128.0, cr = rgb[2] - 128.0;
    rgb[0] = jpeg2000_clip(y + 1.402 * cr);
    rgb[1] = jpeg2000_clip(y - 0.344136 * cb - 0.714136 * cr);
    rgb[2] = jpeg2000_clip(y + 1.772 * cb);
}

static pith_image_outcome jpeg2000_copy(pith_image_call *call, uint8_t *to,
                                        const opj_image_t *image, uint32_t width, uint32_t height,
                                        int channels) {
    int grey = image->numcomps < 3;
    int ycc = !grey && (image->color_space == OPJ_CLRSPC_SYCC || image->comps[1].dx > 1 ||
                        image->comps[1].dy > 1);
    for (uint32_t y = 0; y < height; y++) {
        if (pith__decode_stops_at(call, y, width)) return PITH_IMAGE_STOPPED;
        for (uint32_t x = 0; x < width; x++, to += channels) {
            for (int c = 0; c < channels && c < 3; c++)
                to[c] = (uint8_t)jpeg2000_sample(image, grey ? 0 : c, x, y);
            if (channels == 4) to[3] = (uint8_t)jpeg2000_sample(image, grey ? 1 : 3, x, y);
            if (ycc) jpeg2000_from_ycc(to);
        }
    }
    return PITH_IMAGE_DECODED;
}

static pith_image_outcome jpeg2000_run(pith_image_call *call, opj_codec_t *codec,
                                       opj_stream_t *stream, opj_image_t **image) {
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, image))
        return PITH_IMAGE_DAMAGED;
    const opj_image_t *read = *image;
    uint32_t count = read->numcomps, channels = count == 1 || count == 3 ? count : 4;
    pith_image_header header = { .width = read->x1 - read->x0,
                                 .height = read->y1 - read->y0,
                                 .channels = channels,
                                 .meaning = channels };
    jpeg2000_details(&header, call);
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    if (!opj_decode(codec, stream, *image)) return PITH_IMAGE_DAMAGED;
    read = *image;
    /* A palette, which OpenJPEG has applied, makes three components of one. */
    if (read->numcomps != count)
        return pith__codec_fail(call, PITH_IMAGE_UNKNOWN, "it has a palette; save it as RGB");
    if (read->color_space == OPJ_CLRSPC_CMYK)
        return pith__codec_fail(call, PITH_IMAGE_UNKNOWN, "its colours are CMYK; save it as RGB");
    for (uint32_t i = 0; i < read->numcomps; i++) {
        const opj_image_comp_t *c = &read->comps[i];
        if (!c->data || !c->w || !c->h || !c->dx || !c->dy || c->prec < 1 || c->prec > 31)
            return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "component %u has no samples", i);
    }
    return jpeg2000_copy(call, to, read, header.width, header.height, (int)channels);
}

pith_image_outcome pith__jpeg2000_decode(pith_image_call *call) {
    jpeg2000_state state = { call, 0 };
    opj_image_t *image = NULL;
    pith_image_outcome outcome =
        pith__jpeg2000_cost(call, jpeg2000_codestream(call), call->data + call->size);
    if (outcome) return outcome;
    opj_codec_t *codec =
        opj_create_decompress(call->data[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    outcome = PITH_IMAGE_NO_MEMORY;
    if (codec && stream) {
        opj_set_error_handler(codec, jpeg2000_on_error, call);
        opj_set_warning_handler(codec, jpeg2000_on_message, NULL);
        opj_set_info_handler(codec, jpeg2000_on_message, NULL);
        opj_stream_set_read_function(stream, jpeg2000_read);
        opj_stream_set_skip_function(stream, jpeg2000_skip);
        opj_stream_set_seek_function(stream, jpeg2000_seek);
        opj_stream_set_user_data(stream, &state, NULL);
        opj_stream_set_user_data_length(stream, call->size);
        outcome = jpeg2000_run(call, codec, stream, &image);
    }
    /* OpenJPEG takes a stream that ends for a damaged one. */
    if (outcome == PITH_IMAGE_DAMAGED && pith__decode_stops(call)) outcome = PITH_IMAGE_STOPPED;
    if (outcome == PITH_IMAGE_DAMAGED && !call->message[0])
        pith__codec_fail(call, outcome, "its codestream is broken");
    opj_image_destroy(image);
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    return outcome;
}
