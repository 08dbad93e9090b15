/* gguf_blocks.c - see gguf_blocks.h.
 *
 * Blocks of 32 have a scale d (and a least value m), and codes of 4, 5 or 8 bits. In blocks of 256
 * the scales of parts of 32 or 16 elements are codes themselves. */
#include "formats/weights/gguf/gguf_blocks.h"

#include <string.h>

#include "base/half.h"
#include "pith/types.h"

enum { BLOCK = 32, LARGE = 256 };

static float blocks_f16(const uint8_t *p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return pith__f32_of_f16(bits);
}

/* The low halves of 16 bytes are elements 0 to 15, the high ones 16 to 31. */
static int blocks_nibble(const uint8_t *codes, int i) {
    return i < BLOCK / 2 ? codes[i] & 15 : codes[i - BLOCK / 2] >> 4;
}

static void blocks_q4_0(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    const float d = blocks_f16(p);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)(blocks_nibble(p + 2, i) - 8) * d;
}

static void blocks_q4_1(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    const float d = blocks_f16(p), m = blocks_f16(p + 2);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)blocks_nibble(p + 4, i) * d + m;
}

/* The fifth bits of all elements lie in 4 bytes of their own. */
static int blocks_five(const uint8_t *high, int i) {
    return blocks_nibble(high + 4, i) | (high[i / 8] >> (i % 8) & 1) << 4;
}

static void blocks_q5_0(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    const float d = blocks_f16(p);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)(blocks_five(p + 2, i) - 16) * d;
}

static void blocks_q5_1(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    const float d = blocks_f16(p), m = blocks_f16(p + 2);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)blocks_five(p + 4, i) * d + m;
}

static void blocks_q8_0(float *to, const char *block) {
    const float d = blocks_f16((const uint8_t *)block);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)(int8_t)block[2 + i] * d;
}

/* Scale and least value, 6 bits each, of part k of 8, out of 12 bytes. */
static void blocks_part(int *scale, int *least, const uint8_t *s, int k) {
    *scale = k < 4 ? s[k] & 63 : (s[k + 4] & 15) | s[k - 4] >> 6 << 4;
    *least = k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | s[k] >> 6 << 4;
}

/* high: the fifth bits; NULL: there are none. Parts 2j and 2j + 1 are the halves of the same 32
 * bytes. */
static void blocks_k(float *to, const uint8_t *p, const uint8_t *high, const uint8_t *codes) {
    const float d = blocks_f16(p), m = blocks_f16(p + 2);
    for (int k = 0; k < LARGE / BLOCK; k++) {
        int scale, least;
        blocks_part(&scale, &least, p + 4, k);
        const float part_d = d * (float)scale, part_m = m * (float)least;
        for (int i = 0; i < BLOCK; i++) {
            int code = codes[k / 2 * BLOCK + i] >> k % 2 * 4 & 15;
            if (high) code |= (high[i] >> k & 1) << 4;
            to[k * BLOCK + i] = part_d * (float)code - part_m;
        }
    }
}

static void blocks_q4_k(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    blocks_k(to, p, NULL, p + 16);
}

static void blocks_q5_k(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    blocks_k(to, p, p + 16, p + 16 + BLOCK);
}

/* 128 bytes of low halves, 64 with two bits of four elements each, 16 scales of signed bytes, d. */
static void blocks_q6_k(float *to, const char *block) {
    const uint8_t *low = (const uint8_t *)block, *high = low + LARGE / 2;
    const char *scales = block + LARGE / 2 + LARGE / 4;
    const float d = blocks_f16((const uint8_t *)scales + LARGE / 16);
    for (int i = 0; i < LARGE; i++) {
        const int half = i / 128, row = i % 128 / BLOCK, at = i % BLOCK;
        const int code = (low[half * 64 + row % 2 * BLOCK + at] >> row / 2 * 4 & 15) |
                         (high[half * BLOCK + at] >> row * 2 & 3) << 4;
        to[i] = d * (float)(int8_t)scales[i / 16] * (float)(code - 32);
    }
}

/* Two bits of element i of 256, and which of 16 scales it has: 64 bytes hold four elements each. */
static int blocks_two(const uint8_t *codes, int i) {
    return codes[i / 128 * BLOCK + i % BLOCK] >> i % 128 / BLOCK * 2 & 3;
}

