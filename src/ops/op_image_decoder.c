/* op_image_decoder.c - ImageDecoder for the formats that need no codec: BMP (24 and 32 bits, uncompressed) and binary
 * PNM (P5, P6, 8 bits). JPEG, PNG and others are an error that says so. Sources: ONNX ImageDecoder; Microsoft's bitmap
 * structures; netpbm's ppm(5). */
#include <string.h>

#include "ops/op.h"

typedef struct picture {
    int64_t width, height, channels; /* 1 or 3; rows top down */
    const uint8_t *rows;             /* of the first row shown */
    int64_t row_step, pixel_step;
    bool bgr;
} picture;

static uint32_t u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static pith_status read_bmp(picture *p, const uint8_t *data, size_t size, pith_error *err) {
    if (size < 54) return pith_fail(err, PITH_ERR_FORMAT, "the bitmap is cut off");
    int64_t offset = u32(data + 10), width = (int32_t)u32(data + 18), height = (int32_t)u32(data + 22);
    int bits = data[28] | data[29] << 8;
    bool bottom_up = height > 0;
    if (height < 0) height = -height;
    if ((bits != 24 && bits != 32) || u32(data + 30) != 0 || width < 1 || height < 1 || width > 1 << 20 ||
        height > 1 << 20)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "only uncompressed bitmaps of 24 or 32 bits are supported");
    int64_t step = (width * bits / 8 + 3) & ~(int64_t)3;
    if (offset > (int64_t)size || step * height > (int64_t)size - offset)
        return pith_fail(err, PITH_ERR_FORMAT, "the bitmap is cut off");
    *p =
        (picture){ width,    height, 3, data + offset + (bottom_up ? (height - 1) * step : 0), bottom_up ? -step : step,
                   bits / 8, true };
    return PITH_OK;
}

/* A number of the header, after white space and comments; -1 at the end. */
static int64_t pnm_number(const uint8_t *data, size_t size, size_t *at) {
    while (*at < size && (data[*at] <= ' ' || data[*at] == '#')) {
        if (data[*at] == '#')
            while (*at < size && data[*at] != '\n') ++*at;
        else
            ++*at;
    }
    int64_t n = -1;
    for (; *at < size && data[*at] >= '0' && data[*at] <= '9' && n < 1 << 24; ++*at)
        n = (n < 0 ? 0 : n) * 10 + data[*at] - '0';
    return n;
}

static pith_status read_pnm(picture *p, const uint8_t *data, size_t size, pith_error *err) {
    size_t at = 2;
    int64_t channels = data[1] == '6' ? 3 : 1, width = pnm_number(data, size, &at),
            height = pnm_number(data, size, &at);
    int64_t most = pnm_number(data, size, &at);
    at++;
    if (width < 1 || height < 1 || width > 1 << 20 || height > 1 << 20 || most != 255)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "only PNM pictures of 8 bits are supported");
    if (at > size || width * height * channels > (int64_t)(size - at))
        return pith_fail(err, PITH_ERR_FORMAT, "the PNM picture is cut off");
    *p = (picture){ width, height, channels, data + at, width * channels, channels, false };
    return PITH_OK;
}

static pith_status image_decoder_infer(pith_infer *c) {
    pith_str format = pith_node_str(c->node, "pixel_format", "RGB");
    bool grey = pith_str_is(format, "Grayscale");
    if (!grey && !pith_str_is(format, "RGB") && !pith_str_is(format, "BGR"))
        return pith_op_fail(c, "pixel_format '" PITH_STR_FMT "' is unknown", PITH_STR_ARG(format));
    pith_type_set(&c->out[0], PITH_U8, 3, (pith_dim[]){ PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, grey ? 1 : 3 });
    return PITH_OK;
}

/* Grey as ITU-R 601-2 luma in 16-bit fixed point, as Pillow has it. */
static uint8_t luma(const uint8_t rgb[3]) {
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

static pith_status image_decoder_run(pith_run *r) {
    const pith_tensor *in = r->in[0];
    const uint8_t *data = in->data;
    picture p = { 0 };
    if (in->bytes > 2 && data[0] == 'B' && data[1] == 'M')
        PITH_TRY(read_bmp(&p, data, in->bytes, r->err));
    else if (in->bytes > 2 && data[0] == 'P' && (data[1] == '5' || data[1] == '6'))
        PITH_TRY(read_pnm(&p, data, in->bytes, r->err));
    else
        return pith_fail(r->err, PITH_ERR_UNSUPPORTED, "only BMP and PNM pictures are supported");
    pith_str format = pith_node_str(r->node, "pixel_format", "RGB");
    bool grey = pith_str_is(format, "Grayscale"), bgr = pith_str_is(format, "BGR");
    PITH_TRY(pith_run_alloc(r, 0, PITH_U8, 3, (int64_t[]){ p.height, p.width, grey ? 1 : 3 }));
    uint8_t *y = r->out[0]->data;
    for (int64_t i = 0; i < p.width * p.height; i++) {
        const uint8_t *from = p.rows + i / p.width * p.row_step + i % p.width * p.pixel_step;
        uint8_t rgb[3] = { from[0], from[0], from[0] };
        for (int k = 0; p.channels == 3 && k < 3; k++) rgb[k] = from[p.bgr ? 2 - k : k];
        if (grey) *y++ = p.channels == 1 ? from[0] : luma(rgb);
        for (int k = 0; !grey && k < 3; k++) *y++ = rgb[bgr ? 2 - k : k];
    }
    return PITH_OK;
}

const pith_op pith_op_ImageDecoder = {
    .domain = "",
    .name = "ImageDecoder",
    .since = 20,
    .newest = 20,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "B",
    .attrs = "pixel_format string RGB|BGR|Grayscale = RGB",
    .flags = PITH_OP_LATE,
    .infer = image_decoder_infer,
    .run = image_decoder_run,
    .note = "BMP and PNM only",
};
