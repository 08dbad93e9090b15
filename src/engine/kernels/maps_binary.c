/* maps_binary.c - binary elementwise loops of all types, see maps.h. There is a line per family and
 * type, as in kernels.def. Functions that binary.h has in f32 are not repeated here. */
#include <math.h>

#include "base/str.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/maps.h"

#define MAP2(family, suffix, T, O, EXPR)                                                           \
    pith__map2_fn pith__k_##family##_##suffix;                                                     \
    void pith__k_##family##_##suffix(void *y, const void *a, const void *b, int64_t n, int as,     \
                                     int bs) {                                                     \
        const T *p = a, *q = b;                                                                    \
        O *r = y;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T u = p[i * as], v = q[i * bs];                                                        \
            r[i] = (O)(EXPR);                                                                      \
        }                                                                                          \
    }

#define ALL_INTS(X, family)                                                                        \
    X(family, u8, uint8_t, uint8_t)                                                                \
    X(family, i8, int8_t, uint8_t)                                                                 \
    X(family, u16, uint16_t, uint16_t)                                                             \
    X(family, i16, int16_t, uint16_t)                                                              \
    X(family, u32, uint32_t, uint32_t)                                                             \
    X(family, i32, int32_t, uint32_t)                                                              \
    X(family, u64, uint64_t, uint64_t) X(family, i64, int64_t, uint64_t)

/* Sums and products wrap: they are made in 64 unsigned bits. */
#define ADD(family, suffix, T, U) MAP2(family, suffix, T, T, (uint64_t)u + (uint64_t)v)
#define SUB(family, suffix, T, U) MAP2(family, suffix, T, T, (uint64_t)u - (uint64_t)v)
#define MUL(family, suffix, T, U) MAP2(family, suffix, T, T, (uint64_t)u *(uint64_t)v)
ALL_INTS(ADD, map_add)
ALL_INTS(SUB, map_sub)
ALL_INTS(MUL, map_mul)
MAP2(map_add, f64, double, double, u + v)
MAP2(map_sub, f64, double, double, u - v)
MAP2(map_mul, f64, double, double, u *v)
MAP2(map_div, f64, double, double, u / v)

#define IS_MINUS_ONE(T, v) ((T)-1 < (T)1 && (v) == (T)-1)
/* A quotient by zero is 0, and the least number by -1 wraps: C leaves both undefined. */
#define DIV(family, suffix, T, U)                                                                  \
    static T div_##suffix(T u, T v) {                                                              \
        if (v == 0) return 0;                                                                      \
        if (IS_MINUS_ONE(T, v)) return (T)(0 - (uint64_t)u);                                       \
        return (T)(u / v);                                                                         \
    }                                                                                              \
    MAP2(family, suffix, T, T, div_##suffix(u, v))
/* C's remainder, and the one with the divisor's sign. */
#define FMOD(family, suffix, T, U)                                                                 \
    MAP2(family, suffix, T, T, v == 0 || IS_MINUS_ONE(T, v) ? 0 : u % v)
#define MOD(family, suffix, T, U)                                                                  \
    static T mod_##suffix(T u, T v) {                                                              \
        if (v == 0 || IS_MINUS_ONE(T, v)) return 0;                                                \
        const bool other_sign = u % v != 0 && ((u % v < (T)1) != (v < (T)1));                      \
        return (T)(other_sign ? u % v + v : u % v);                                                \
    }                                                                                              \
    MAP2(family, suffix, T, T, mod_##suffix(u, v))
ALL_INTS(DIV, map_div)
ALL_INTS(FMOD, map_fmod)
ALL_INTS(MOD, map_mod)
MAP2(map_fmod, f64, double, double, fmod(u, v))

/* The remainder of the quotient rounded down: it has the sign of v, and so has a 0. */
static double floor_mod(double u, double v) {
    double r = fmod(u, v);
    if (r == 0) return copysign(r, v);
    return (r < 0) != (v < 0) ? r + v : r;
}
MAP2(map_mod, f64, double, double, floor_mod(u, v))

/* By squaring, in log(exponent) steps. It wraps, as products of integers do. */
static uint64_t int_pow(uint64_t base, uint64_t exponent) {
    uint64_t r = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) r *= base;
    return r;
}
static int64_t signed_pow(int64_t u, int64_t v) {
    if (v >= 0) return (int64_t)int_pow((uint64_t)u, (uint64_t)v);
    if (u == -1) return v & 1 ? -1 : 1;
    return u == 1;
}
MAP2(map_pow, i64, int64_t, int64_t, signed_pow(u, v))
MAP2(map_pow, u64, uint64_t, uint64_t, int_pow(u, v))
MAP2(map_pow, i32, int32_t, int32_t, signed_pow(u, v))
MAP2(map_pow, f64, double, double, pow(u, v))
static float pow_f32(float u, float v) {
    if (v == 2.0f) return u * u;
    if (v == 1.0f) return u;
    if (v == 0.5f && u > 0) return sqrtf(u);
    return (float)pow((double)u, (double)v);
}
MAP2(map_pow_any, f32, float, float, pow_f32(u, v))
pith__map2_fn pith__k_map_pow_f32;
void pith__k_map_pow_f32(void *y, const void *a, const void *b, int64_t n, int as, int bs) {
    const float *p = a;
    float *r = y;
    if (n < 1 || bs != 0 || *(const float *)b != 2.0f) {
        pith__k_map_pow_any_f32(y, a, b, n, as, bs);
        return;
    }
    pith__binary_fn *mul = PITH_KERNEL_FIND(pith__binary_fn, "mul", PITH_F32, pith__cpu_get()->isa);
    if (mul) {
        mul(r, p, p, n, as, as);
        return;
    }
    for (int64_t i = 0; i < n; i++) r[i] = p[i * as] * p[i * as];
}