/* 16 scales with their least values, 4 bits each, codes, d, m. */
static void blocks_q2_k(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block, *codes = p + LARGE / 16;
    const float d = blocks_f16(codes + LARGE / 4), m = blocks_f16(codes + LARGE / 4 + 2);
    for (int i = 0; i < LARGE; i++)
        to[i] =
            d * (float)(p[i / 16] & 15) * (float)blocks_two(codes, i) - m * (float)(p[i / 16] >> 4);
}

/* Third bits, codes, 16 scales of 6 bits in 12 bytes, d. */
static void blocks_q3_k(float *to, const char *block) {
    const uint8_t *high = (const uint8_t *)block, *codes = high + LARGE / 8,
                  *scales = codes + LARGE / 4;
    const float d = blocks_f16(scales + 12);
    for (int i = 0; i < LARGE; i++) {
        const int k = i / 16;
        const int scale = (k < 8 ? scales[k] & 15 : scales[k - 8] >> 4) |
                          (scales[8 + k % 4] >> k / 4 * 2 & 3) << 4;
        const int code = blocks_two(codes, i) - (high[i % BLOCK] >> i / BLOCK & 1 ? 0 : 4);
        to[i] = d * (float)(scale - 32) * (float)code;
    }
}

/* What the codes of IQ4 stand for. */
static const int8_t blocks_uneven[] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113 };

static void blocks_iq4_nl(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block;
    const float d = blocks_f16(p);
    for (int i = 0; i < BLOCK; i++) to[i] = d * (float)blocks_uneven[blocks_nibble(p + 2, i)];
}

/* d, the high two bits of 8 scales, their low four, codes. */
static void blocks_iq4_xs(float *to, const char *block) {
    const uint8_t *p = (const uint8_t *)block, *codes = p + 8;
    const float d = blocks_f16(p);
    for (int k = 0; k < LARGE / BLOCK; k++) {
        const int scale = (p[4 + k / 2] >> k % 2 * 4 & 15) | (p[2 + k / 4] >> k % 4 * 2 & 3) << 4;
        const float part = d * (float)(scale - 32);
        for (int i = 0; i < BLOCK; i++)
            to[k * BLOCK + i] =
                part * (float)blocks_uneven[blocks_nibble(codes + k * (BLOCK / 2), i)];
    }
}

const char *pith__gguf_form_name(uint32_t type) {
    static const struct {
        uint32_t type;
        const char *name;
    } others[] = {
        { 9, "Q8_1" },   { 15, "Q8_K" },  { 16, "IQ2_XXS" }, { 17, "IQ2_XS" }, { 18, "IQ3_XXS" },
        { 19, "IQ1_S" }, { 21, "IQ3_S" }, { 22, "IQ2_S" },   { 24, "I8" },     { 25, "I16" },
        { 26, "I32" },   { 27, "I64" },   { 28, "F64" },     { 29, "IQ1_M" },  { 34, "TQ1_0" },
        { 35, "TQ2_0" }, { 39, "MXFP4" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].type == type) return others[i].name;
    return "not known";
}

const pith__gguf_form *pith__gguf_form_find(uint32_t type) {
    static const pith__gguf_form forms[] = {
        { 0, PITH_F32, 1, 4, NULL },
        { 1, PITH_F16, 1, 2, NULL },
        { 2, PITH_F32, BLOCK, 2 + BLOCK / 2, blocks_q4_0 },
        { 3, PITH_F32, BLOCK, 4 + BLOCK / 2, blocks_q4_1 },
        { 6, PITH_F32, BLOCK, 6 + BLOCK / 2, blocks_q5_0 },
        { 7, PITH_F32, BLOCK, 8 + BLOCK / 2, blocks_q5_1 },
        { 8, PITH_F32, BLOCK, 2 + BLOCK, blocks_q8_0 },
        { 10, PITH_F32, LARGE, LARGE / 16 + LARGE / 4 + 4, blocks_q2_k },
        { 11, PITH_F32, LARGE, LARGE / 8 + LARGE / 4 + 14, blocks_q3_k },
        { 12, PITH_F32, LARGE, 16 + LARGE / 2, blocks_q4_k },
        { 13, PITH_F32, LARGE, 16 + LARGE / 8 + LARGE / 2, blocks_q5_k },
        { 14, PITH_F32, LARGE, LARGE / 2 + LARGE / 4 + LARGE / 16 + 2, blocks_q6_k },
        { 20, PITH_F32, BLOCK, 2 + BLOCK / 2, blocks_iq4_nl },
        { 23, PITH_F32, LARGE, 8 + LARGE / 2, blocks_iq4_xs },
        { 30, PITH_BF16, 1, 2, NULL },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].type == type) return &forms[i];
    return NULL;
}
