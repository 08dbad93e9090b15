/* vec_scalar.h - the primitives of vec.h in plain C, for any machine; what the other levels are
 * compared with. */
#ifndef PITH_ENGINE_KERNELS_VEC_SCALAR_H
#define PITH_ENGINE_KERNELS_VEC_SCALAR_H

#include <math.h>

#include "base/half.h"

typedef struct vf {
    float v[16];
} vf;
typedef struct vi {
    int32_t v[16];
} vi;
typedef struct vm {
    int32_t v[16];
} vm; /* 0 or 1 */

/* R name(parameters) with one expression per lane, in terms of i. */
#define PITH_VEC(R, name, parameters, lane)                                                        \
    PITH_INLINE R name parameters {                                                                \
        R r;                                                                                       \
        for (int i = 0; i < 16; i++) r.v[i] = (lane);                                              \
        return r;                                                                                  \
    }
#define PITH_VEC_INT(u) ((int32_t)(uint32_t)(u))
#define PITH_VEC_U(a) ((uint32_t)a.v[i])

PITH_INLINE float pith__vec_float(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
PITH_INLINE int32_t pith__vec_int(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* a * b + c rounded once. The product of two floats is exact in double; the sum rounded to double
 * and then to float is right unless the double lies on the midpoint of two floats or the result is
 * subnormal. Those go to fmaf. */
PITH_INLINE float pith__vec_fma(float a, float b, float c) {
    double s = (double)a * b + c;
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    uint64_t exponent = bits >> 52 & 0x7FF;
    if (__builtin_expect((bits & 0x1FFFFFFF) == 0x10000000 || exponent - 1 < 896, 0))
        return fmaf(a, b, c);
    return (float)s;
}

PITH_VEC(vm, vm_first, (size_t n), (size_t)i < n)
PITH_VEC(vm, vm_and, (vm a, vm b), a.v[i] & b.v[i])
PITH_VEC(vm, vm_or, (vm a, vm b), a.v[i] | b.v[i])
PITH_VEC(vm, vm_not, (vm a), !a.v[i])
PITH_INLINE int vm_any(vm a) {
    int any = 0;
    for (int i = 0; i < 16; i++) any |= a.v[i];
    return any;
}
/* Two bytes of each by each other, from bit `at` on. */
PITH_INLINE int32_t pith__vec_bytes(int32_t a, int32_t b, int at) {
    const uint32_t x = (uint32_t)a >> at, y = (uint32_t)b >> at;
    return (int32_t)(x & 255) * (int8_t)y + (int32_t)(x >> 8 & 255) * (int8_t)(y >> 8);
}
PITH_INLINE uint32_t vm_lanes(vm a) {
    uint32_t lanes = 0;
    for (int i = 0; i < 16; i++) lanes |= (uint32_t)a.v[i] << i;
    return lanes;
}

PITH_VEC(vi, vi_set1, (int32_t x), x)
PITH_VEC(vi, vi_load, (const int32_t *p), p[i])
PITH_INLINE void vi_store(int32_t *p, vi a) { memcpy(p, a.v, sizeof a.v); }
PITH_VEC(vi, vi_load_i16, (const int16_t *p), p[i])
PITH_VEC(vi, vi_load_i8_pairs, (const int8_t *p),
         PITH_VEC_INT((uint16_t)p[2 * i] | (uint32_t)p[2 * i + 1] << 16))
PITH_INLINE void vi_store_16(void *p, vi a) {
    for (int i = 0; i < 16; i++) {
        uint16_t low = (uint16_t)a.v[i];
        memcpy((char *)p + 2 * i, &low, sizeof low);
    }
}
PITH_INLINE void vi_store_8(void *p, vi a) {
    for (int i = 0; i < 16; i++) ((uint8_t *)p)[i] = (uint8_t)a.v[i];
}
PITH_VEC(vi, vi_add, (vi a, vi b), PITH_VEC_INT(PITH_VEC_U(a) + PITH_VEC_U(b)))
PITH_VEC(vi, vi_sub, (vi a, vi b), PITH_VEC_INT(PITH_VEC_U(a) - PITH_VEC_U(b)))
PITH_VEC(vi, vi_mul, (vi a, vi b), PITH_VEC_INT(PITH_VEC_U(a) * PITH_VEC_U(b)))
PITH_VEC(vi, vi_max, (vi a, vi b), a.v[i] > b.v[i] ? a.v[i] : b.v[i])
PITH_INLINE int32_t vi_hmax(vi a) {
    int32_t most = a.v[0];
    for (int i = 1; i < 16; i++) most = a.v[i] > most ? a.v[i] : most;
    return most;
}
PITH_INLINE int32_t vi_hsum(vi a) {
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += (uint32_t)a.v[i];
    return (int32_t)sum;
}
PITH_VEC(vi, vi_and, (vi a, vi b), a.v[i] & b.v[i])
PITH_VEC(vi, vi_or, (vi a, vi b), a.v[i] | b.v[i])
PITH_VEC(vi, vi_xor, (vi a, vi b), a.v[i] ^ b.v[i])
PITH_VEC(vi, vi_dot_bytes, (vi a, vi b),
         PITH_VEC_INT((uint32_t)pith__vec_bytes(a.v[i], b.v[i], 16) << 16 |
                      (uint16_t)pith__vec_bytes(a.v[i], b.v[i], 0)))
PITH_INLINE vi vi_load_bytes_n(const void *p, size_t n) {
    vi a = { { 0 } };
    memcpy(a.v, p, n);
    return a;
}
PITH_INLINE vi vi_load_bytes(const void *p) { return vi_load_bytes_n(p, sizeof(vi)); }
PITH_INLINE void vi_store_bytes_n(void *p, vi a, size_t n) { memcpy(p, a.v, n); }
PITH_INLINE void vi_store_bytes(void *p, vi a) { vi_store_bytes_n(p, a, sizeof a); }
/* Elements of `size` bytes of a and b in turn, from byte `first` of each group of 16 bytes on. A
 * function of its own, since it is long. */
static __attribute__((noinline, unused)) vi pith__vec_in_turn(vi a, vi b, int first, int size) {
    vi r;
    for (int i = 0; i < 64; i++) {
        const int element = i % 16 / size, at = i / 16 * 16 + first + element / 2 * size + i % size;
        memcpy((char *)r.v + i, (const char *)(element % 2 ? b.v : a.v) + at, 1);
    }
    return r;
}
PITH_INLINE vi vi_low_8(vi a, vi b) { return pith__vec_in_turn(a, b, 0, 1); }
PITH_INLINE vi vi_high_8(vi a, vi b) { return pith__vec_in_turn(a, b, 8, 1); }
PITH_INLINE vi vi_low_16(vi a, vi b) { return pith__vec_in_turn(a, b, 0, 2); }
PITH_INLINE vi vi_high_16(vi a, vi b) { return pith__vec_in_turn(a, b, 8, 2); }
PITH_INLINE vi vi_narrow_8(const vi v[4]) {
    vi r;
    for (int i = 0; i < 64; i++) ((uint8_t *)r.v)[i] = (uint8_t)v[i % 16 / 4].v[i / 16 * 4 + i % 4];
    return r;
}
PITH_INLINE void vi_turn_groups(vi v[4]) {
    vi t[4];
    for (int i = 0; i < 64; i++) t[i / 16].v[i % 16] = v[i % 16 / 4].v[i / 16 * 4 + i % 4];
    memcpy(v, t, sizeof t);
}
PITH_VEC(vm, vi_eq, (vi a, vi b), a.v[i] == b.v[i])
PITH_VEC(vm, vi_gt, (vi a, vi b), a.v[i] > b.v[i])
PITH_VEC(vi, vi_select, (vm m, vi a, vi b), m.v[i] ? a.v[i] : b.v[i])
PITH_VEC(vi, vi_shl, (vi a, int n), PITH_VEC_INT(PITH_VEC_U(a) << n))
PITH_VEC(vi, vi_shr, (vi a, int n), PITH_VEC_INT(PITH_VEC_U(a) >> n))
PITH_VEC(vi, vi_sar, (vi a, int n), a.v[i] >> n)

PITH_VEC(vf, vf_bits, (vi a), pith__vec_float(a.v[i]))
PITH_VEC(vi, vi_bits, (vf a), pith__vec_int(a.v[i]))
PITH_VEC(vf, vf_of_vi, (vi a), (float)a.v[i])
PITH_VEC(vi, vi_of_vf, (vf a), a.v[i] >= -0x1p31f && a.v[i] < 0x1p31f ? (int32_t)a.v[i] : INT32_MIN)

PITH_VEC(vi, vi_nearest, (vf a),
         a.v[i] >= -0x1p31f && a.v[i] < 0x1p31f ? (int32_t)rintf(a.v[i]) : INT32_MIN)

PITH_VEC(vf, vf_set1, (float x), x)
PITH_VEC(vf, vf_zero, (void), 0.0f)
PITH_VEC(vf, vf_iota, (void), (float)i)
PITH_VEC(vf, vf_load, (const float *p), p[i])
PITH_VEC(vf, vf_load_n, (const float *p, size_t n), (size_t)i < n ? p[i] : 0.0f)
PITH_INLINE void vf_store(float *p, vf a) { memcpy(p, a.v, sizeof a.v); }
PITH_INLINE void vf_store_n(float *p, vf a, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = a.v[i];
}
PITH_VEC(vf, vf_add, (vf a, vf b), a.v[i] + b.v[i])
PITH_VEC(vf, vf_sub, (vf a, vf b), a.v[i] - b.v[i])
PITH_VEC(vf, vf_mul, (vf a, vf b), a.v[i] * b.v[i])
PITH_VEC(vf, vf_div, (vf a, vf b), a.v[i] / b.v[i])
PITH_VEC(vf, vf_fma, (vf a, vf b, vf c), pith__vec_fma(a.v[i], b.v[i], c.v[i]))
PITH_VEC(vf, vf_sqrt, (vf a), sqrtf(a.v[i]))
PITH_VEC(vf, vf_min, (vf a, vf b), a.v[i] < b.v[i] ? a.v[i] : b.v[i])
PITH_VEC(vf, vf_max, (vf a, vf b), a.v[i] > b.v[i] ? a.v[i] : b.v[i])
PITH_VEC(vf, vf_neg, (vf a), pith__vec_float(pith__vec_int(a.v[i]) ^ INT32_MIN))
PITH_VEC(vf, vf_abs, (vf a), pith__vec_float(pith__vec_int(a.v[i]) & INT32_MAX))
PITH_VEC(vf, vf_copysign, (vf a, vf s),
         pith__vec_float((pith__vec_int(a.v[i]) & INT32_MAX) | (pith__vec_int(s.v[i]) & INT32_MIN)))
PITH_VEC(vf, vf_round, (vf a), rintf(a.v[i]))
PITH_VEC(vf, vf_floor, (vf a), floorf(a.v[i]))
PITH_VEC(vf, vf_ceil, (vf a), ceilf(a.v[i]))
PITH_VEC(vf, vf_trunc, (vf a), truncf(a.v[i]))
PITH_VEC(vm, vf_lt, (vf a, vf b), a.v[i] < b.v[i])
PITH_VEC(vm, vf_le, (vf a, vf b), a.v[i] <= b.v[i])
PITH_VEC(vm, vf_eq, (vf a, vf b), a.v[i] == b.v[i])
PITH_VEC(vm, vf_gt, (vf a, vf b), a.v[i] > b.v[i])
PITH_VEC(vm, vf_ge, (vf a, vf b), a.v[i] >= b.v[i])
PITH_VEC(vf, vf_even, (vf a, vf b), i < 8 ? a.v[2 * i] : b.v[2 * i - 16])
PITH_VEC(vf, vf_shift, (vf a), i ? a.v[i - 1] : 0.0f)
PITH_VEC(vf, vf_select, (vm m, vf a, vf b), m.v[i] ? a.v[i] : b.v[i])
PITH_VEC(vf, vf_gather, (const float *base, vi j), base[j.v[i]])
PITH_INLINE vf vf_ldexp(vf a, vf n) {
    vi k = vi_of_vf(n), half = vi_sar(k, 1), rest = vi_sub(k, half), bias = vi_set1(127);
    return vf_mul(vf_mul(a, vf_bits(vi_shl(vi_add(half, bias), 23))),
                  vf_bits(vi_shl(vi_add(rest, bias), 23)));
}

PITH_VEC(vf, vf_load_f16, (const uint16_t *p), pith__f32_of_f16(p[i]))
PITH_VEC(vf, vf_load_f16_n, (const uint16_t *p, size_t n),
         (size_t)i < n ? pith__f32_of_f16(p[i]) : 0.0f)
PITH_INLINE void vf_store_f16(uint16_t *p, vf a) {
    for (int i = 0; i < 16; i++) p[i] = pith__f16_of_f32(a.v[i]);
}
PITH_VEC(vi, vi_load_u8, (const uint8_t *p), p[i])
PITH_VEC(vi, vi_load_i8, (const uint8_t *p), (int8_t)p[i])
PITH_INLINE void vi_store_u8(uint8_t *p, vi a) {
    for (int i = 0; i < 16; i++) p[i] = (uint8_t)a.v[i];
}
PITH_VEC(vf, vf_load_bf16, (const uint16_t *p), pith__vec_float(PITH_VEC_INT((uint32_t)p[i] << 16)))
PITH_VEC(vf, vf_load_bf16_n, (const uint16_t *p, size_t n),
         (size_t)i < n ? pith__vec_float(PITH_VEC_INT((uint32_t)p[i] << 16)) : 0.0f)

#define PITH_VEC_TREE(name, op)                                                                    \
    PITH_INLINE float name(vf a) {                                                                 \
        for (int step = 8; step > 0; step /= 2)                                                    \
            for (int i = 0; i < step; i++) a.v[i] = op(a.v[i], a.v[i + step]);                     \
        return a.v[0];                                                                             \
    }
#define PITH_VEC_ADD(x, y) ((x) + (y))
#define PITH_VEC_MAX(x, y) ((x) > (y) ? (x) : (y))
#define PITH_VEC_MIN(x, y) ((x) < (y) ? (x) : (y))
PITH_VEC_TREE(vf_sum, PITH_VEC_ADD)
PITH_VEC_TREE(vf_hmax, PITH_VEC_MAX)
PITH_VEC_TREE(vf_hmin, PITH_VEC_MIN)

PITH_INLINE void vf_transpose(vf r[16]) {
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < i; j++) {
            float t = r[i].v[j];
            r[i].v[j] = r[j].v[i];
            r[j].v[i] = t;
        }
    }
}

#endif
