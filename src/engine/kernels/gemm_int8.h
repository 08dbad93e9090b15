/* gemm_int8.h - GEMM of 8-bit matrices with exact 32-bit sums: a (u8 or i8) times b (i8).
 *
 * Sums are exact modulo 2^32 (k up to 66,000 cannot overflow), so all levels and blockings give the
 * same bits. If c is set, the sums are the result. If bytes is set, *requantize turns them into
 * bytes. If out is set, the epilogue turns them into
 *   out[i, j] = activation(fma((float)(sum - a_zero[i] * column_sum[j]) * a_scale[i], b_scale[j],
 *   bias[j])).
 * Each row of a may have a few outliers, which do not fit 8 bits. a_extra lists them: for each one,
 * the part that 8 bits lack, times its row of b, is added to the sum.
 *
 * b is packed once: panels of 16 columns, each ceil(k / 4) groups of 4 k: byte 4 * j + (k mod 4) of
 * a group's 64 belongs to column j; zeros fill up k and columns. The panel ends with the 16 column
 * sums as int32. The layout is the same for every level. */
#ifndef PITH_ENGINE_KERNELS_GEMM_INT8_H
#define PITH_ENGINE_KERNELS_GEMM_INT8_H

#include <stdint.h>

#include "engine/kernels/conv_bytes.h"
#include "engine/kernels/gemm.h"

/* Bounds of a narrow GEMM, in which the sum of four products fits 16 bits: PITH_NARROW_A *
 * PITH_NARROW_FOUR < 2^15. */
enum { PITH_NARROW_A = 150, PITH_NARROW_FOUR = 218 };

/* The most outliers in a row of a. */
enum { PITH_I8_EXTRAS = 3 };

/* An outlier in the form that the kernels need. Its row of b is one byte of every four in a group
 * of the panels. */
typedef struct pith__i8_extra {
    int32_t group; /* offset of the group in a panel, in bytes */
    int32_t one;   /* 1 in the byte of its row, 0 in the other three */
    int32_t pair;  /* the part that 8 bits lack, as 16 bits in both halves */
} pith__i8_extra;

/* Makes the outlier for element k of a row. lacks, the part that 8 bits lack, must fit 16 bits. */
static inline pith__i8_extra pith__i8_extra_of(int64_t k, int32_t lacks) {
    const uint32_t low = (uint32_t)lacks & 0xFFFF;
    return (pith__i8_extra){ (int32_t)(k / 4 * 64), (int32_t)(1u << 8 * (k % 4)),
                             (int32_t)(low << 16 | low) };
}

typedef struct pith__gemm_int8 {
    const void *a;                 /* [m, k] u8, or i8 if a_signed; row stride lda bytes */
    const void *b;                 /* packed, 4-byte aligned */
    int32_t *c;                    /* [m, n], row stride ldc; or NULL */
    const pith__requantize *bytes; /* with scale, its windows are rows and its maps columns, and a
                                      must not be signed. Used if c is NULL; or NULL */
    pith__requantize_fn *requantize;
    float *out;                    /* [m, n], row stride ldc; used if c and bytes are NULL */
    const float *a_scale;          /* [m] */
    const int32_t *a_zero;         /* [m], within +-2^14, or NULL: 0 */
    const pith__i8_extra *a_extra; /* [m, PITH_I8_EXTRAS], used with out; or NULL */
    const float *b_scale;          /* [n] */
    const float *bias;             /* [n] or NULL */
    int64_t m, n, k, lda, ldc;
    int32_t a_signed;
    int32_t narrow; /* 1: a is unsigned and at most PITH_NARROW_A; |b| of rows 8 i + 0, 1, 4, 5 are
                       at most PITH_NARROW_FOUR together in every column, and so are those of rows 8
                       i + 2, 3, 6, 7. AVX2 without VNNI multiplies them at more than twice the
                       speed */
    pith__gemm_activation activation;
    const void *next; /* as in pith__gemm */
} pith__gemm_int8;

/* Returns the bytes of a panel, including its column sums. */
static inline int64_t pith__gemm_int8_panel_bytes(int64_t k) { return (k + 3) / 4 * 64 + 64; }

/* Returns the bytes of a packed [k, n] matrix, or -1 on overflow. */
int64_t pith__gemm_int8_packed_size(int64_t k, int64_t n);

/* Packs columns [n0, n1) (n0 a multiple of 16) of b, whose element (k, n) is b[k * row_stride + n *
 * column_stride]. */
typedef void pith__gemm_pack_i8_fn(void *packed, const int8_t *b, int64_t row_stride,
                                   int64_t column_stride, int64_t k, int64_t n, int64_t n0,
                                   int64_t n1);
PITH_KERNEL_DECLARE(gemm_pack_i8, pith__gemm_pack_i8_fn) /* family "gemm_pack" */

/* Rows [m0, m1), columns [n0, n1) with n0 a multiple of 16, as pith__gemm_f32_fn. */
typedef void pith__gemm_i8_fn(const pith__gemm_int8 *g, int64_t m0, int64_t m1, int64_t n0,
                              int64_t n1);
PITH_KERNEL_DECLARE(gemm_i8, pith__gemm_i8_fn)      /* family "gemm" */
PITH_KERNEL_DECLARE(gemm_vnni_i8, pith__gemm_i8_fn) /* family "gemm_vnni": needs AVX512_VNNI or
                                                       AVX_VNNI on its level */
PITH_KERNEL_DECLARE(gemm_amx_i8, pith__gemm_i8_fn)  /* family "gemm_amx": needs AMX_INT8 on level
                                                       avx512 */

/* Returns the fastest kernel for rows of k that this processor can run at the level. *speed, if
 * speed is not NULL, is set to its speed as a multiple of f32's, roughly. */
pith__gemm_i8_fn *pith__gemm_i8_find(int *speed, int64_t k, pith__isa isa);

#endif
