/* k_small.c - see small.h: loops of sixteen lanes. A tail goes through arrays of sixteen. */
#include "kernels/small.h"

#include "base/half.h"
#include "kernels/vec.h"

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

PITH_INLINE vi quantized(vf x, vf scale, vf low, vf high, vi zero) {
    vf v = vf_min(vf_max(vf_div(x, scale), low), high);
    return vi_add(vi_of_vf(vf_round(v)), zero);
}

void PITH_K(quantize_u8)(const float *x, uint8_t *y, size_t n, float scale, float low, float high, int32_t zero) {
    vf s = vf_set1(scale), l = vf_set1(low), h = vf_set1(high);
    vi z = vi_set1(zero);
    uint8_t rest[16];
    for (; n >= 16; n -= 16, x += 16, y += 16) vi_store_u8(y, quantized(vf_load(x), s, l, h, z));
    if (n == 0) return;
    vi_store_u8(rest, quantized(vf_load_n(x, n), s, l, h, z));
    memcpy(y, rest, n);
}

#define DEQUANTIZE(name, LOAD)                                                                                         \
    void PITH_K(name)(const uint8_t *x, float *y, size_t n, float scale, float zero) {                                 \
        vf s = vf_set1(scale), z = vf_set1(zero);                                                                      \
        uint8_t rest[16] = { 0 };                                                                                      \
        for (; n >= 16; n -= 16, x += 16, y += 16) vf_store(y, vf_mul(vf_sub(vf_of_vi(LOAD(x)), z), s));               \
        if (n == 0) return;                                                                                            \
        memcpy(rest, x, n);                                                                                            \
        vf_store_n(y, vf_mul(vf_sub(vf_of_vi(LOAD(rest)), z), s), n);                                                  \
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
