/* k_taps.c - see taps.h. Up to four vectors of windows share each tap, so that chains of additions overlap. */
#include "kernels/taps.h"

#include <math.h>

#include "kernels/vec.h"

enum { VECTORS = PITH_TAPS_BLOCK / 16 };

/* `count` vectors of windows, the last of them n wide. */
PITH_INLINE void block(const pith_taps *a, const float *x, float *y, int count, size_t n, int max) {
    vf sums[VECTORS];
    PITH_UNROLL
    for (int i = 0; i < count; i++) sums[i] = max ? vf_set1(-INFINITY) : vf_zero();
    for (int64_t t = 0; t < a->taps; t++) {
        const float *from = x + a->offsets[t];
        vf weight = max ? vf_zero() : vf_set1(a->weights[t]);
        PITH_UNROLL
        for (int i = 0; i < count; i++) {
            vf v = vf_load(from + 16 * i);
            sums[i] = max ? vf_max_nan(v, sums[i]) : vf_fma(weight, v, sums[i]);
        }
    }
    PITH_UNROLL
    for (int i = 0; i < count; i++) {
        if (i < count - 1 || n == 16)
            vf_store(y + 16 * i, sums[i]);
        else
            vf_store_n(y + 16 * i, sums[i], n);
    }
}

PITH_INLINE void taps_run(const pith_taps *a, int max) {
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->step;
        float *y = a->y + r * a->columns;
        int64_t j = 0;
        for (; j + PITH_TAPS_BLOCK <= a->columns; j += PITH_TAPS_BLOCK) block(a, x + j, y + j, VECTORS, 16, max);
        for (; j + 32 <= a->columns; j += 32) block(a, x + j, y + j, 2, 16, max);
        for (; j < a->columns; j += 16)
            block(a, x + j, y + j, 1, a->columns - j < 16 ? (size_t)(a->columns - j) : 16, max);
    }
}

void PITH_K(taps_sum_f32)(const pith_taps *a) { taps_run(a, 0); }
void PITH_K(taps_max_f32)(const pith_taps *a) { taps_run(a, 1); }
