/* bmp.c - BMP: palettes of 1, 4 and 8 bits, also run-length coded, and 16, 24 and 32 bits with
 * masks or without; headers of 12 (OS/2) to 124 bytes. Source: Microsoft's bitmap structures. As in
 * Pillow, colours that the palette lacks and pixels that run-length coding leaves out are black and
 * colour 0, and the fourth byte of 32 bits without masks has no meaning. */
#include "images/bmp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BMP_FILE = 14, BMP_OS2 = 12, BMP_INFO = 40, BMP_COLOURS = 256 };
enum { BMP_RGB, BMP_RLE8, BMP_RLE4, BMP_FIELDS, BMP_JPEG, BMP_PNG, BMP_ALPHA_FIELDS };

typedef struct bmp_file {
    pith_image_call *call;
    int64_t width, height, offset; /* offset: of the rows */
    bool bottom_up;
    uint32_t head, bits, packed; /* head: bytes of the header; packed: BMP_RGB and so on */
    uint32_t masks[4];           /* red, green, blue, alpha */
    uint8_t colours[BMP_COLOURS][3];
} bmp_file;

static pith_image_outcome bmp_fail(pith_image_call *call, pith_image_outcome outcome,
                                   const char *text) {
    snprintf(call->message, sizeof call->message, "%s", text);
    return outcome;
}

static uint32_t bmp_u16(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }

static uint32_t bmp_u32(const uint8_t *p) { return bmp_u16(p) | bmp_u16(p + 2) << 16; }

static pith_image_outcome bmp_cut_off(const bmp_file *b) {
    return bmp_fail(b->call, PITH_IMAGE_DAMAGED, "it is cut off");
}

static bool bmp_known(const bmp_file *b) {
    switch (b->packed) {
    case BMP_RGB:
        return b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 16 || b->bits == 24 ||
               b->bits == 32;
    case BMP_RLE8: return b->bits == 8;
    case BMP_RLE4: return b->bits == 4;
    case BMP_FIELDS:
    case BMP_ALPHA_FIELDS: return b->bits == 16 || b->bits == 32;
    default: return false;
    }
}

static pith_image_outcome bmp_header(bmp_file *b) {
    const uint8_t *p = b->call->data + BMP_FILE;
    if (b->call->size < BMP_FILE + BMP_OS2) return bmp_cut_off(b);
    b->head = bmp_u32(p);
    b->offset = bmp_u32(p - 4);
    if (b->head != BMP_OS2 && (b->head < BMP_INFO || b->head > 124))
        return bmp_fail(b->call, PITH_IMAGE_UNKNOWN,
                        "its header has another size than 12 or 40 to 124 bytes");
    if (b->call->size < BMP_FILE + b->head) return bmp_cut_off(b);
    const bool old = b->head == BMP_OS2;
    b->width = old ? (int32_t)bmp_u16(p + 4) : (int32_t)bmp_u32(p + 4);
    b->height = old ? (int32_t)bmp_u16(p + 6) : (int32_t)bmp_u32(p + 8);
    b->bits = bmp_u16(p + (old ? 10 : 14));
    b->packed = old ? BMP_RGB : bmp_u32(p + 16);
    b->bottom_up = b->height > 0;
    if (!b->bottom_up) b->height = -b->height;
    if (!bmp_known(b))
        return bmp_fail(b->call, PITH_IMAGE_UNKNOWN,
                        b->packed == BMP_JPEG || b->packed == BMP_PNG
                            ? "it holds a JPEG or PNG picture for printers"
                            : "1, 4, 8, 16, 24 and 32 bits are known, run-length coding of 4 and "
                              "8, and masks of 16 and 32");
    if (b->width < 1 || b->height < 1)
        return bmp_fail(b->call, PITH_IMAGE_DAMAGED, "its size is not positive");
    return PITH_IMAGE_DECODED;
}

