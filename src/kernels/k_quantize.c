/* k_quantize.c - f32 to integers by row or column. x / scale is x times one reciprocal; adding 1.5 * 2^23 in the same
 * fused step rounds it and leaves the integer in the low bits. */
#include "kernels/quantize.h"

#include <stdbool.h>

#include "kernels/vmath.h"

/* Ranges below this have reciprocals beyond f32: they count as nothing. */
#define RANGE_MIN 0x1p-100f

PITH_INLINE vf take(const float *p, int64_t n) { return n >= 16 ? vf_load(p) : vf_load_n(p, (size_t)n); }

/* round(x * inverse + zero) within [low, high]; zero, low and high are integers plus PITH_ROUND_MAGIC, NaN gives low.
 */
PITH_INLINE vi rounded(vf x, vf inverse, vf zero, vf low, vf high) {
    return vi_bits(vf_min(vf_max(vf_fma(x, inverse, zero), low), high));
}

/* Least and largest of a row and 0, without element `out`. */
typedef struct range {
    float low, high;
} range;
PITH_INLINE range range_of(const float *x, int64_t n, int64_t out) {
    vf low = vf_zero(), high = vf_zero(); /* missing lanes are 0 */
    for (int64_t i = 0; i < n; i += 16) {
        vf v = take(x + i, n - i);
        if (out - i >= 0 && out - i < 16) v = vf_select(vf_eq(vf_iota(), vf_set1((float)(out - i))), vf_zero(), v);
        low = vf_min(v, low);
        high = vf_max(v, high);
    }
    return (range){ vf_hmin(low), vf_hmax(high) };
}

/* The first element of magnitude top; 0 if there is none. */
PITH_INLINE int64_t find(const float *x, int64_t n, float top) {
    for (int64_t i = 0; i < n; i += 16) {
        if (!vm_any(vf_eq(vf_abs(take(x + i, n - i)), vf_set1(top)))) continue;
        for (int64_t j = i; j < n; j++) {
            if (fabsf(x[j]) == top) return j;
        }
    }
    return 0;
}

PITH_INLINE int32_t first_lane(vi v) {
    int32_t lanes[16];
    vi_store(lanes, v);
    return lanes[0];
}

void PITH_K(quantize_rows_u8)(const pith_quantize_rows *a) {
    const vf bottom = vf_set1(PITH_ROUND_MAGIC), top = vf_set1(PITH_ROUND_MAGIC + 255.0f);
    for (int64_t row = 0; row < a->rows; row++) {
        const float *x = a->x + row * a->ldx;
        uint8_t *q = a->q + row * a->ldq;
        range all = range_of(x, a->n, -1), most;
        float largest = all.high > -all.low ? all.high : -all.low;
        int64_t at = find(x, a->n, largest);
        most = range_of(x, a->n, at);
        float width = most.high - most.low;
        if (!(width >= largest * 0.01f)) width = largest * 0.01f;
        bool flat = !(width >= RANGE_MIN);
        vf inverse = vf_set1(flat ? 0.0f : 255.0f / width);
        vi zero = rounded(vf_set1(-most.low), inverse, bottom, bottom, top);
        a->scale[row] = flat ? 0.0f : width / 255.0f;
        a->zero[row] = first_lane(vi_sub(zero, vi_bits(bottom)));
        for (int64_t i = 0; i < a->n; i += 16) {
            int64_t left = a->n - i;
            vi v = rounded(take(x + i, left), inverse, vf_bits(zero), bottom, top);
            if (left >= 16)
                vi_store_8(q + i, v);
            else
                vi_store_8_n(q + i, v, (size_t)left);
        }
        a->at[row] = (int32_t)at;
        a->extra[row] = 0;
        if (!flat && a->n > 0) {
            vi whole = vi_bits(vf_fma(vf_set1(x[at]), inverse, vf_bits(zero)));
            a->extra[row] = first_lane(vi_sub(whole, vi_bits(bottom))) - q[at];
        }
    }
}

void PITH_K(quantize_panel_i8)(void *packed, float *scale, const float *panel, int64_t k) {
    const vf zero = vf_set1(PITH_ROUND_MAGIC), most = vf_set1(127.0f);
    const vf low = vf_sub(zero, most), high = vf_add(zero, most);
    const vi byte = vi_set1(255);
    vf top = vf_zero();
    vi sums = vi_set1(0);
    int32_t *group = packed;
    for (int64_t i = 0; i < k; i += 2) {
        vf pair = vf_abs(vf_load(panel + 16 * i));
        if (i + 1 < k) pair = vf_add(pair, vf_abs(vf_load(panel + 16 * (i + 1))));
        top = vf_max(pair, top);
    }
    vm flat = vm_not(vf_ge(top, vf_set1(RANGE_MIN)));
    vf inverse = vf_select(flat, vf_zero(), vf_div(most, top));
    vf_store(scale, vf_select(flat, vf_zero(), vf_div(top, most)));
    for (int64_t i = 0; i < k; i += 4, group += 16) {
        vi bytes = vi_set1(0);
        for (int64_t part = 3; part >= 0; part--) {
            vi v = vi_set1(0);
            if (i + part < k) {
                v = vi_sub(rounded(vf_load(panel + 16 * (i + part)), inverse, zero, low, high), vi_bits(zero));
            }
            sums = vi_add(sums, v);
            bytes = vi_or(vi_shl(bytes, 8), vi_and(v, byte));
        }
        vi_store(group, bytes);
    }
    vi_store(group, sums);
}

void PITH_K(quantize_table_i16)(const float *x, int16_t *q, float *scale, int64_t rows, int64_t n) {
    const vf zero = vf_set1(PITH_ROUND_MAGIC), low = vf_set1(PITH_ROUND_MAGIC - 32767.0f);
    const vf high = vf_set1(PITH_ROUND_MAGIC + 32767.0f);
    for (int64_t row = 0; row < rows; row++, x += n, q += n) {
        range all = range_of(x, n, -1);
        float top = all.high > -all.low ? all.high : -all.low;
        bool flat = !(top >= RANGE_MIN);
        vf inverse = vf_set1(flat ? 0.0f : 32767.0f / top);
        scale[row] = flat ? 0.0f : top / 32767.0f;
        for (int64_t i = 0; i < n; i += 16) {
            vi v = rounded(take(x + i, n - i), inverse, zero, low, high);
            if (n - i >= 16)
                vi_store_16(q + i, v);
            else
                vi_store_16_n(q + i, v, (size_t)(n - i));
        }
    }
}

void PITH_K(dequantize_row_i16)(const int16_t *q, float scale, float *y, int64_t n) {
    vf s = vf_set1(scale);
    int64_t i = 0;
    for (; n - i >= 16; i += 16) vf_store(y + i, vf_mul(vf_of_vi(vi_load_i16(q + i)), s));
    if (i < n) {
        int16_t rest[16] = { 0 };
        memcpy(rest, q + i, (size_t)(n - i) * sizeof *q);
        vf_store_n(y + i, vf_mul(vf_of_vi(vi_load_i16(rest)), s), (size_t)(n - i));
    }
}
