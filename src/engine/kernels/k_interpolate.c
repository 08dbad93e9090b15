/* k_interpolate.c - see interpolate.h. */
#include "engine/kernels/interpolate.h"

#include <stdbool.h>

#include "engine/kernels/vec.h"

PITH_INLINE void mix_rows_part(float *y, const float *x, const int64_t *offsets,
                               const float *weights, int64_t taps, const int vectors) {
    vf sums[4];
    PITH_UNROLL
    for (int k = 0; k < vectors; k++) sums[k] = vf_zero();
    for (int64_t t = 0; t < taps; t++) {
        if (weights[t] == 0.0f) continue;
        vf weight = vf_set1(weights[t]);
        PITH_UNROLL
        for (int k = 0; k < vectors; k++)
            sums[k] = vf_fma(weight, vf_load(x + offsets[t] + 16 * k), sums[k]);
    }
    PITH_UNROLL
    for (int k = 0; k < vectors; k++) vf_store(y + 16 * k, sums[k]);
}

void PITH_K(mix_rows_f32)(float *y, const float *x, const int64_t *offsets, const float *weights,
                          int64_t taps, int64_t n) {
    int64_t i = 0;
    for (; n - i >= 64; i += 64) mix_rows_part(y + i, x + i, offsets, weights, taps, 4);
    for (; n - i >= 16; i += 16) mix_rows_part(y + i, x + i, offsets, weights, taps, 1);
    if (i < n) {
        vf sum = vf_zero();
        size_t rest = (size_t)(n - i);
        for (int64_t t = 0; t < taps; t++) {
            if (weights[t] != 0.0f)
                sum = vf_fma(vf_set1(weights[t]), vf_load_n(x + offsets[t] + i, rest), sum);
        }
        vf_store_n(y + i, sum, rest);
    }
}

/* Elements index[0] to index[15] of x. Where they and the one behind them are 2 apart, all between
 * them are there. */
PITH_INLINE vf mix_take(const float *x, const int32_t *index, const bool more) {
    const vi at = vi_load(index);
    if (more && index[16] - index[0] == 32) {
        const vi even = vi_add(vi_set1(index[0]), vi_of_vf(vf_add(vf_iota(), vf_iota())));
        if (vm_lanes(vi_eq(at, even)) == 0xFFFF)
            return vf_even(vf_load(x + index[0]), vf_load(x + index[0] + 16));
    }
    return vf_gather(x, at);
}

void PITH_K(mix_columns_f32)(float *y, const float *x, const int32_t *index, const float *weights,
                             int64_t taps, int64_t n) {
    int64_t i = 0;
    for (; n - i >= 16; i += 16) {
        vf sum = vf_zero();
        for (int64_t t = 0; t < taps; t++)
            sum = vf_fma(vf_load(weights + t * n + i), mix_take(x, index + t * n + i, n - i > 16),
                         sum);
        vf_store(y + i, sum);
    }
    if (i < n) {
        vf sum = vf_zero();
        size_t rest = (size_t)(n - i);
        for (int64_t t = 0; t < taps; t++) {
            vi at = vi_bits(vf_load_n((const float *)(const void *)(index + t * n + i), rest));
            sum = vf_fma(vf_load_n(weights + t * n + i, rest), vf_gather(x, at), sum);
        }
        vf_store_n(y + i, sum, rest);
    }
}
