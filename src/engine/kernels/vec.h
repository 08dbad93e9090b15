/* vec.h - sixteen lanes, the same on every instruction set level.
 *
 * vf is 16 floats, vi 16 int32, vm 16 booleans. A level keeps them in one AVX-512 register, two
 * AVX2 registers, four NEON registers or an array; vec_<level>.h says how, this file says what.
 * Every primitive gives the same bits on every level (NaN payloads excepted), so whatever is
 * written on them does too. There are no estimate instructions and no implicit contraction: only
 * vf_fma is fused.
 *
 *   vf_set1 vf_zero vf_iota            constants; iota is 0, 1, … 15
 *   vf_clear()                         vf_zero in a register of its own, where copies of one zero
 *                                      would be operations
 *   vf_load vf_store                   16 elements, any alignment
 *   vf_load_n vf_store_n               the first n (0 to 16) only; other lanes load as +0; no other
 *                                      byte is touched
 *   vf_add vf_sub vf_mul vf_div vf_sqrt, vf_fma(a, b, c) = a * b + c          IEEE, rounded once
 *   vf_fma_at(p, b, c)                 p[0] * b + c, p[0] taken from memory by the multiply-add
 *                                      where it can be
 *   vf_fma_onto(a, b, c)               vf_fma in the register of c, where compilers would move sums
 *                                      from one to another
 *   vf_min vf_max                      a < b ? a : b and a > b ? a : b: b if either is NaN or both
 *                                      are zeros
 *   vf_neg vf_abs vf_copysign(magnitude, sign)                                bit operations, also
 *                                                                             on NaN
 *   vf_round vf_floor vf_ceil vf_trunc to an integral value; round is to nearest, ties to even
 *   vf_lt vf_le vf_eq vf_gt vf_ge vf_isnan            false where an operand is NaN (isnan
 *                                                     excepted)
 *   vf_not_lt                          not (a < b): true where an operand is NaN
 *   vf_select(m, a, b)                 m ? a : b
 *   vf_keep(m, a)                      m ? a : 0
 *   vf_ldexp(a, n)                     a * 2^n, n integral, |n| <= 252, rounded once if 2^-125 <=
 *                                      |a| < 2^125
 *   vf_scale(a, n)                     a * 2^n, n integral, 2^-126 <= |a| * 2^n < 2^127
 *   vf_bits vi_bits                    reinterpretation
 *   vf_of_vi, vi_of_vf                 conversion; to int: toward zero, unspecified outside int32
 *   vi_set1 vi_load vi_store vi_add vi_sub vi_mul vi_and vi_or vi_xor vi_eq vi_gt vi_select,
 *   wrapping
 *   vi_max vi_hmax vi_hsum             the larger; the largest and the sum over lanes
 *   vi_dot_pairs(a, b)                 the products of the lower and of the upper 16 bits, signed,
 *                                      added
 *   vi_dot_bytes(a, b)                 the same of bytes, a's unsigned, for each half of a lane;
 *                                      sums must fit 16 bits
 *   vi_add_bytes(c, a, b, vnni)        c and the products of the four bytes of each lane, a's
 *                                      unsigned, added
 *   vi_nearest                         the nearest integer of a float, ties to even; unspecified
 *                                      outside int32
 *   vi_load_i16                        16 int16, sign extended
 *   vi_load_i8_pairs                   32 int8 as 16 pairs of int16, the first of each in the lower
 *                                      bits
 *   vi_store_16, vi_store_8 (and _n)   the low 16 or 8 bits of every lane
 *   vi_load_bytes, vi_store_bytes (and _n)   64 bytes as they lie; other bytes load as 0
 *   vi_low_8 vi_high_8 vi_low_16 vi_high_16  the elements of the lower or upper halves of a and b
 *                                            in turn; within each group of four lanes
 *   vi_narrow_8(v)                     the low bytes of four vectors: of a group of each, then of
 *                                      the next group
 *   vi_turn_groups(v)                  group i of vector j and group j of vector i change places,
 *                                      in place
 *   vi_shl vi_shr vi_sar               by a constant 0 to 31; shr is logical
 *   vm_and vm_or vm_not vm_any vm_first(n): lanes below n; vm_lanes(m): bit i is lane i;
 *   vm_lowest(m)                       the first true lane alone
 *   vf_gather(base, i)                 base[i] of every lane
 *   vf_even(a, b)                      lanes 0, 2, … 14 of a, then those of b
 *   vf_shift(a)                        +0, then lanes 0 to 14 of a
 *   vf_load_f16 vf_load_bf16 (and _n)  16 small floats, widened exactly
 *   vf_store_f16                       16 halves, rounded to nearest, ties to even
 *   vi_load_u8 vi_load_i8, vi_store_u8 16 bytes, widened; the low byte of each lane
 *   vf_sum vf_hmax vf_hmin             over lanes by the fixed tree: i with i + 8, then + 4, + 2, +
 *                                      1
 *   vf_transpose(r)                    16 x 16 in place */