/* Masks are a part of headers of 52 bytes and more, and follow one of 40. */
static pith_image_outcome bmp_masks(bmp_file *b) {
    static const uint32_t usual[2][4] = { { 0x7C00, 0x3E0, 0x1F, 0 },
                                          { 0xFF0000, 0xFF00, 0xFF, 0 } };
    const uint8_t *p = b->call->data + BMP_FILE + BMP_INFO;
    memcpy(b->masks, usual[b->bits == 32], sizeof b->masks);
    if (b->packed != BMP_FIELDS && b->packed != BMP_ALPHA_FIELDS) return PITH_IMAGE_DECODED;
    const int count = b->head >= 56 || b->packed == BMP_ALPHA_FIELDS ? 4 : 3;
    if (b->call->size < (size_t)(BMP_FILE + BMP_INFO + 4 * count)) return bmp_cut_off(b);
    for (int i = 0; i < count; i++) {
        uint32_t mask = b->masks[i] = bmp_u32(p + 4 * i);
        while (mask && !(mask & 1)) mask >>= 1;
        if (mask & (mask + 1))
            return bmp_fail(b->call, PITH_IMAGE_DAMAGED, "a mask of its colours has holes");
    }
    return PITH_IMAGE_DECODED;
}

static pith_image_outcome bmp_palette(bmp_file *b) {
    const size_t entry = b->head == BMP_OS2 ? 3 : 4, most = (size_t)1 << b->bits;
    const uint8_t *p = b->call->data + BMP_FILE + b->head;
    size_t count = b->head == BMP_OS2 ? 0 : bmp_u32(b->call->data + BMP_FILE + 32);
    if (!count || count > most) count = most;
    if (count * entry > b->call->size - BMP_FILE - b->head) return bmp_cut_off(b);
    for (size_t i = 0; i < count; i++, p += entry)
        for (int c = 0; c < 3; c++) b->colours[i][c] = p[2 - c];
    return PITH_IMAGE_DECODED;
}

/* A mask's part of a pixel as a byte: up to 8 bits are stretched to 0 to 255, of more the upper 8
 * are taken. */
static uint8_t bmp_field(uint32_t pixel, uint32_t mask) {
    if (!mask) return 0;
    uint32_t value = pixel & mask;
    while (!(mask & 1)) mask >>= 1, value >>= 1;
    while (mask > 255) mask >>= 1, value >>= 1;
    return (uint8_t)(value * 255 / mask);
}

static void bmp_row(const bmp_file *b, uint8_t *to, const uint8_t *from) {
    for (int64_t x = 0; x < b->width; x++) {
        if (b->bits <= 8) {
            const int64_t bit = x * b->bits;
            const int index =
                from[bit / 8] >> (8 - b->bits - (uint32_t)(bit % 8)) & ((1 << b->bits) - 1);
            memcpy(to, b->colours[index], 3);
        } else if (b->bits == 24) {
            for (int c = 0; c < 3; c++) to[c] = from[3 * x + 2 - c];
        } else {
            const uint32_t pixel = b->bits == 16 ? bmp_u16(from + 2 * x) : bmp_u32(from + 4 * x);
            for (int c = 0; c < 3; c++) to[c] = bmp_field(pixel, b->masks[c]);
            if (b->masks[3]) *(to++ + 3) = bmp_field(pixel, b->masks[3]);
        }
        to += 3;
    }
}

/* Whether the picture is not wanted any more, looked at every BMP_LOOK pixels: before pixel `at`,
 * with which `count` pixels begin. */
static bool bmp_stops(const bmp_file *b, int64_t at, int64_t count) {
    enum { BMP_LOOK = 1 << 16 };
    return b->call->stops && (at + count) / BMP_LOOK != at / BMP_LOOK && b->call->stops(b->call);
}

static pith_image_outcome bmp_rows(const bmp_file *b, uint8_t *to, size_t row) {
    const int64_t step = (b->width * b->bits + 31) / 32 * 4,
                  left = (int64_t)b->call->size - b->offset;
    if (left < 0 || step > left / b->height) return bmp_cut_off(b);
    for (int64_t y = 0; y < b->height; y++) {
        if (bmp_stops(b, y * b->width, b->width)) return PITH_IMAGE_STOPPED;
        bmp_row(b, to + (size_t)y * row,
                b->call->data + b->offset + step * (b->bottom_up ? b->height - 1 - y : y));
    }
    return PITH_IMAGE_DECODED;
}

/* Run-length coding: a count and a byte of pixels; count 0 is a command: 0 ends a row, 1 the
 * picture, 2 moves right and up, more is a number of pixels as they are, filled up to 16 bits.
 * Pixels beyond the picture are dropped. */
typedef struct bmp_runs {
    const bmp_file *file;
    uint8_t *pixels;
    int64_t x, y; /* y: from below */
} bmp_runs;

