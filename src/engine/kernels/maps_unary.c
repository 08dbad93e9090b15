/* maps_unary.c - unary elementwise loops of all types, see maps.h. p[0] and p[1] are the operator's
 * parameters, in the order of its row in op_unary.c. Functions that unary.h has in f32 are not
 * repeated here. Source of the formulas: the ONNX operator pages. */
#include <math.h>

#include "engine/kernels/maps.h"

#define MAP1(family, suffix, T, O, EXPR)                                                           \
    pith__map_fn pith__k_##family##_##suffix;                                                      \
    void pith__k_##family##_##suffix(void *y, const void *x, int64_t n, const double *p) {         \
        const T *q = x;                                                                            \
        O *r = y;                                                                                  \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T u = q[i];                                                                            \
            r[i] = (O)(EXPR);                                                                      \
        }                                                                                          \
    }
#define FLOATS(family, EXPR32, EXPR64)                                                             \
    MAP1(family, f32, float, float, EXPR32) MAP1(family, f64, double, double, EXPR64)
#define DOUBLE(family, EXPR) MAP1(family, f64, double, double, EXPR)
#define SIGNED(family, EXPR)                                                                       \
    MAP1(family, i8, int8_t, int8_t, EXPR)                                                         \
    MAP1(family, i16, int16_t, int16_t, EXPR)                                                      \
    MAP1(family, i32, int32_t, int32_t, EXPR) MAP1(family, i64, int64_t, int64_t, EXPR)
#define UNSIGNED(family, EXPR)                                                                     \
    MAP1(family, u8, uint8_t, uint8_t, EXPR)                                                       \
    MAP1(family, u16, uint16_t, uint16_t, EXPR)                                                    \
    MAP1(family, u32, uint32_t, uint32_t, EXPR) MAP1(family, u64, uint64_t, uint64_t, EXPR)

MAP1(map_abs, f64, double, double, fabs(u))
SIGNED(map_abs, u < 0 ? 0 - (uint64_t)u : (uint64_t)u)
UNSIGNED(map_abs, u)
MAP1(map_neg, f64, double, double, -u)
SIGNED(map_neg, 0 - (uint64_t)u)
/* NaN and both zeros are their own sign. */
#define SIGN(suffix, T)                                                                            \
    static T sign_##suffix(T u) {                                                                  \
        if (u > 0) return 1;                                                                       \
        return u < 0 ? -1 : u;                                                                     \
    }
SIGN(f32, float)
SIGN(f64, double)
FLOATS(map_sign, sign_f32(u), sign_f64(u))
SIGNED(map_sign, (u > 0) - (u < 0))
UNSIGNED(map_sign, u > 0)
DOUBLE(map_ceil, ceil(u))
DOUBLE(map_floor, floor(u))
DOUBLE(map_round, rint(u))
MAP1(map_sqrt, f64, double, double, sqrt(u))
MAP1(map_reciprocal, f64, double, double, 1.0 / u)
MAP1(map_relu, f64, double, double, u < 0 ? 0.0 : u)
SIGNED(map_relu, u < 0 ? 0 : u)
DOUBLE(map_leaky_relu, u *((const double[2]){ 1.0, p[0] })[u < 0])
DOUBLE(map_thresholded_relu, u > p[0] ? u : 0.0)
/* 0 to 1; NaN stays. */
static double unit(double v) {
    if (v < 0) return 0;
    return v > 1 ? 1 : v;
}
DOUBLE(map_hard_sigmoid, unit(p[0] * u + p[1]))
DOUBLE(map_hard_swish, u *unit(u / 6.0 + 0.5))
DOUBLE(map_softsign, u / (1.0 + fabs(u)))
/* p: lambd, bias. With a lambd below 0 a number may be on both sides: signed types take the lower
 * one then, unsigned types the upper. */
static float shrink_f32(float u, const double *p) {
    if (u < -(float)p[0]) return u + (float)p[1];
    return u > (float)p[0] ? u - (float)p[1] : 0.0f;
}
static double shrink_signed(double u, const double *p) {
    if (u < -p[0]) return u + p[1];
    return u > p[0] ? u - p[1] : 0.0;
}
static double shrink_unsigned(double u, const double *p) {
    if (u > p[0]) return u - p[1];
    return u < -p[0] ? u + p[1] : 0.0;
}
FLOATS(map_shrink, shrink_f32(u, p), shrink_signed(u, p))
SIGNED(map_shrink, shrink_signed((double)u, p))
UNSIGNED(map_shrink, shrink_unsigned((double)u, p))

DOUBLE(map_acos, acos(u))
DOUBLE(map_acosh, acosh(u))
DOUBLE(map_asin, asin(u))
DOUBLE(map_asinh, asinh(u))
DOUBLE(map_atan, atan(u))
DOUBLE(map_atanh, atanh(u))
DOUBLE(map_cos, cos(u))
DOUBLE(map_cosh, cosh(u))
DOUBLE(map_erf, erf(u))
DOUBLE(map_exp, exp(u))
DOUBLE(map_log, log(u))
DOUBLE(map_sin, sin(u))
DOUBLE(map_sinh, sinh(u))
DOUBLE(map_tan, tan(u))
DOUBLE(map_tanh, tanh(u))
DOUBLE(map_sigmoid, 1.0 / (1.0 + exp(-u)))
DOUBLE(map_softplus, u > 0 ? u + log1p(exp(-u)) : log1p(exp(u)))
DOUBLE(map_mish, u *tanh(u > 0 ? u + log1p(exp(-u)) : log1p(exp(u))))
DOUBLE(map_elu, u < 0 ? p[0] * expm1(u) : u)
DOUBLE(map_celu, u < 0 ? p[0] * expm1(u / p[0]) : u)
/* p: alpha, gamma. */
DOUBLE(map_selu, u <= 0 ? p[1] * p[0] * expm1(u) : p[1] * u)
DOUBLE(map_swish, u / (1.0 + exp(-p[0] * u)))
DOUBLE(map_gelu, 0.5 * u * (1.0 + erf(u * 0.70710678118654752440)))
DOUBLE(map_gelu_tanh, 0.5 * u * (1.0 + tanh(0.79788456080286535588 * (u + 0.044715 * u * u * u))))

MAP1(map_not, bool, uint8_t, uint8_t, !u)
MAP1(map_bit_not, u8, uint8_t, uint8_t, ~u)
MAP1(map_bit_not, u16, uint16_t, uint16_t, ~u)
MAP1(map_bit_not, u32, uint32_t, uint32_t, ~u)
MAP1(map_bit_not, u64, uint64_t, uint64_t, ~u)
MAP1(map_is_nan, f32, float, uint8_t, u != u)
MAP1(map_is_nan, f64, double, uint8_t, u != u)
/* p: detect_positive, detect_negative. */
MAP1(map_is_inf, f32, float, uint8_t, (p[0] != 0 && u == INFINITY) || (p[1] != 0 && u == -INFINITY))
MAP1(map_is_inf, f64, double, uint8_t,
     (p[0] != 0 && u == INFINITY) || (p[1] != 0 && u == -INFINITY))
