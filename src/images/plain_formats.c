/* plain_formats.c - what needs no library: BMP, and binary PNM (P5 and P6, 8 bits). Source:
 * netpbm's pgm(5) and ppm(5). */
#include "images/plain_formats.h"

#include <stdio.h>
#include <string.h>

#include "images/bmp.h"

static pith_image_outcome plain_fail(pith_image_call *call, pith_image_outcome outcome,
                                     const char *text) {
    snprintf(call->message, sizeof call->message, "%s", text);
    return outcome;
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

/* Bytes that are copied between two looks whether to stop. */
enum { PNM_PIECE = 1 << 22 };

static pith_image_outcome pnm_decode(pith_image_call *call) {
    size_t at = 2, size = call->size;
    uint32_t channels = call->data[1] == '6' ? 3 : 1;
    int64_t width = pnm_number(call->data, size, &at), height = pnm_number(call->data, size, &at);
    int64_t most = pnm_number(call->data, size, &at);
    at++;
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return plain_fail(call, PITH_IMAGE_DAMAGED, "its size is not a positive number below 2^31");
    if (most != 255)
        return plain_fail(call, PITH_IMAGE_UNKNOWN,
                          "only pictures of 8 bits (maximum 255) are supported");
    pith_image_header header = { .width = (uint32_t)width,
                                 .height = (uint32_t)height,
                                 .channels = channels,
                                 .meaning = channels };
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    uint64_t bytes = (uint64_t)width * (uint64_t)height * channels;
    if (at > size || bytes > size - at)
        return plain_fail(call, PITH_IMAGE_DAMAGED, "it is cut off");
    for (uint64_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < PNM_PIECE ? bytes - done : PNM_PIECE;
        if (call->stops && call->stops(call)) return PITH_IMAGE_STOPPED;
        memcpy(to + done, call->data + at + done, piece);
    }
    return PITH_IMAGE_DECODED;
}

const pith_image_codec *pith__plain_codec(const char *format) {
    static const pith_image_codec codecs[] = { { "BMP", pith__bmp_decode, NULL, 0 },
                                               { "PNM", pnm_decode, NULL, 0 } };
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (!strcmp(codecs[i].format, format)) return &codecs[i];
    return NULL;
}
