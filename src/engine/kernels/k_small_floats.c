/* k_small_floats.c - see small_floats.h: loops of sixteen lanes. A tail goes through arrays of
 * sixteen. */
#include "engine/kernels/small_floats.h"

#include "base/half.h"
#include "engine/kernels/vec.h"

void PITH_K(widen_f16)(const uint16_t *x, float *y, size_t n) {
    for (; n >= 16; n -= 16, x += 16, y += 16) vf_store(y, vf_load_f16(x));
    if (n > 0) vf_store_n(y, vf_load_f16_n(x, n), n);
}

void PITH_K(narrow_f16)(const float *x, uint16_t *y, size_t n) {
    uint16_t rest[16];
    for (; n >= 16; n -= 16, x += 16, y += 16) vf_store_f16(y, vf_load(x));
    if (n == 0) return;
    vf_store_f16(rest, vf_load_n(x, n));
    memcpy(y, rest, n * sizeof *y);
}

/* What turns x into the integer next to x / scale, within [low, high], ties to even. Where scale is
 * between 2^-60 and 2^60 there is no division: the reciprocal is a sum of two floats, and the
 * product is on the side of every half on which the rounded quotient is. This was checked for all
 * scales and all bytes; it fails for one mantissa, which divides. */
#if defined(PITH_LEVEL_scalar)
#define SMALL_DIVIDES true /* less code */
#else
#define SMALL_DIVIDES false
#endif
typedef struct small_divisor {
    vf scale, inverse, rest, low, high;
    vi zero;
    bool divides;
} small_divisor;

PITH_INLINE small_divisor small_divisor_of(float scale, float low, float high, int32_t zero) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    const bool divides =
        SMALL_DIVIDES || !(scale >= 0x1p-60f && scale <= 0x1p60f) || (bits & 0x7FFFFF) == 0x7FFFFF;
    const vf all = vf_set1(scale), one = vf_set1(1.0f), inverse = vf_div(one, all);
    return (small_divisor){ .scale = all,
                            .inverse = inverse,
                            .rest = vf_mul(vf_fma(vf_neg(inverse), all, one), inverse),
                            .low = vf_set1(divides ? low : low * scale),
                            .high = vf_set1(divides ? high : high * scale),
                            .zero = vi_set1(zero),
                            .divides = divides };
}

/* Rounds x / scale within [low, high]. Its low byte is the result: the sum with 1.5 * 2^23 is
 * rounded to an integer, which is in its lowest bits. Without division x is limited before it is
 * scaled, by limits that were multiplied by the scale. */
PITH_INLINE vi quantized(vf x, const small_divisor *d, const bool divides) {
    if (divides) x = vf_div(x, d->scale);
    x = vf_min(vf_max(x, d->low), d->high);
    if (!divides) x = vf_fma(x, d->inverse, vf_mul(x, d->rest));
    return vi_add(vi_bits(vf_add(x, vf_set1(0x1.8p23f))), d->zero);
}

PITH_INLINE void quantize_all(const float *x, uint8_t *y, size_t n, const small_divisor *d,
                              const bool divides) {
    uint8_t rest[16];
    for (; n >= 16; n -= 16, x += 16, y += 16) vi_store_u8(y, quantized(vf_load(x), d, divides));
    if (n == 0) return;
    vi_store_u8(rest, quantized(vf_load_n(x, n), d, divides));
    memcpy(y, rest, n);
}

void PITH_K(quantize_u8)(const float *x, uint8_t *y, size_t n, float scale, float low, float high,
                         int32_t zero) {
    const small_divisor d = small_divisor_of(scale, low, high, zero);
    if (SMALL_DIVIDES || d.divides)
        quantize_all(x, y, n, &d, true);
    else
        quantize_all(x, y, n, &d, false);
}

/* 16 bytes as numbers: in the lowest bits of 2^23 they are added to it. */
PITH_INLINE vf small_term(const uint8_t *x, const pith__quantized_term *t) {
    const vf sum = vf_bits(vi_xor(vi_load_u8(x), vi_set1(0x4B000000 | t->flip)));
    return vf_mul(vf_sub(sum, vf_set1(0x1p23f + t->zero)), vf_set1(t->scale));
}

PITH_INLINE void quantized_add_all(const pith__quantized_sum *s, size_t first, size_t n,
                                   const small_divisor *d, const bool divides) {
    const uint8_t *a = s->a.x + first, *b = s->b.x + first;
    const pith__quantized_term a_term = s->a, b_term = s->b;
    uint8_t *y = s->y + first, rest[3][16] = { { 0 } };
    for (; n >= 16; n -= 16, a += 16, b += 16, y += 16)
        vi_store_u8(y,
                    quantized(vf_add(small_term(a, &a_term), small_term(b, &b_term)), d, divides));
    if (n == 0) return;
    memcpy(rest[0], a, n);
    memcpy(rest[1], b, n);
    vi_store_u8(
        rest[2],
        quantized(vf_add(small_term(rest[0], &a_term), small_term(rest[1], &b_term)), d, divides));
    memcpy(y, rest[2], n);
}

void PITH_K(quantized_add_u8)(const pith__quantized_sum *s, size_t first, size_t n) {
    const small_divisor d = small_divisor_of(s->scale, s->low, s->high, s->zero);
    if (SMALL_DIVIDES || d.divides)
        quantized_add_all(s, first, n, &d, true);
    else
        quantized_add_all(s, first, n, &d, false);
}

#define DEQUANTIZE(name, LOAD)                                                                     \
    void PITH_K(name)(const uint8_t *x, float *y, size_t n, float scale, float zero) {             \
        vf s = vf_set1(scale), z = vf_set1(zero);                                                  \
        uint8_t rest[16] = { 0 };                                                                  \
        for (; n >= 16; n -= 16, x += 16, y += 16)                                                 \
            vf_store(y, vf_mul(vf_sub(vf_of_vi(LOAD(x)), z), s));                                  \
        if (n == 0) return;                                                                        \
        memcpy(rest, x, n);                                                                        \
        vf_store_n(y, vf_mul(vf_sub(vf_of_vi(LOAD(rest)), z), s), n);                              \
    }
DEQUANTIZE(dequantize_u8, vi_load_u8)
DEQUANTIZE(dequantize_i8, vi_load_i8)

void PITH_K(range_f32)(const float *x, size_t n, float *low, float *high) {
    vf l = vf_set1(*low), h = vf_set1(*high);
    for (; n >= 16; n -= 16, x += 16) {
        vf v = vf_load(x);
        l = vf_min(v, l);
        h = vf_max(v, h);
    }
    if (n > 0) {
        vm there = vm_first(n);
        vf v = vf_load_n(x, n);
        l = vf_select(there, vf_min(v, l), l);
        h = vf_select(there, vf_max(v, h), h);
    }
    *low = vf_hmin(l);
    *high = vf_hmax(h);
}