#ifndef PITH_ENGINE_KERNELS_VEC_H
#define PITH_ENGINE_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PITH_INLINE static inline __attribute__((always_inline))
/* Put it before a loop with constant bounds, so that its arrays of vectors become registers. */
#if defined(PITH_LEVEL_scalar)
#define PITH_UNROLL /* its vectors are arrays anyway */
#elif defined(__clang__)
#define PITH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PITH_UNROLL _Pragma("GCC unroll 64")
#endif

/* Hides the value of an integer from the compiler, so that it does not keep numbers computed from
 * it in registers that a loop needs. */
#define PITH_FORGET(x) __asm__("" : "+r"(x))

#if defined(PITH_LEVEL_avx512)
#include "engine/kernels/vec_avx512.h"
#elif defined(PITH_LEVEL_avx2)
#include "engine/kernels/vec_avx2.h"
#elif defined(PITH_LEVEL_neon)
#include "engine/kernels/vec_neon.h"
#else
#include "engine/kernels/vec_scalar.h"
#endif

#if !defined(PITH_LEVEL_avx512)
PITH_INLINE vf vf_clear(void) { return vf_zero(); }
PITH_INLINE vm vm_lowest(vm a) {
    return vf_eq(vf_iota(), vf_set1((float)__builtin_ctz(vm_lanes(a) | 1u << 16)));
}
#if !defined(PITH_LEVEL_avx2)
#if !defined(PITH_LEVEL_neon)
PITH_INLINE vi vi_dot_pairs(vi a, vi b) {
    return vi_add(vi_mul(vi_sar(vi_shl(a, 16), 16), vi_sar(vi_shl(b, 16), 16)),
                  vi_mul(vi_sar(a, 16), vi_sar(b, 16)));
}
#endif
PITH_INLINE vf vf_fma_onto(vf a, vf b, vf c) { return vf_fma(a, b, c); }
#endif
PITH_INLINE vf vf_fma_at(const float *a, vf b, vf c) { return vf_fma_onto(vf_set1(*a), b, c); }
#if !defined(PITH_LEVEL_avx2)
PITH_INLINE vm vf_not_lt(vf a, vf b) { return vm_not(vf_lt(a, b)); }
PITH_INLINE vf vf_keep(vm m, vf a) { return vf_select(m, a, vf_zero()); }
#endif
#endif
/* Adds n to the exponent, which begins at bit 23. These are three plain operations, which AMD
 * processors run in parallel with multiply-adds; VSCALEFPS would occupy one of the two multiply-add
 * pipes. */
PITH_INLINE vf vf_scale(vf a, vf n) { return vf_bits(vi_add(vi_bits(a), vi_shl(vi_of_vf(n), 23))); }
/* c and the products of pairs; vnni: the processor has it (AVX512_VNNI, AVX_VNNI). */
PITH_INLINE vi vi_add_pairs(vi c, vi a, vi b, const int vnni) {
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
    if (vnni) return vi_vnni_pairs(a, b, c);
#endif
    (void)vnni;
    return vi_add(c, vi_dot_pairs(a, b));
}
/* The products of even bytes and those of odd ones fit 16 bits, their sums do not. */
PITH_INLINE vi vi_add_bytes(vi c, vi a, vi b, const int vnni) {
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
    if (vnni) return vi_vnni_bytes(a, b, c);
#endif
    (void)vnni;
    const vi even = vi_set1(0x00FF00FF), one = vi_set1(0x00010001);
    const vi first = vi_dot_bytes(vi_and(a, even), b),
             second = vi_dot_bytes(vi_and(a, vi_shl(even, 8)), b);
    return vi_add(c, vi_add(vi_dot_pairs(first, one), vi_dot_pairs(second, one)));
}
PITH_INLINE vm vf_isnan(vf a) { return vm_not(vf_eq(a, a)); }

#define PITH_VEC_STORE_N(name, T)                                                                  \
    PITH_INLINE void name##_n(void *p, vi a, size_t n) {                                           \
        T lanes[16];                                                                               \
        name(lanes, a);                                                                            \
        memcpy(p, lanes, n * sizeof *lanes);                                                       \
    }
PITH_VEC_STORE_N(vi_store_8, uint8_t)
PITH_VEC_STORE_N(vi_store_16, uint16_t)

/* The same with NaN if either is NaN. */
PITH_INLINE vf vf_max_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_max(a, b)); }
PITH_INLINE vf vf_min_nan(vf a, vf b) { return vf_select(vf_isnan(a), a, vf_min(a, b)); }

#endif
