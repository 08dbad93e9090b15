/* k_map.c - elementwise f32 functions with parameters and comparisons: those loops of maps.h that
 * are worth vectors. */
#include "engine/kernels/maps.h"
#include "engine/kernels/vmath.h"

/* EXPR of v, x[i] in sixteen lanes, and the parameters p0 and p1. */
#define MAP(name, EXPR)                                                                            \
    PITH_VMATH vf map_##name##_lanes(vf v, vf p0, vf p1) {                                         \
        (void)p0, (void)p1;                                                                        \
        return EXPR;                                                                               \
    }                                                                                              \
    void PITH_K(map_##name##_f32)(void *y, const void *x, int64_t n, const double *p) {            \
        const float *from = x;                                                                     \
        float *to = y;                                                                             \
        vf p0 = vf_set1((float)p[0]), p1 = vf_set1((float)p[1]);                                   \
        int64_t i = 0;                                                                             \
        for (; n - i >= 16; i += 16)                                                               \
            vf_store(to + i, map_##name##_lanes(vf_load(from + i), p0, p1));                       \
        if (i < n) {                                                                               \
            size_t rest = (size_t)(n - i);                                                         \
            vf_store_n(to + i, map_##name##_lanes(vf_load_n(from + i, rest), p0, p1), rest);       \
        }                                                                                          \
    }

/* 0 to 1; NaN stays. */
PITH_INLINE vf map_unit(vf v) { return vf_min(vf_set1(1.0f), vf_max(vf_zero(), v)); }
PITH_INLINE vm map_below(vf v) { return vf_lt(v, vf_zero()); }
PITH_INLINE vf map_expm1(vf v) { return vf_expm1_below(vf_min(vf_zero(), v)); }

MAP(ceil, vf_ceil(v))
MAP(celu, vf_select(map_below(v), vf_mul(p0, map_expm1(vf_div(v, p0))), v))
MAP(clip, vf_min_nan(vf_max_nan(v, p0), p1)) /* as max and then min of binary.h */
MAP(elu, vf_select(map_below(v), vf_mul(p0, map_expm1(v)), v))
MAP(floor, vf_floor(v))
MAP(hard_sigmoid, map_unit(vf_add(vf_mul(p0, v), p1)))
MAP(hard_swish, vf_mul(v, map_unit(vf_fma(v, vf_set1(1.0f / 6.0f), vf_set1(0.5f)))))
MAP(leaky_relu, vf_select(map_below(v), vf_mul(v, p0), v))
MAP(round, vf_round(v))
MAP(selu, vf_mul(p1, vf_select(map_below(v), vf_mul(p0, map_expm1(v)), v)))
MAP(softsign, vf_div(v, vf_add(vf_set1(1.0f), vf_abs(v))))
MAP(swish, vf_mul(v, vf_sigmoid(vf_mul(p0, v))))
MAP(thresholded_relu, vf_keep(vf_gt(v, p0), v))

/* y[i] = 1 where the comparison holds, else 0. */
#define COMPARE(name, f)                                                                           \
    void PITH_K(map_##name##_f32)(void *y, const void *a, const void *b, int64_t n, int as,        \
                                  int bs) {                                                        \
        const float *left = a, *right = b;                                                         \
        uint8_t *to = y;                                                                           \
        vf one_a = n > 0 ? vf_set1(*left) : vf_zero(), one_b = n > 0 ? vf_set1(*right) : one_a;    \
        const vi yes = vi_set1(1), no = vi_set1(0);                                                \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            size_t rest = n - i < 16 ? (size_t)(n - i) : 16;                                       \
            vf u = one_a, v = one_b;                                                               \
            if (as) u = rest == 16 ? vf_load(left + i) : vf_load_n(left + i, rest);                \
            if (bs) v = rest == 16 ? vf_load(right + i) : vf_load_n(right + i, rest);              \
            vi r = vi_select(f(u, v), yes, no);                                                    \
            if (rest == 16)                                                                        \
                vi_store_8(to + i, r);                                                             \
            else                                                                                   \
                vi_store_8_n(to + i, r, rest);                                                     \
        }                                                                                          \
    }
COMPARE(equal, vf_eq)
COMPARE(less, vf_lt)
COMPARE(less_equal, vf_le)
