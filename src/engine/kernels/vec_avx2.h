/* vec_avx2.h - the primitives of vec.h in two 256-bit registers (AVX2, FMA, F16C). A mask is all
 * ones or zeros. */
#ifndef PITH_ENGINE_KERNELS_VEC_AVX2_H
#define PITH_ENGINE_KERNELS_VEC_AVX2_H

#include <immintrin.h>

typedef struct vf {
    __m256 lo, hi;
} vf;
typedef struct vi {
    __m256i lo, hi;
} vi;
typedef struct vm {
    __m256 lo, hi;
} vm;

#define PITH_VEC_1(R, name, T, op)                                                                 \
    PITH_INLINE R name(T a) { return (R){ op(a.lo), op(a.hi) }; }
#define PITH_VEC_2(R, name, T, op)                                                                 \
    PITH_INLINE R name(T a, T b) { return (R){ op(a.lo, b.lo), op(a.hi, b.hi) }; }

PITH_INLINE vi vi_set1(int32_t x) { return (vi){ _mm256_set1_epi32(x), _mm256_set1_epi32(x) }; }
PITH_INLINE vi vi_load(const int32_t *p) {
    return (vi){ _mm256_loadu_si256((const __m256i *)p),
                 _mm256_loadu_si256((const __m256i *)p + 1) };
}
PITH_INLINE void vi_store(int32_t *p, vi a) {
    _mm256_storeu_si256((__m256i *)p, a.lo);
    _mm256_storeu_si256((__m256i *)p + 1, a.hi);
}
PITH_INLINE vi vi_load_i16(const int16_t *p) {
    return (vi){ _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)p + 1)) };
}
PITH_INLINE vi vi_load_i8_pairs(const int8_t *p) {
    return (vi){ _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p + 1)) };
}
PITH_INLINE void vi_store_16(void *p, vi a) { /* packing works within 128 bits */
    const __m256i low = _mm256_set1_epi32(0xFFFF);
    __m256i words = _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(words, 0xD8));
}
PITH_INLINE void vi_store_8(void *p, vi a) { /* packing works within 128 bits */
    const __m256i low = _mm256_set1_epi32(255);
    __m256i words = _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                    _mm256_extracti128_si256(words, 1)));
}
PITH_VEC_2(vi, vi_add, vi, _mm256_add_epi32)
PITH_VEC_2(vi, vi_sub, vi, _mm256_sub_epi32)
PITH_VEC_2(vi, vi_mul, vi, _mm256_mullo_epi32)
PITH_VEC_2(vi, vi_max, vi, _mm256_max_epi32)
#define PITH_VEC_INT_TREE(name, op)                                                                \
    PITH_INLINE int32_t name(vi a) {                                                               \
        __m256i b = _mm256_##op##_epi32(a.lo, a.hi);                                               \
        __m128i c = _mm_##op##_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));   \
        c = _mm_##op##_epi32(c, _mm_shuffle_epi32(c, 0x4E));                                       \
        return _mm_cvtsi128_si32(_mm_##op##_epi32(c, _mm_shuffle_epi32(c, 0xB1)));                 \
    }
PITH_VEC_INT_TREE(vi_hmax, max)
PITH_VEC_INT_TREE(vi_hsum, add)
PITH_VEC_2(vi, vi_dot_pairs, vi, _mm256_madd_epi16)
PITH_VEC_2(vi, vi_dot_bytes, vi, _mm256_maddubs_epi16)
/* The same added to c; needs AVX_VNNI. */
PITH_INLINE vi vi_vnni_pairs(vi a, vi b, vi c) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(c.lo) : "x"(a.lo), "x"(b.lo));
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(c.hi) : "x"(a.hi), "x"(b.hi));
    return c;
}
PITH_INLINE vi vi_vnni_bytes(vi a, vi b, vi c) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c.lo) : "x"(a.lo), "x"(b.lo));
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c.hi) : "x"(a.hi), "x"(b.hi));
    return c;
}
PITH_INLINE vi vi_load_bytes(const void *p) { return vi_load(p); }
PITH_INLINE vi vi_load_bytes_n(const void *p, size_t n) {
    if (n % 4 == 0) {
        static const int32_t ones[32] = { -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, -1, -1, -1, -1, -1, -1, -1 };
        const vi m = vi_load(ones + 16 - n / 4);
        return (vi){ _mm256_maskload_epi32(p, m.lo),
                     _mm256_maskload_epi32((const int32_t *)p + 8, m.hi) };
    }
    uint8_t bytes[64] = { 0 };
    memcpy(bytes, p, n);
    return vi_load_bytes(bytes);
}
PITH_INLINE void vi_store_bytes(void *p, vi a) { vi_store(p, a); }
PITH_INLINE void vi_store_bytes_n(void *p, vi a, size_t n) {
    uint8_t bytes[64];
    vi_store_bytes(bytes, a);
    memcpy(p, bytes, n);
}
PITH_VEC_2(vi, vi_low_8, vi, _mm256_unpacklo_epi8)
PITH_VEC_2(vi, vi_high_8, vi, _mm256_unpackhi_epi8)
PITH_VEC_2(vi, vi_low_16, vi, _mm256_unpacklo_epi16)
PITH_VEC_2(vi, vi_high_16, vi, _mm256_unpackhi_epi16)
PITH_VEC_2(vi, vi_and, vi, _mm256_and_si256)
PITH_VEC_2(vi, pith__vec_words, vi, _mm256_packs_epi32)
PITH_VEC_2(vi, pith__vec_narrow, vi, _mm256_packus_epi16)
PITH_INLINE vi vi_narrow_8(const vi v[4]) {
    const vi low = vi_set1(255);
    return pith__vec_narrow(pith__vec_words(vi_and(v[0], low), vi_and(v[1], low)),
                            pith__vec_words(vi_and(v[2], low), vi_and(v[3], low)));
}
PITH_INLINE void vi_turn_groups(vi v[4]) {
#define PITH_VEC_GROUPS(half, i, which) _mm256_permute2x128_si256(v[i].half, v[i + 1].half, which)
    const vi a = { PITH_VEC_GROUPS(lo, 0, 0x20), PITH_VEC_GROUPS(lo, 2, 0x20) };
    const vi b = { PITH_VEC_GROUPS(lo, 0, 0x31), PITH_VEC_GROUPS(lo, 2, 0x31) };
    const vi c = { PITH_VEC_GROUPS(hi, 0, 0x20), PITH_VEC_GROUPS(hi, 2, 0x20) };
    const vi d = { PITH_VEC_GROUPS(hi, 0, 0x31), PITH_VEC_GROUPS(hi, 2, 0x31) };
    v[0] = a, v[1] = b, v[2] = c, v[3] = d;
}
PITH_VEC_2(vi, vi_or, vi, _mm256_or_si256)
PITH_VEC_2(vi, vi_xor, vi, _mm256_xor_si256)
#define PITH_VEC_EQ(a, b) _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))
#define PITH_VEC_GT(a, b) _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b))
PITH_VEC_2(vm, vi_eq, vi, PITH_VEC_EQ)
PITH_VEC_2(vm, vi_gt, vi, PITH_VEC_GT)
#define vi_shl(a, n) ((vi){ _mm256_slli_epi32((a).lo, n), _mm256_slli_epi32((a).hi, n) })
#define vi_shr(a, n) ((vi){ _mm256_srli_epi32((a).lo, n), _mm256_srli_epi32((a).hi, n) })
#define vi_sar(a, n) ((vi){ _mm256_srai_epi32((a).lo, n), _mm256_srai_epi32((a).hi, n) })