#define MIN(family, suffix, T, U) MAP2(family, suffix, T, T, v < u ? v : u)
#define MAX(family, suffix, T, U) MAP2(family, suffix, T, T, u < v ? v : u)
ALL_INTS(MIN, map_min)
ALL_INTS(MAX, map_max)
/* A NaN on either side is the result. */
static double min_f64(double u, double v) {
    if (u != u) return u;
    return u < v ? u : v;
}
static double max_f64(double u, double v) {
    if (u != u) return u;
    return u > v ? u : v;
}
MAP2(map_min, f64, double, double, min_f64(u, v))
MAP2(map_max, f64, double, double, max_f64(u, v))

#define EQUAL(family, suffix, T, U) MAP2(family, suffix, T, uint8_t, u == v)
#define LESS(family, suffix, T, U) MAP2(family, suffix, T, uint8_t, u < v)
#define LESS_EQUAL(family, suffix, T, U) MAP2(family, suffix, T, uint8_t, u <= v)
ALL_INTS(EQUAL, map_equal)
ALL_INTS(LESS, map_less)
ALL_INTS(LESS_EQUAL, map_less_equal)
MAP2(map_equal, bool, uint8_t, uint8_t, (u != 0) == (v != 0))
MAP2(map_equal, f64, double, uint8_t, u == v)
MAP2(map_equal, string, pith_str, uint8_t, pith__str_eq(u, v))
MAP2(map_less, f64, double, uint8_t, u < v)
MAP2(map_less_equal, f64, double, uint8_t, u <= v)

MAP2(map_and, bool, uint8_t, uint8_t, (u != 0) & (v != 0))
MAP2(map_or, bool, uint8_t, uint8_t, (u != 0) | (v != 0))
MAP2(map_xor, bool, uint8_t, uint8_t, (u != 0) ^ (v != 0))

/* Bit patterns have no sign: one loop per width, named after the unsigned type. */
#define WIDTHS(X, family)                                                                          \
    X(family, u8, uint8_t, 8)                                                                      \
    X(family, u16, uint16_t, 16) X(family, u32, uint32_t, 32) X(family, u64, uint64_t, 64)
#define BIT_AND(family, suffix, T, bits) MAP2(family, suffix, T, T, u &v)
#define BIT_OR(family, suffix, T, bits) MAP2(family, suffix, T, T, u | v)
#define BIT_XOR(family, suffix, T, bits) MAP2(family, suffix, T, T, u ^ v)
#define SHIFT_LEFT(family, suffix, T, bits)                                                        \
    MAP2(family, suffix, T, T, v >= (bits) ? 0 : (uint64_t)u << v)
#define SHIFT_RIGHT(family, suffix, T, bits)                                                       \
    MAP2(family, suffix, T, T, v >= (bits) ? 0 : (uint64_t)u >> v)
/* Signed numbers shifted right are filled with their sign: -1 is left of a negative one that is
 * shifted out. */
#define SHIFT_DOWN(suffix, T, bits)                                                                \
    static T shift_down_##suffix(T u, T v) {                                                       \
        if (v < 0 || v >= (bits)) return u < 0 ? -1 : 0;                                           \
        return (T)(u < 0 ? ~(~u >> v) : u >> v);                                                   \
    }                                                                                              \
    MAP2(map_shift_right, suffix, T, T, shift_down_##suffix(u, v))
WIDTHS(BIT_AND, map_bit_and)
WIDTHS(BIT_OR, map_bit_or)
WIDTHS(BIT_XOR, map_bit_xor)
WIDTHS(SHIFT_LEFT, map_shift_left)
WIDTHS(SHIFT_RIGHT, map_shift_right)
SHIFT_DOWN(i8, int8_t, 8)
SHIFT_DOWN(i16, int16_t, 16)
SHIFT_DOWN(i32, int32_t, 32)
SHIFT_DOWN(i64, int64_t, 64)

#define PRELU(family, suffix, T, U)                                                                \
    MAP2(family, suffix, T, T, u < 0 ? (T)((uint64_t)u * (uint64_t)v) : u)
PRELU(map_prelu, i32, int32_t, uint32_t)
PRELU(map_prelu, i64, int64_t, uint64_t)
MAP2(map_prelu, u32, uint32_t, uint32_t, ((void)v, u))
MAP2(map_prelu, u64, uint64_t, uint64_t, ((void)v, u))
MAP2(map_prelu, f32, float, float, u < 0 ? u * v : u)
MAP2(map_prelu, f64, double, double, u < 0 ? u * v : u)
