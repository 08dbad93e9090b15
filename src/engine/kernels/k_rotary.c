/* k_rotary.c - see rotary.h. Halves are contiguous and go 16 at a time. Interleaved pairs need few
 * instructions each and stay with single floats, which the compiler vectorises with the same
 * rounding. */
#include "engine/kernels/rotary.h"

#include "engine/kernels/vec.h"

PITH_INLINE vf rotary_take(const float *p, int64_t n) {
    return n >= 16 ? vf_load(p) : vf_load_n(p, (size_t)n);
}
PITH_INLINE void rotary_put(float *p, vf a, int64_t n) {
    if (n >= 16)
        vf_store(p, a);
    else
        vf_store_n(p, a, (size_t)n);
}

static void turn_halves(const pith__rotary *a, const float *x, float *y) {
    const int64_t half = a->size / 2, second = a->per_pair ? 0 : half;
    for (int64_t i = 0; i < half; i += 16) {
        int64_t n = half - i;
        vf low = rotary_take(x + i, n), high = rotary_take(x + half + i, n);
        vf cosine = rotary_take(a->cosine + i, n), sine = rotary_take(a->sine + i, n);
        rotary_put(y + i, vf_sub(vf_mul(low, cosine), vf_mul(high, sine)), n);
        cosine = rotary_take(a->cosine + second + i, n),
        sine = rotary_take(a->sine + second + i, n);
        rotary_put(y + half + i, vf_add(vf_mul(high, cosine), vf_mul(low, sine)), n);
    }
}

static void turn_pairs(const pith__rotary *a, const float *x, float *y) {
    const int64_t step = a->per_pair ? 1 : 2, second = a->per_pair ? 0 : 1;
    for (int64_t i = 0; i < a->size / 2; i++) {
        const float *cosine = a->cosine + i * step, *sine = a->sine + i * step;
        y[2 * i] = x[2 * i] * cosine[0] - x[2 * i + 1] * sine[0];
        y[2 * i + 1] = x[2 * i + 1] * cosine[second] + x[2 * i] * sine[second];
    }
}

void PITH_K(rotary_f32)(const pith__rotary *a) {
    for (int64_t h = 0; h < a->heads; h++) {
        const float *x = a->x + h * a->x_pitch;
        float *y = a->y + h * a->y_pitch;
        if (a->interleaved)
            turn_pairs(a, x, y);
        else
            turn_halves(a, x, y);
    }
}