PITH_VEC_1(vf, vf_bits, vi, _mm256_castsi256_ps)
PITH_VEC_1(vi, vi_bits, vf, _mm256_castps_si256)
PITH_VEC_1(vf, vf_of_vi, vi, _mm256_cvtepi32_ps)
PITH_VEC_1(vi, vi_of_vf, vf, _mm256_cvttps_epi32)

PITH_INLINE vm vm_first(size_t n) {
    static const int32_t ones[32] = {
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
    };
    vi m = vi_load(ones + 16 - n);
    return (vm){ _mm256_castsi256_ps(m.lo), _mm256_castsi256_ps(m.hi) };
}
PITH_VEC_2(vm, vm_and, vm, _mm256_and_ps)
PITH_VEC_2(vm, vm_or, vm, _mm256_or_ps)
#define PITH_VEC_NOT(a) _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))
PITH_VEC_1(vm, vm_not, vm, PITH_VEC_NOT)
PITH_INLINE int vm_any(vm a) { return _mm256_movemask_ps(_mm256_or_ps(a.lo, a.hi)) != 0; }
PITH_INLINE uint32_t vm_lanes(vm a) {
    return (uint32_t)_mm256_movemask_ps(a.lo) | (uint32_t)_mm256_movemask_ps(a.hi) << 8;
}

