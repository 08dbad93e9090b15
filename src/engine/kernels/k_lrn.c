/* k_lrn.c - see lrn.h: sixteen places at a time. */
#include "engine/kernels/lrn.h"

#include "engine/kernels/vec.h"

/* v to the power of a number of quarters. */
PITH_INLINE vf lrn_power(vf v, int quarters) {
    const vf half = vf_sqrt(v), quarter = vf_sqrt(half);
    vf power = quarters & 1 ? quarter : vf_set1(1.0f);
    if (quarters & 2) power = vf_mul(power, half);
    for (int i = 4; i <= quarters; i += 4) power = vf_mul(power, v);
    return power;
}

PITH_INLINE vf lrn_at(const pith__lrn *a, const float *x, int64_t before, int64_t behind,
                      size_t n) {
    vf sum = vf_zero();
    for (int64_t k = -before; k <= behind; k++) {
        const vf v = n == 16 ? vf_load(x + k * a->inner) : vf_load_n(x + k * a->inner, n);
        sum = vf_fma(v, v, sum);
    }
    const vf scale = vf_fma(sum, vf_set1(a->alpha), vf_set1(a->bias));
    return vf_div(n == 16 ? vf_load(x) : vf_load_n(x, n), lrn_power(scale, a->quarters));
}

void PITH_K(lrn_f32)(const pith__lrn *a, int64_t first, int64_t end) {
    for (int64_t c = first; c < end; c++) {
        const int64_t before = c < a->before ? c : a->before,
                      behind = a->channels - 1 - c < a->behind ? a->channels - 1 - c : a->behind;
        const float *x = a->x + c * a->inner;
        float *y = a->y + c * a->inner;
        int64_t i = 0;
        for (; a->inner - i >= 16; i += 16) vf_store(y + i, lrn_at(a, x + i, before, behind, 16));
        if (i < a->inner)
            vf_store_n(y + i, lrn_at(a, x + i, before, behind, (size_t)(a->inner - i)),
                       (size_t)(a->inner - i));
    }
}
