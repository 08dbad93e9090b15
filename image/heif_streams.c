/* heif_streams.c - the sizes in the headers of HEVC (ITU-T H.265, 7.3.2.2) and AV1 (AV1 bitstream,
 * 5.5). */
#include <stdlib.h>

#include "heif_check.h"

/* Pictures are coded in blocks of at most so many pixels; what lies beyond the picture's edge is
 * cut off. */
enum { LARGEST_BLOCK = 128 };

typedef struct bits {
    const uint8_t *data;
    size_t size, at; /* at: in bits */
    int escapes;     /* HEVC: a 3 after two zeros is no part of the data */
    int ended;
} bits;

static int bits_one(bits *b) {
    const size_t byte = b->at / 8;
    if (byte >= b->size) {
        b->ended = 1;
        return 0;
    }
    if (b->escapes && b->at % 8 == 0 && byte >= 2 && b->data[byte] == 3 && !b->data[byte - 1] &&
        !b->data[byte - 2]) {
        b->at += 8;
        return bits_one(b);
    }
    return b->data[byte] >> (7 - b->at++ % 8) & 1;
}

static uint64_t bits_number(bits *b, int count) {
    uint64_t n = 0;
    for (int i = 0; i < count; i++) n = n << 1 | (uint64_t)bits_one(b);
    return n;
}

static void bits_skip(bits *b, int count) { (void)bits_number(b, count); }

/* Exp-Golomb: so many zeros, a one, so many bits. */
static uint64_t bits_golomb(bits *b) {
    int zeros = 0;
    while (!bits_one(b) && !b->ended && zeros < 32) zeros++;
    return ((uint64_t)1 << zeros) - 1 + bits_number(b, zeros);
}

pith_image_outcome pith__heif_check_size(pith_image_call *call, uint64_t width, uint64_t height) {
    const uint64_t w = width > LARGEST_BLOCK ? width - LARGEST_BLOCK : 1,
                   h = height > LARGEST_BLOCK ? height - LARGEST_BLOCK : 1;
    if (width > UINT32_MAX || height > UINT32_MAX || w * h > call->max_pixels)
        return pith__codec_fail(
            call, PITH_IMAGE_UNKNOWN,
            "a part of it has %llu x %llu pixels, which is more than max_pixels",
            (unsigned long long)width, (unsigned long long)height);
    return PITH_IMAGE_DECODED;
}

static pith_image_outcome bits_ended(pith_image_call *call) {
    return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "the header of its stream is cut off");
}

/* The unit with the parameters of a sequence; others are passed over. */
pith_image_outcome pith__heif_check_hevc_unit(pith_image_call *call, const uint8_t *unit,
                                              size_t size) {
    enum { SEQUENCE = 33, PROFILE = 88, LEVEL = 8 };
    bits b = { unit, size, 16, 1, 0 };
    int profiles[8], levels[8];
    if (size < 2 || (unit[0] >> 1 & 63) != SEQUENCE) return PITH_IMAGE_DECODED;
    bits_skip(&b, 4);
    const int layers = (int)bits_number(&b, 3);
    bits_skip(&b, 1 + PROFILE + LEVEL);
    if (layers)
        for (int i = 0; i < 8; i++) {
            const int profile = bits_one(&b), level = bits_one(&b);
            profiles[i] = i < layers && profile;
            levels[i] = i < layers && level;
        }
    for (int i = 0; i < layers; i++)
        bits_skip(&b, (profiles[i] ? PROFILE : 0) + (levels[i] ? LEVEL : 0));
    bits_golomb(&b);
    if (bits_golomb(&b) == 3) bits_skip(&b, 1); /* 4:4:4 */
    const uint64_t width = bits_golomb(&b), height = bits_golomb(&b);
    return b.ended ? bits_ended(call) : pith__heif_check_size(call, width, height);
}

pith_image_outcome pith__heif_check_hevc(pith_image_call *call, const uint8_t *data, size_t size) {
    while (size >= 4) {
        const size_t unit =
            (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
        if (unit > size - 4)
            return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "a unit of its stream is cut off");
        pith_image_outcome outcome = pith__heif_check_hevc_unit(call, data + 4, unit);
        if (outcome) return outcome;
        data += 4 + unit;
        size -= 4 + unit;
    }
    return PITH_IMAGE_DECODED;
}

/* What is not the size of timing and operating points. */
static void av1_operating_points(bits *b) {
    int delay = 0, model = 0;
    if (bits_one(b)) { /* timing_info_present_flag */
        bits_skip(b, 64);
        if (bits_one(b)) bits_golomb(b);
        if ((model = bits_one(b))) {
            delay = (int)bits_number(b, 5) + 1;
            bits_skip(b, 42);
        }
    }
    const int first = bits_one(b), count = (int)bits_number(b, 5) + 1;
    for (int i = 0; i < count; i++) {
        bits_skip(b, 12);
        if (bits_number(b, 5) > 7) bits_skip(b, 1);
        if (model && bits_one(b)) bits_skip(b, 2 * delay + 1);
        if (first && bits_one(b)) bits_skip(b, 4);
    }
}

static pith_image_outcome av1_sequence(pith_image_call *call, const uint8_t *data, size_t size) {
    bits b = { data, size, 0, 0, 0 };
    bits_skip(&b, 4);
    if (bits_one(&b))
        bits_skip(&b, 5); /* the short header of still pictures */
    else
        av1_operating_points(&b);
    const int wide = (int)bits_number(&b, 4) + 1, high = (int)bits_number(&b, 4) + 1;
    const uint64_t width = bits_number(&b, wide) + 1, height = bits_number(&b, high) + 1;
    return b.ended ? bits_ended(call) : pith__heif_check_size(call, width, height);
}

pith_image_outcome pith__heif_check_av1(pith_image_call *call, const uint8_t *data, size_t size) {
    enum { SEQUENCE = 1, LAST_KIND = 7, PADDING = 15, EXTENDED = 4, SIZED = 2 };
    for (size_t at = 0; at < size;) {
        const int head = data[at++], kind = head >> 3 & 15;
        uint64_t unit = 0;
        if (head & 0x80 || (kind > LAST_KIND && kind < PADDING) || !kind)
            return pith__codec_fail(call, PITH_IMAGE_DAMAGED,
                                    "its stream has units of an unknown kind");
        if (head & EXTENDED) at++;
        for (int i = 0, more = head & SIZED; more && i < 8; i++) {
            if (at >= size) return bits_ended(call);
            unit |= (uint64_t)(data[at] & 127) << (7 * i);
            more = data[at++] & 128;
        }
        if (!(head & SIZED)) unit = at < size ? size - at : 0;
        if (at > size || unit > size - at)
            return pith__codec_fail(call, PITH_IMAGE_DAMAGED, "a unit of its stream is cut off");
        pith_image_outcome outcome =
            kind == SEQUENCE ? av1_sequence(call, data + at, unit) : PITH_IMAGE_DECODED;
        if (outcome) return outcome;
        at += unit;
    }
    return PITH_IMAGE_DECODED;
}