static void bmp_put(bmp_runs *r, int index) {
    const bmp_file *b = r->file;
    if (r->x < b->width && r->y < b->height)
        memcpy(r->pixels +
                   (size_t)((b->bottom_up ? b->height - 1 - r->y : r->y) * b->width + r->x) * 3,
               b->colours[index], 3);
    r->x++;
}

/* Pixel i of bytes that hold one or two each. */
static int bmp_index(const bmp_file *b, const uint8_t *from, int i) {
    if (b->bits == 8) return from[i];
    return i % 2 ? from[i / 2] & 15 : from[i / 2] >> 4;
}

/* Run-length coded pixels: pairs of a count and an index; count 0 is an escape (0: end of the row,
 * 1: end of the picture, 2: a jump, n: n indices as they are, filled up to two bytes). Pixels that
 * are jumped over have the first colour, and what leaves the picture is dropped. */
static pith_image_outcome bmp_unpack(const bmp_file *b, uint8_t *to) {
    bmp_runs r = { b, to, 0, 0 };
    const uint8_t *data = b->call->data;
    const int64_t size = (int64_t)b->call->size, pixels = b->width * b->height;
    for (int64_t i = 0; i < pixels; i++) {
        if (bmp_stops(b, i, 1)) return PITH_IMAGE_STOPPED;
        memcpy(to + 3 * i, b->colours[0], 3);
    }
    for (int64_t at = b->offset; r.y < b->height;) {
        if (at + 2 > size) return bmp_cut_off(b);
        if (bmp_stops(b, 32 * at, 64)) return PITH_IMAGE_STOPPED;
        const int count = data[at], command = data[at + 1];
        at += 2;
        const int pixels_as_they_are = !count && command > 2 ? command : 0;
        int bytes = b->bits == 8 ? pixels_as_they_are : (pixels_as_they_are + 1) / 2;
        if (!count && command == 2) bytes = 2;
        if (at + bytes > size) return bmp_cut_off(b);
        for (int i = 0; i < count; i++)
            bmp_put(&r, bmp_index(b, data + at - 1, b->bits == 8 ? 0 : i % 2));
        for (int i = 0; i < pixels_as_they_are; i++) bmp_put(&r, bmp_index(b, data + at, i));
        if (!count && command == 0) r.x = 0, r.y++;
        if (!count && command == 1) break;
        if (!count && command == 2) r.x += data[at], r.y += data[at + 1];
        at += bytes + (bytes & 1);
    }
    return PITH_IMAGE_DECODED;
}

/* The resolution, and in headers of 124 bytes the colour profile, where their colour space says so.
 */
static void bmp_details(pith_image_header *header, const bmp_file *b) {
    const uint8_t *p = b->call->data + BMP_FILE;
    if (b->head < BMP_INFO) return;
    for (int i = 0; i < 2; i++) header->dots[i] = (int32_t)bmp_u32(p + 24 + 4 * i) * 0.0254;
    if (b->head < 124) return;
    const uint64_t from = BMP_FILE + (uint64_t)bmp_u32(p + 112), size = bmp_u32(p + 116);
    if (!memcmp(p + 56, "KNIL", 4)) header->colours = "its colour profile is in another file";
    if (memcmp(p + 56, "DEBM", 4) != 0) return;
    if (from + size > b->call->size) {
        header->colours = "its colour profile is damaged";
        return;
    }
    header->profile = b->call->data + from;
    header->profile_size = size;
}

pith_image_outcome pith__bmp_decode(pith_image_call *call) {
    bmp_file b = { .call = call };
    pith_image_outcome outcome = bmp_header(&b);
    if (!outcome) outcome = b.bits <= 8 ? bmp_palette(&b) : bmp_masks(&b);
    if (outcome) return outcome;
    const uint32_t channels = b.masks[3] ? 4 : 3;
    pith_image_header header = { .width = (uint32_t)b.width,
                                 .height = (uint32_t)b.height,
                                 .channels = channels,
                                 .meaning = channels };
    bmp_details(&header, &b);
    uint8_t *to = call->begin(call, &header);
    if (!to) return PITH_IMAGE_REFUSED;
    return b.packed == BMP_RLE8 || b.packed == BMP_RLE4
               ? bmp_unpack(&b, to)
               : bmp_rows(&b, to, (size_t)b.width * channels);
}