PITH_INLINE vf vf_set1(float x) { return (vf){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
PITH_INLINE vf vf_zero(void) { return (vf){ _mm256_setzero_ps(), _mm256_setzero_ps() }; }
PITH_INLINE vf vf_load(const float *p) {
    return (vf){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}
PITH_INLINE void vf_store(float *p, vf a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
PITH_INLINE vf vf_load_n(const float *p, size_t n) {
    vm m = vm_first(n);
    return (vf){ _mm256_maskload_ps(p, _mm256_castps_si256(m.lo)),
                 n > 8 ? _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi))
                       : _mm256_setzero_ps() };
}
PITH_INLINE void vf_store_n(float *p, vf a, size_t n) {
    vm m = vm_first(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), a.lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), a.hi);
}

PITH_VEC_2(vf, vf_add, vf, _mm256_add_ps)
PITH_VEC_2(vf, vf_sub, vf, _mm256_sub_ps)
PITH_VEC_2(vf, vf_mul, vf, _mm256_mul_ps)
PITH_VEC_2(vf, vf_div, vf, _mm256_div_ps)
PITH_VEC_2(vf, vf_min, vf, _mm256_min_ps)
PITH_VEC_2(vf, vf_max, vf, _mm256_max_ps)
PITH_VEC_1(vf, vf_sqrt, vf, _mm256_sqrt_ps)
PITH_INLINE vf vf_fma(vf a, vf b, vf c) {
    return (vf){ _mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi) };
}
PITH_INLINE vf vf_fma_onto(vf a, vf b, vf c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c.lo) : "x"(a.lo), "x"(b.lo));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c.hi) : "x"(a.hi), "x"(b.hi));
    return c;
}
#define PITH_VEC_NEG(a) _mm256_xor_ps(a, _mm256_set1_ps(-0.0f))
#define PITH_VEC_ABS(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define PITH_VEC_COPYSIGN(a, s)                                                                    \
    _mm256_or_ps(PITH_VEC_ABS(a), _mm256_and_ps(_mm256_set1_ps(-0.0f), s))
PITH_VEC_1(vf, vf_neg, vf, PITH_VEC_NEG)
PITH_VEC_1(vf, vf_abs, vf, PITH_VEC_ABS)
PITH_VEC_2(vf, vf_copysign, vf, PITH_VEC_COPYSIGN)
#define PITH_VEC_ROUND(a) _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define PITH_VEC_FLOOR(a) _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define PITH_VEC_CEIL(a) _mm256_round_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
#define PITH_VEC_TRUNC(a) _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
PITH_VEC_1(vf, vf_round, vf, PITH_VEC_ROUND)
#define PITH_VEC_NEAREST(a) _mm256_cvtps_epi32(PITH_VEC_ROUND(a))
PITH_VEC_1(vi, vi_nearest, vf, PITH_VEC_NEAREST)
PITH_VEC_1(vf, vf_floor, vf, PITH_VEC_FLOOR)
PITH_VEC_1(vf, vf_ceil, vf, PITH_VEC_CEIL)
PITH_VEC_1(vf, vf_trunc, vf, PITH_VEC_TRUNC)
#define PITH_VEC_LT_PS(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define PITH_VEC_NLT_PS(a, b) _mm256_cmp_ps(a, b, _CMP_NLT_UQ)
#define PITH_VEC_LE_PS(a, b) _mm256_cmp_ps(a, b, _CMP_LE_OQ)
#define PITH_VEC_EQ_PS(a, b) _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define PITH_VEC_GT_PS(a, b) _mm256_cmp_ps(a, b, _CMP_GT_OQ)
#define PITH_VEC_GE_PS(a, b) _mm256_cmp_ps(a, b, _CMP_GE_OQ)
PITH_VEC_2(vm, vf_lt, vf, PITH_VEC_LT_PS)
PITH_VEC_2(vm, vf_not_lt, vf, PITH_VEC_NLT_PS)
PITH_VEC_2(vm, vf_le, vf, PITH_VEC_LE_PS)
PITH_VEC_2(vm, vf_eq, vf, PITH_VEC_EQ_PS)
PITH_VEC_2(vm, vf_gt, vf, PITH_VEC_GT_PS)
PITH_VEC_2(vm, vf_ge, vf, PITH_VEC_GE_PS)
/* Those of both halves of a, in the order of a register. */
PITH_INLINE __m256 vec_even_half(vf a) {
    __m256 pairs = _mm256_shuffle_ps(a.lo, a.hi, 0x88); /* 0 2, 8 10, 4 6, 12 14 */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
}
PITH_INLINE vf vf_even(vf a, vf b) { return (vf){ vec_even_half(a), vec_even_half(b) }; }
PITH_INLINE vf vf_shift(vf a) {
    const __m256i turn = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    __m256 lo = _mm256_permutevar8x32_ps(a.lo, turn), hi = _mm256_permutevar8x32_ps(a.hi, turn);
    return (vf){ _mm256_blend_ps(lo, _mm256_setzero_ps(), 1), _mm256_blend_ps(hi, lo, 1) };
}
PITH_INLINE vf vf_select(vm m, vf a, vf b) {
    return (vf){ _mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi) };
}
PITH_INLINE vf vf_keep(vm m, vf a) {
    return (vf){ _mm256_and_ps(m.lo, a.lo), _mm256_and_ps(m.hi, a.hi) };
}
PITH_INLINE vi vi_select(vm m, vi a, vi b) { return vi_bits(vf_select(m, vf_bits(a), vf_bits(b))); }
PITH_INLINE vf vf_ldexp(vf a, vf n) {
    vi i = vi_of_vf(n), half = vi_sar(i, 1), rest = vi_sub(i, half), bias = vi_set1(127);
    return vf_mul(vf_mul(a, vf_bits(vi_shl(vi_add(half, bias), 23))),
                  vf_bits(vi_shl(vi_add(rest, bias), 23)));
}
PITH_INLINE vf vf_gather(const float *base, vi i) {
    return (vf){ _mm256_i32gather_ps(base, i.lo, 4), _mm256_i32gather_ps(base, i.hi, 4) };
}
PITH_INLINE vf vf_iota(void) {
    return (vf){ _mm256_set_ps(7, 6, 5, 4, 3, 2, 1, 0),
                 _mm256_set_ps(15, 14, 13, 12, 11, 10, 9, 8) };
}

