/* plain.c - BMP (uncompressed, 24 or 32 bits) and binary PNM (P5 and P6, 8 bits). Sources: Microsoft's bitmap
 * structures; netpbm's pgm(5) and ppm(5). */
#include "image/plain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pith_image_outcome plain_fail(pith_image_call *call, pith_image_outcome outcome, const char *text) {
    snprintf(call->message, sizeof call->message, "%s", text);
    return outcome;
}

static uint32_t bmp_u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Rows are stored from the bottom up unless the height is negative. The fourth byte of 32 bits has no meaning. */
static pith_image_outcome bmp_decode(pith_image_call *call) {
    const uint8_t *data = call->data;
    if (call->size < 54) return plain_fail(call, PITH_IMAGE_DAMAGED, "it is cut off");
    int64_t offset = bmp_u32(data + 10), width = (int32_t)bmp_u32(data + 18), height = (int32_t)bmp_u32(data + 22);
    int bits = data[28] | data[29] << 8;
    if ((bits != 24 && bits != 32) || bmp_u32(data + 30) != 0)
        return plain_fail(call, PITH_IMAGE_UNKNOWN, "only uncompressed bitmaps of 24 or 32 bits are supported");
    bool bottom_up = height > 0;
    if (!bottom_up) height = -height;
    if (width < 1 || height < 1) return plain_fail(call, PITH_IMAGE_DAMAGED, "its size is not positive");
    int64_t step = (width * bits / 8 + 3) & ~(int64_t)3, left = (int64_t)call->size - offset;
    pith_image_header header = { .width = (uint32_t)width, .height = (uint32_t)height, .channels = 3, .meaning = 3 };
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    if (left < 0 || step > left / height) return plain_fail(call, PITH_IMAGE_DAMAGED, "it is cut off");
    for (int64_t y = 0; y < height; y++) {
        const uint8_t *from = data + offset + step * (bottom_up ? height - 1 - y : y);
        for (int64_t x = 0; x < width; x++, from += bits / 8)
            for (int c = 0; c < 3; c++) *to++ = from[2 - c];
    }
    return PITH_IMAGE_DECODED;
}

/* A number of the header, after white space and comments; -1 if there is none. */
static int64_t pnm_number(const uint8_t *data, size_t size, size_t *at) {
    while (*at < size && (data[*at] <= ' ' || data[*at] == '#')) {
        if (data[*at] == '#')
            while (*at < size && data[*at] != '\n') ++*at;
        else
            ++*at;
    }
    int64_t n = -1;
    for (; *at < size && data[*at] >= '0' && data[*at] <= '9' && n <= INT32_MAX; ++*at)
        n = (n < 0 ? 0 : n) * 10 + data[*at] - '0';
    return n;
}

static pith_image_outcome pnm_decode(pith_image_call *call) {
    size_t at = 2, size = call->size;
    uint32_t channels = call->data[1] == '6' ? 3 : 1;
    int64_t width = pnm_number(call->data, size, &at), height = pnm_number(call->data, size, &at);
    int64_t most = pnm_number(call->data, size, &at);
    at++;
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return plain_fail(call, PITH_IMAGE_DAMAGED, "its size is not a positive number below 2^31");
    if (most != 255) return plain_fail(call, PITH_IMAGE_UNKNOWN, "only pictures of 8 bits (maximum 255) are supported");
    pith_image_header header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .channels = channels, .meaning = channels
    };
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    uint64_t bytes = (uint64_t)width * (uint64_t)height * channels;
    if (at > size || bytes > size - at) return plain_fail(call, PITH_IMAGE_DAMAGED, "it is cut off");
    memcpy(to, call->data + at, bytes);
    return PITH_IMAGE_DECODED;
}

const pith_image_codec *pith_plain_codec(const char *format) {
    static const pith_image_codec codecs[] = { { "BMP", bmp_decode, NULL, 0 }, { "PNM", pnm_decode, NULL, 0 } };
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (!strcmp(codecs[i].format, format)) return &codecs[i];
    return NULL;
}
