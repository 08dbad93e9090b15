/* vec_neon.h - the primitives of vec.h in four 128-bit registers (Advanced SIMD of Armv8.0, always
 * there on arm64). */
#ifndef PITH_ENGINE_KERNELS_VEC_NEON_H
#define PITH_ENGINE_KERNELS_VEC_NEON_H

#include <arm_neon.h>

typedef struct vf {
    float32x4_t a, b, c, d;
} vf;
typedef struct vi {
    int32x4_t a, b, c, d;
} vi;
typedef struct vm {
    uint32x4_t a, b, c, d;
} vm;

#define PITH_VEC_0(R, e) ((R){ e, e, e, e })
#define PITH_VEC_1(R, name, T, op)                                                                 \
    PITH_INLINE R name(T x) { return (R){ op(x.a), op(x.b), op(x.c), op(x.d) }; }
#define PITH_VEC_2(R, name, T, op)                                                                 \
    PITH_INLINE R name(T x, T y) {                                                                 \
        return (R){ op(x.a, y.a), op(x.b, y.b), op(x.c, y.c), op(x.d, y.d) };                      \
    }

PITH_INLINE vi vi_set1(int32_t x) { return PITH_VEC_0(vi, vdupq_n_s32(x)); }
PITH_INLINE vi vi_load(const int32_t *p) {
    return (vi){ vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12) };
}
PITH_INLINE void vi_store(int32_t *p, vi x) {
    vst1q_s32(p, x.a), vst1q_s32(p + 4, x.b), vst1q_s32(p + 8, x.c), vst1q_s32(p + 12, x.d);
}
PITH_INLINE vi vi_load_i16(const int16_t *p) {
    int16x8_t low = vld1q_s16(p), high = vld1q_s16(p + 8);
    return (vi){ vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
                 vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high)) };
}
PITH_INLINE vi vi_load_i8_pairs(const int8_t *p) {
#define PITH_VEC_WIDEN(p) vreinterpretq_s32_s16(vmovl_s8(vld1_s8(p)))
    return (vi){ PITH_VEC_WIDEN(p), PITH_VEC_WIDEN(p + 8), PITH_VEC_WIDEN(p + 16),
                 PITH_VEC_WIDEN(p + 24) };
}
PITH_INLINE void vi_store_16(void *p, vi x) {
    vst1q_s16(p, vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b)));
    vst1q_s16((int16_t *)p + 8, vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d)));
}
PITH_INLINE void vi_store_8(void *p, vi x) {
    int16x8_t low = vcombine_s16(vmovn_s32(x.a), vmovn_s32(x.b)),
              high = vcombine_s16(vmovn_s32(x.c), vmovn_s32(x.d));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
PITH_VEC_2(vi, vi_add, vi, vaddq_s32)
PITH_VEC_2(vi, vi_sub, vi, vsubq_s32)
PITH_VEC_2(vi, vi_mul, vi, vmulq_s32)
PITH_VEC_2(vi, vi_max, vi, vmaxq_s32)
PITH_INLINE int32x4_t pith__vec_bytes(int32x4_t a, int32x4_t b) {
    const uint8x16_t x = vreinterpretq_u8_s32(a);
    const int8x16_t y = vreinterpretq_s8_s32(b);
    const int16x8_t low =
        vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), vmovl_s8(vget_low_s8(y)));
    const int16x8_t high =
        vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(x))), vmovl_s8(vget_high_s8(y)));
    return vreinterpretq_s32_s16(vpaddq_s16(low, high));
}
PITH_VEC_2(vi, vi_dot_bytes, vi, pith__vec_bytes)
PITH_INLINE int32x4_t pith__vec_pairs(int32x4_t a, int32x4_t b) {
    const int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
PITH_VEC_2(vi, vi_dot_pairs, vi, pith__vec_pairs)
PITH_INLINE int32_t vi_hmax(vi x) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(x.a, x.b), vmaxq_s32(x.c, x.d)));
}
PITH_INLINE int32_t vi_hsum(vi x) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d)));
}
PITH_INLINE vi vi_load_bytes(const void *p) { return vi_load(p); }
PITH_INLINE vi vi_load_bytes_n(const void *p, size_t n) {
    uint8_t bytes[64] = { 0 };
    memcpy(bytes, p, n);
    return vi_load_bytes(bytes);
}
PITH_INLINE void vi_store_bytes(void *p, vi x) { vi_store(p, x); }
PITH_INLINE void vi_store_bytes_n(void *p, vi x, size_t n) {
    uint8_t bytes[64];
    vi_store_bytes(bytes, x);
    memcpy(p, bytes, n);
}
#define PITH_VEC_ZIP(op, bits)                                                                     \
    vreinterpretq_s32_s##bits(op(vreinterpretq_s##bits##_s32(a), vreinterpretq_s##bits##_s32(b)))
