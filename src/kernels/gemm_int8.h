/* gemm_int8.h - products of 8-bit matrices with exact 32-bit sums: a (u8 or i8) times b (i8).
 *
 * The sum of every element is exact modulo 2^32 (k up to 66,000 cannot overflow), so levels and blockings agree by
 * themselves. With c the sums are the result. With out they become
 *   out[i, j] = activation(fma((float)(sum - a_zero[i] * column_sum[j]) * a_scale[i], b_scale[j], bias[j])).
 * Some elements of each row of a may lie outside 8 bits: with a_extra the sum has what they lack times their rows of b
 * more.
 *
 * b is packed once: panels of 16 columns, each ceil(k / 4) groups of 4 k: byte 4 * j + (k mod 4) of a group's 64
 * belongs to column j; zeros fill up k and columns. The panel ends with the 16 column sums as int32. The layout is
 * the same for every level. */
#ifndef PITH_KERNELS_GEMM_INT8_H
#define PITH_KERNELS_GEMM_INT8_H

#include <stdint.h>

#include "kernels/gemm.h"

/* Bounds of a narrow product, whose four products fit 16 bits: PITH_NARROW_A * PITH_NARROW_FOUR < 2^15. */
enum { PITH_NARROW_A = 150, PITH_NARROW_FOUR = 218 };

/* Elements of a row of a that may lie outside 8 bits. */
enum { PITH_I8_EXTRAS = 3 };

/* One of them, as the product wants it: its row of b is a byte of every four in a group of the panels. */
typedef struct pith_i8_extra {
    int32_t group; /* bytes of a panel before the group */
    int32_t one;   /* 1 where the byte is, 0 in the other three */
    int32_t pair;  /* what 8 bits lack of the element, 16 bits, in both halves */
} pith_i8_extra;

/* Of element k of a row. lacks: within 16 bits. */
static inline pith_i8_extra pith_i8_extra_of(int64_t k, int32_t lacks) {
    const uint32_t low = (uint32_t)lacks & 0xFFFF;
    return (pith_i8_extra){ (int32_t)(k / 4 * 64), (int32_t)(1u << 8 * (k % 4)), (int32_t)(low << 16 | low) };
}

typedef struct pith_gemm_int8 {
    const void *a;                /* [m, k] u8, or i8 if a_signed; row stride lda bytes */
    const void *b;                /* packed, 4-byte aligned */
    int32_t *c;                   /* [m, n], row stride ldc; or NULL */
    float *out;                   /* [m, n], row stride ldc; used if c is NULL */
    const float *a_scale;         /* [m] */
    const int32_t *a_zero;        /* [m], within +-2^14, or NULL: 0 */
    const pith_i8_extra *a_extra; /* [m, PITH_I8_EXTRAS], used with out; or NULL */
    const float *b_scale;         /* [n] */
    const float *bias;            /* [n] or NULL */
    int64_t m, n, k, lda, ldc;
    int32_t a_signed;
    int32_t narrow; /* 1: a is unsigned and at most PITH_NARROW_A; |b| of rows 8 i + 0, 1, 4, 5 are at most
                       PITH_NARROW_FOUR together in every column, and so are those of rows 8 i + 2, 3, 6, 7. AVX2
                       without VNNI multiplies them at more than twice the speed */
    pith_activation activation;
    const void *next; /* as of pith_gemm */
} pith_gemm_int8;

/* Bytes of a panel, its sums included. */
static inline int64_t pith_gemm_int8_panel_bytes(int64_t k) { return (k + 3) / 4 * 64 + 64; }

/* Bytes a packed [k, n] matrix takes; -1 on overflow. */
int64_t pith_gemm_int8_packed_size(int64_t k, int64_t n);

/* Packs columns [n0, n1) (n0 a multiple of 16) of b, whose element (k, n) is b[k * row_stride + n * column_stride]. */
typedef void pith_gemm_pack_i8_fn(void *packed, const int8_t *b, int64_t row_stride, int64_t column_stride, int64_t k,
                                  int64_t n, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(gemm_pack_i8, pith_gemm_pack_i8_fn) /* family "gemm_pack" */

/* Rows [m0, m1), columns [n0, n1) with n0 a multiple of 16, as pith_gemm_f32_fn. */
typedef void pith_gemm_i8_fn(const pith_gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(gemm_i8, pith_gemm_i8_fn)      /* family "gemm" */
PITH_KERNEL_DECLARE(gemm_vnni_i8, pith_gemm_i8_fn) /* family "gemm_vnni": needs AVX512_VNNI or AVX_VNNI on its level */
PITH_KERNEL_DECLARE(gemm_amx_i8, pith_gemm_i8_fn)  /* family "gemm_amx": needs AMX_INT8 on level avx512 */

/* The fastest row this processor can run at the level. speed, unless NULL: about how many times as fast as f32. */
pith_gemm_i8_fn *pith_gemm_i8_find(int *speed, pith_isa isa);

#endif