PITH_INLINE vf vf_load_f16(const uint16_t *p) {
    return (vf){ _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p + 1)) };
}
PITH_INLINE vf vf_load_bf16(const uint16_t *p) {
    return vf_bits(vi_shl(((vi){ _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)),
                                 _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p + 1)) }),
                          16));
}
PITH_INLINE void vf_store_f16(uint16_t *p, vf a) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)p + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
PITH_INLINE vi vi_load_u8(const uint8_t *p) {
    __m128i a = _mm_loadu_si128((const __m128i *)p);
    return (vi){ _mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8)) };
}
PITH_INLINE vi vi_load_i8(const uint8_t *p) {
    __m128i a = _mm_loadu_si128((const __m128i *)p);
    return (vi){ _mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8)) };
}
PITH_INLINE void vi_store_u8(uint8_t *p, vi a) {
    __m256i low = _mm256_set1_epi32(255);
    __m256i words = _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                    _mm256_extracti128_si256(words, 1)));
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

#define PITH_VEC_TREE(name, op)                                                                    \
    PITH_INLINE float name(vf a) {                                                                 \
        __m256 b = _mm256_##op##_ps(a.lo, a.hi);                                                   \
        __m128 c = _mm_##op##_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));          \
        c = _mm_##op##_ps(c, _mm_movehl_ps(c, c));                                                 \
        return _mm_cvtss_f32(_mm_##op##_ps(c, _mm_movehdup_ps(c)));                                \
    }
PITH_VEC_TREE(vf_sum, add)
PITH_VEC_TREE(vf_hmax, max)
PITH_VEC_TREE(vf_hmin, min)

PITH_INLINE void pith__vec_transpose8(__m256 r[8]) {
    __m256 s[8];
    PITH_UNROLL
    for (int i = 0; i < 8; i += 2) {
        s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    PITH_UNROLL
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
        r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
    }
    PITH_UNROLL
    for (int i = 0; i < 4; i++) {
        s[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        s[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    PITH_UNROLL
    for (int i = 0; i < 8; i++) r[i] = s[i];
}
PITH_INLINE void vf_transpose(vf r[16]) {
    __m256 b[4][8];
    PITH_UNROLL
    for (int i = 0; i < 8; i++)
        b[0][i] = r[i].lo, b[1][i] = r[i].hi, b[2][i] = r[i + 8].lo, b[3][i] = r[i + 8].hi;
    PITH_UNROLL
    for (int i = 0; i < 4; i++) pith__vec_transpose8(b[i]);
    PITH_UNROLL
    for (int i = 0; i < 8; i++)
        r[i] = (vf){ b[0][i], b[2][i] }, r[i + 8] = (vf){ b[1][i], b[3][i] };
}

#endif
