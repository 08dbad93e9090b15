/* vec_avx512.h - the primitives of vec.h in one 512-bit register (AVX-512 F, BW, DQ, VL). */
#ifndef PITH_ENGINE_KERNELS_VEC_AVX512_H
#define PITH_ENGINE_KERNELS_VEC_AVX512_H

#include <immintrin.h>

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

PITH_INLINE vm vm_first(size_t n) { return (vm)((1u << n) - 1); }
PITH_INLINE vm vm_and(vm a, vm b) { return a & b; }
PITH_INLINE vm vm_or(vm a, vm b) { return a | b; }
PITH_INLINE vm vm_not(vm a) { return (vm)~a; }
PITH_INLINE int vm_any(vm a) { return a != 0; }
PITH_INLINE uint32_t vm_lanes(vm a) { return a; }
PITH_INLINE vm vm_lowest(vm a) { return (vm)(a & -a); }

PITH_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
PITH_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
PITH_INLINE vf vf_clear(void) {
    vf a;
    __asm__ volatile("vpxord %0, %0, %0" : "=v"(a));
    return a;
}
PITH_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
PITH_INLINE vf vf_load_n(const float *p, size_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
PITH_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
PITH_INLINE void vf_store_n(float *p, vf a, size_t n) { _mm512_mask_storeu_ps(p, vm_first(n), a); }

PITH_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
PITH_INLINE vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
PITH_INLINE void vi_store(int32_t *p, vi a) { _mm512_storeu_si512(p, a); }
PITH_INLINE vi vi_load_i16(const int16_t *p) {
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
PITH_INLINE vi vi_load_i8_pairs(const int8_t *p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
}
PITH_INLINE void vi_store_16(void *p, vi a) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a));
}
PITH_INLINE void vi_store_8(void *p, vi a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a));
}
PITH_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
PITH_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
PITH_INLINE vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
PITH_INLINE vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
PITH_INLINE int32_t vi_hmax(vi a) { return _mm512_reduce_max_epi32(a); }
PITH_INLINE int32_t vi_hsum(vi a) { return _mm512_reduce_add_epi32(a); }
PITH_INLINE vi vi_dot_pairs(vi a, vi b) { return _mm512_madd_epi16(a, b); }
PITH_INLINE vi vi_dot_bytes(vi a, vi b) { return _mm512_maddubs_epi16(a, b); }
/* The same added to c; needs AVX512_VNNI. */
PITH_INLINE vi vi_vnni_pairs(vi a, vi b, vi c) {
    __asm__("vpdpwssd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
PITH_INLINE vi vi_vnni_bytes(vi a, vi b, vi c) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
PITH_INLINE vi vi_load_bytes(const void *p) { return _mm512_loadu_si512(p); }
PITH_INLINE vi vi_load_bytes_n(const void *p, size_t n) {
    return _mm512_maskz_loadu_epi8(n < 64 ? (1ull << n) - 1 : ~0ull, p);
}
PITH_INLINE void vi_store_bytes(void *p, vi a) { _mm512_storeu_si512(p, a); }
PITH_INLINE void vi_store_bytes_n(void *p, vi a, size_t n) {
    _mm512_mask_storeu_epi8(p, n < 64 ? (1ull << n) - 1 : ~0ull, a);
}
PITH_INLINE vi vi_low_8(vi a, vi b) { return _mm512_unpacklo_epi8(a, b); }
PITH_INLINE vi vi_high_8(vi a, vi b) { return _mm512_unpackhi_epi8(a, b); }
PITH_INLINE vi vi_low_16(vi a, vi b) { return _mm512_unpacklo_epi16(a, b); }
PITH_INLINE vi vi_high_16(vi a, vi b) { return _mm512_unpackhi_epi16(a, b); }
PITH_INLINE vi vi_narrow_8(const vi v[4]) {
    const vi low = _mm512_set1_epi32(255);
    return _mm512_packus_epi16(
        _mm512_packs_epi32(_mm512_and_si512(v[0], low), _mm512_and_si512(v[1], low)),
        _mm512_packs_epi32(_mm512_and_si512(v[2], low), _mm512_and_si512(v[3], low)));
}
PITH_INLINE void vi_turn_groups(vi v[4]) {
    const vi a = _mm512_shuffle_i32x4(v[0], v[1], 0x44), b = _mm512_shuffle_i32x4(v[0], v[1], 0xEE);
    const vi c = _mm512_shuffle_i32x4(v[2], v[3], 0x44), d = _mm512_shuffle_i32x4(v[2], v[3], 0xEE);
    v[0] = _mm512_shuffle_i32x4(a, c, 0x88), v[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    v[2] = _mm512_shuffle_i32x4(b, d, 0x88), v[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}
PITH_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
PITH_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
PITH_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
PITH_INLINE vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
PITH_INLINE vm vi_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
PITH_INLINE vi vi_select(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
#define vi_shl(a, n) _mm512_slli_epi32(a, n)
#define vi_shr(a, n) _mm512_srli_epi32(a, n)
#define vi_sar(a, n) _mm512_srai_epi32(a, n)

PITH_INLINE vf vf_bits(vi a) { return _mm512_castsi512_ps(a); }
PITH_INLINE vi vi_bits(vf a) { return _mm512_castps_si512(a); }
PITH_INLINE vf vf_of_vi(vi a) { return _mm512_cvtepi32_ps(a); }
PITH_INLINE vi vi_of_vf(vf a) { return _mm512_cvttps_epi32(a); }
PITH_INLINE vi vi_nearest(vf a) {
    return _mm512_cvt_roundps_epi32(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

PITH_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
PITH_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
PITH_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
PITH_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
PITH_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
/* Written out since compilers load a number that is used twice into a register: one operation more
 * to issue. */
PITH_INLINE vf vf_fma_at(const float *a, vf b, vf c) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}
PITH_INLINE vf vf_fma_onto(vf a, vf b, vf c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
/* c + the two products of bf16 in each place, as the processor rounds them. These need AVX512_BF16.
 */
PITH_INLINE vf vf_pairs_at(const float *a, vf b, vf c) {
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}
PITH_INLINE vf vf_pairs_onto(vf a, vf b, vf c) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
PITH_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
PITH_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
PITH_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
PITH_INLINE vf vf_neg(vf a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
PITH_INLINE vf vf_abs(vf a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
PITH_INLINE vf vf_copysign(vf a, vf sign) {
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_set1_epi32(INT32_MIN), _mm512_castps_si512(sign), _mm512_castps_si512(a), 0xCA));
}
PITH_INLINE vf vf_round(vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
PITH_INLINE vf vf_floor(vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
PITH_INLINE vf vf_ceil(vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
PITH_INLINE vf vf_trunc(vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
PITH_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
PITH_INLINE vm vf_not_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
PITH_INLINE vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
PITH_INLINE vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
PITH_INLINE vm vf_gt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
PITH_INLINE vm vf_ge(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
PITH_INLINE vf vf_even(vf a, vf b) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, even, b);
}
PITH_INLINE vf vf_shift(vf a) {
    return _mm512_castsi512_ps(
        _mm512_alignr_epi32(_mm512_castps_si512(a), _mm512_setzero_si512(), 15));
}
PITH_INLINE vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
PITH_INLINE vf vf_keep(vm m, vf a) { return _mm512_maskz_mov_ps(m, a); }
PITH_INLINE vf vf_ldexp(vf a, vf n) { return _mm512_scalef_ps(a, n); }
PITH_INLINE vf vf_gather(const float *base, vi i) { return _mm512_i32gather_ps(i, base, 4); }
PITH_INLINE vf vf_iota(void) {
    return _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

PITH_INLINE vf vf_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
PITH_INLINE void vf_store_f16(uint16_t *p, vf a) {
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
PITH_INLINE vi vi_load_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
PITH_INLINE vi vi_load_i8(const uint8_t *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
PITH_INLINE void vi_store_u8(uint8_t *p, vi a) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a));
}
PITH_INLINE vf vf_load_f16_n(const uint16_t *p, size_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vm_first(n), p));
}
PITH_INLINE vf vf_load_bf16(const uint16_t *p) {
    return vf_bits(vi_shl(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
PITH_INLINE vf vf_load_bf16_n(const uint16_t *p, size_t n) {
    return vf_bits(vi_shl(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vm_first(n), p)), 16));
}

#define PITH_VEC_TREE(name, op)                                                                    \
    PITH_INLINE float name(vf a) {                                                                 \
        __m256 b = op##256(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));               \
        __m128 c = op##128(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));                \
        c = op##128(c, _mm_movehl_ps(c, c));                                                       \
        return _mm_cvtss_f32(op##128(c, _mm_movehdup_ps(c)));                                      \
    }
#define add256 _mm256_add_ps
#define add128 _mm_add_ps
#define max256 _mm256_max_ps
#define max128 _mm_max_ps
#define min256 _mm256_min_ps
#define min128 _mm_min_ps
PITH_VEC_TREE(vf_sum, add)
PITH_VEC_TREE(vf_hmax, max)
PITH_VEC_TREE(vf_hmin, min)

PITH_INLINE void vf_transpose(vf r[16]) {
    vf s[16];
    PITH_UNROLL
    for (int i = 0; i < 16; i += 2) {
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    PITH_UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(s[i], s[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(s[i], s[i + 2], 0xEE);
        r[i + 2] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
    }
    PITH_UNROLL
    for (int i = 0; i < 4; i++) {
        s[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        s[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        s[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        s[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
    PITH_UNROLL
    for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_f32x4(s[i], s[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(s[i], s[i + 8], 0xDD);
    }
}

#endif