#define PITH_VEC_IN_TURN(name, op, bits)                                                           \
    PITH_INLINE int32x4_t pith__vec_##name(int32x4_t a, int32x4_t b) {                             \
        return PITH_VEC_ZIP(op, bits);                                                             \
    }                                                                                              \
    PITH_VEC_2(vi, vi_##name, vi, pith__vec_##name)
PITH_VEC_IN_TURN(low_8, vzip1q_s8, 8)
PITH_VEC_IN_TURN(high_8, vzip2q_s8, 8)
PITH_VEC_IN_TURN(low_16, vzip1q_s16, 16)
PITH_VEC_IN_TURN(high_16, vzip2q_s16, 16)
PITH_INLINE int32x4_t pith__vec_narrow(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    const int16x8_t low = vcombine_s16(vmovn_s32(a), vmovn_s32(b)),
                    high = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
    return vreinterpretq_s32_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
PITH_INLINE vi vi_narrow_8(const vi v[4]) {
    return (vi){ pith__vec_narrow(v[0].a, v[1].a, v[2].a, v[3].a),
                 pith__vec_narrow(v[0].b, v[1].b, v[2].b, v[3].b),
                 pith__vec_narrow(v[0].c, v[1].c, v[2].c, v[3].c),
                 pith__vec_narrow(v[0].d, v[1].d, v[2].d, v[3].d) };
}
PITH_INLINE void vi_turn_groups(vi v[4]) {
    const vi p = v[0], q = v[1], r = v[2], s = v[3];
    v[0] = (vi){ p.a, q.a, r.a, s.a }, v[1] = (vi){ p.b, q.b, r.b, s.b };
    v[2] = (vi){ p.c, q.c, r.c, s.c }, v[3] = (vi){ p.d, q.d, r.d, s.d };
}
PITH_VEC_2(vi, vi_and, vi, vandq_s32)
PITH_VEC_2(vi, vi_or, vi, vorrq_s32)
PITH_VEC_2(vi, vi_xor, vi, veorq_s32)
PITH_VEC_2(vm, vi_eq, vi, vceqq_s32)
PITH_VEC_2(vm, vi_gt, vi, vcgtq_s32)
#define vi_shl(x, n) pith__vec_shift(x, n)
#define vi_sar(x, n) pith__vec_shift(x, -(n))
PITH_INLINE vi pith__vec_shift(vi x, int n) {
    int32x4_t s = vdupq_n_s32(n);
    return (vi){ vshlq_s32(x.a, s), vshlq_s32(x.b, s), vshlq_s32(x.c, s), vshlq_s32(x.d, s) };
}
PITH_INLINE vi vi_shr(vi x, int n) {
    int32x4_t s = vdupq_n_s32(-n);
#define PITH_VEC_SHR(e) vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(e), s))
    return (vi){ PITH_VEC_SHR(x.a), PITH_VEC_SHR(x.b), PITH_VEC_SHR(x.c), PITH_VEC_SHR(x.d) };
}
#define PITH_VEC_SELECT(m, x, y, bsl)                                                              \
    { bsl(m.a, x.a, y.a), bsl(m.b, x.b, y.b), bsl(m.c, x.c, y.c), bsl(m.d, x.d, y.d) }
PITH_INLINE vi vi_select(vm m, vi x, vi y) { return (vi)PITH_VEC_SELECT(m, x, y, vbslq_s32); }

PITH_VEC_1(vf, vf_bits, vi, vreinterpretq_f32_s32)
PITH_VEC_1(vi, vi_bits, vf, vreinterpretq_s32_f32)
PITH_VEC_1(vf, vf_of_vi, vi, vcvtq_f32_s32)
PITH_VEC_1(vi, vi_of_vf, vf, vcvtq_s32_f32)
PITH_VEC_1(vi, vi_nearest, vf, vcvtnq_s32_f32)

PITH_INLINE vm vm_first(size_t n) {
    static const int32_t lanes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    return vi_gt(vi_set1((int32_t)n), vi_load(lanes));
}
PITH_VEC_2(vm, vm_and, vm, vandq_u32)
PITH_VEC_2(vm, vm_or, vm, vorrq_u32)
PITH_VEC_1(vm, vm_not, vm, vmvnq_u32)
PITH_INLINE int vm_any(vm x) {
    return vmaxvq_u32(vorrq_u32(vorrq_u32(x.a, x.b), vorrq_u32(x.c, x.d))) != 0;
}
PITH_INLINE uint32_t vm_lanes(vm x) {
    static const int32_t bits[16] = { 1,       1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                      1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                      1 << 12, 1 << 13, 1 << 14, 1 << 15 };
    return (uint32_t)vi_hsum(vi_select(x, vi_load(bits), vi_set1(0)));
}

PITH_INLINE vf vf_set1(float x) { return PITH_VEC_0(vf, vdupq_n_f32(x)); }
PITH_INLINE vf vf_zero(void) { return vf_set1(0.0f); }
PITH_INLINE vf vf_load(const float *p) {
    return (vf){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}
PITH_INLINE void vf_store(float *p, vf x) {
    vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
PITH_INLINE vf vf_load_n(const float *p, size_t n) {
    float t[16] = { 0 };
    memcpy(t, p, n * sizeof *t);
    return vf_load(t);
}
PITH_INLINE void vf_store_n(float *p, vf x, size_t n) {
    float t[16];
    vf_store(t, x);
    memcpy(p, t, n * sizeof *t);
}
PITH_INLINE vf vf_iota(void) {
    static const float lanes[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    return vf_load(lanes);
}

PITH_VEC_2(vf, vf_add, vf, vaddq_f32)
PITH_VEC_2(vf, vf_sub, vf, vsubq_f32)
PITH_VEC_2(vf, vf_mul, vf, vmulq_f32)
PITH_VEC_2(vf, vf_div, vf, vdivq_f32)
PITH_VEC_1(vf, vf_sqrt, vf, vsqrtq_f32)
PITH_VEC_1(vf, vf_neg, vf, vnegq_f32)
PITH_VEC_1(vf, vf_abs, vf, vabsq_f32)
PITH_VEC_1(vf, vf_round, vf, vrndnq_f32)
PITH_VEC_1(vf, vf_floor, vf, vrndmq_f32)
PITH_VEC_1(vf, vf_ceil, vf, vrndpq_f32)
PITH_VEC_1(vf, vf_trunc, vf, vrndq_f32)
PITH_VEC_2(vm, vf_lt, vf, vcltq_f32)
PITH_VEC_2(vm, vf_le, vf, vcleq_f32)
PITH_VEC_2(vm, vf_eq, vf, vceqq_f32)
PITH_VEC_2(vm, vf_gt, vf, vcgtq_f32)
PITH_VEC_2(vm, vf_ge, vf, vcgeq_f32)
PITH_INLINE vf vf_fma(vf x, vf y, vf z) {
    return (vf){ vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d) };
}
PITH_INLINE vf vf_even(vf x, vf y) {
    return (vf){ vuzp1q_f32(x.a, x.b), vuzp1q_f32(x.c, x.d), vuzp1q_f32(y.a, y.b),
                 vuzp1q_f32(y.c, y.d) };
}
PITH_INLINE vf vf_shift(vf x) {
    return (vf){ vextq_f32(vdupq_n_f32(0), x.a, 3), vextq_f32(x.a, x.b, 3), vextq_f32(x.b, x.c, 3),
                 vextq_f32(x.c, x.d, 3) };
}
PITH_INLINE vf vf_select(vm m, vf x, vf y) { return (vf)PITH_VEC_SELECT(m, x, y, vbslq_f32); }
PITH_INLINE float32x4_t pith__vec_min4(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcltq_f32(x, y), x, y);
}
PITH_INLINE float32x4_t pith__vec_max4(float32x4_t x, float32x4_t y) {
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}
PITH_VEC_2(vf, vf_min, vf, pith__vec_min4)
PITH_VEC_2(vf, vf_max, vf, pith__vec_max4)
PITH_INLINE float32x4_t pith__vec_copysign4(float32x4_t x, float32x4_t s) {
    return vbslq_f32(vdupq_n_u32(0x80000000u), s, x);
}
PITH_VEC_2(vf, vf_copysign, vf, pith__vec_copysign4)
PITH_INLINE vf vf_ldexp(vf x, vf n) {
    vi i = vi_of_vf(n), half = vi_sar(i, 1), rest = vi_sub(i, half), bias = vi_set1(127);
    return vf_mul(vf_mul(x, vf_bits(vi_shl(vi_add(half, bias), 23))),
                  vf_bits(vi_shl(vi_add(rest, bias), 23)));
}
PITH_INLINE vf vf_gather(const float *base, vi i) {
    int32_t j[16];
    float t[16];
    vi_store(j, i);
    for (int lane = 0; lane < 16; lane++) t[lane] = base[j[lane]];
    return vf_load(t);
}

PITH_INLINE vf vf_load_f16(const uint16_t *p) {
#define PITH_VEC_F16(at) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(at)))
    return (vf){ PITH_VEC_F16(p), PITH_VEC_F16(p + 4), PITH_VEC_F16(p + 8), PITH_VEC_F16(p + 12) };
}
PITH_INLINE vf vf_load_bf16(const uint16_t *p) {
#define PITH_VEC_BF16(at) vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(at), 16))
    return (vf){ PITH_VEC_BF16(p), PITH_VEC_BF16(p + 4), PITH_VEC_BF16(p + 8),
                 PITH_VEC_BF16(p + 12) };
}
PITH_INLINE void vf_store_f16(uint16_t *p, vf x) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x.a))),
        vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(x.b)));
    vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(x.c))),
        vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(x.d)));
}
PITH_INLINE vi vi_load_u8(const uint8_t *p) {
    uint8x16_t x = vld1q_u8(p);
    uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_u8(vget_high_u8(x));
#define PITH_VEC_WIDE_U(half) vreinterpretq_s32_u32(vmovl_u16(half))
    return (vi){ PITH_VEC_WIDE_U(vget_low_u16(low)), PITH_VEC_WIDE_U(vget_high_u16(low)),
                 PITH_VEC_WIDE_U(vget_low_u16(high)), PITH_VEC_WIDE_U(vget_high_u16(high)) };
}
PITH_INLINE vi vi_load_i8(const uint8_t *p) {
    int8x16_t x = vreinterpretq_s8_u8(vld1q_u8(p));
    int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return (vi){ vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
                 vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high)) };
}
PITH_INLINE void vi_store_u8(uint8_t *p, vi x) {
#define PITH_VEC_NARROW(v) vmovn_u32(vreinterpretq_u32_s32(v))
    uint16x8_t low = vcombine_u16(PITH_VEC_NARROW(x.a), PITH_VEC_NARROW(x.b)),
               high = vcombine_u16(PITH_VEC_NARROW(x.c), PITH_VEC_NARROW(x.d));
    vst1q_u8(p, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
}
PITH_INLINE vf vf_load_f16_n(const uint16_t *p, size_t n) {
    uint16_t t[16] = { 0 };
    memcpy(t, p, n * sizeof *t);
    return vf_load_f16(t);
}
PITH_INLINE vf vf_load_bf16_n(const uint16_t *p, size_t n) {
    uint16_t t[16] = { 0 };
    memcpy(t, p, n * sizeof *t);
    return vf_load_bf16(t);
}

#define PITH_VEC_TREE(name, op4)                                                                   \
    PITH_INLINE float name(vf x) {                                                                 \
        float32x4_t s = op4(op4(x.a, x.c), op4(x.b, x.d));                                         \
        s = op4(s, vextq_f32(s, s, 2));                                                            \
        return vgetq_lane_f32(op4(s, vextq_f32(s, s, 1)), 0);                                      \
    }
PITH_VEC_TREE(vf_sum, vaddq_f32)
PITH_VEC_TREE(vf_hmax, pith__vec_max4)
PITH_VEC_TREE(vf_hmin, pith__vec_min4)

PITH_INLINE void pith__vec_transpose4(float32x4_t *r0, float32x4_t *r1, float32x4_t *r2,
                                      float32x4_t *r3) {
    float32x4_t s0 = vtrn1q_f32(*r0, *r1), s1 = vtrn2q_f32(*r0, *r1);
    float32x4_t s2 = vtrn1q_f32(*r2, *r3), s3 = vtrn2q_f32(*r2, *r3);
    *r0 = vcombine_f32(vget_low_f32(s0), vget_low_f32(s2));
    *r1 = vcombine_f32(vget_low_f32(s1), vget_low_f32(s3));
    *r2 = vcombine_f32(vget_high_f32(s0), vget_high_f32(s2));
    *r3 = vcombine_f32(vget_high_f32(s1), vget_high_f32(s3));
}
PITH_INLINE void vf_transpose(vf r[16]) {
    vf t[16];
    PITH_UNROLL
    for (int i = 0; i < 16; i += 4) {
        pith__vec_transpose4(&r[i].a, &r[i + 1].a, &r[i + 2].a, &r[i + 3].a);
        pith__vec_transpose4(&r[i].b, &r[i + 1].b, &r[i + 2].b, &r[i + 3].b);
        pith__vec_transpose4(&r[i].c, &r[i + 1].c, &r[i + 2].c, &r[i + 3].c);
        pith__vec_transpose4(&r[i].d, &r[i + 1].d, &r[i + 2].d, &r[i + 3].d);
    }
    PITH_UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = (vf){ r[i].a, r[i + 4].a, r[i + 8].a, r[i + 12].a };
        t[i + 4] = (vf){ r[i].b, r[i + 4].b, r[i + 8].b, r[i + 12].b };
        t[i + 8] = (vf){ r[i].c, r[i + 4].c, r[i + 8].c, r[i + 12].c };
        t[i + 12] = (vf){ r[i].d, r[i + 4].d, r[i + 8].d, r[i + 12].d };
    }
    PITH_UNROLL
    for (int i = 0; i < 16; i++) r[i] = t[i];
}

#endif
