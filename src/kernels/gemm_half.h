/* gemm_half.h - products with weights packed in 16 bits, f16 or bf16, sums in f32.
 *
 * wide: a is f32 and b is widened as it is read; the arithmetic is that of gemm.h, so the bits are those of the f32
 * product of the widened weights, on every level, for half the bytes of b. The others multiply bf16 by bf16 as the
 * processor does it: AMX and AVX512_BF16 round and order differently, so their bits are their own, though the same for
 * every blocking.
 *
 * b is packed once, in panels of 16 columns; zeros fill up columns, and k to an even number. f16: rows of 16, k-major.
 * bf16: groups of 2 k, as the processor's products want them: element 2 * j + (k mod 2) of a group's 32 belongs to
 * column j. */
#ifndef PITH_KERNELS_GEMM_HALF_H
#define PITH_KERNELS_GEMM_HALF_H

#include <stdint.h>

#include "kernels/gemm.h"

typedef struct pith_gemm_half {
    const void *a;     /* [m, k] f32 (wide) or bf16, row stride lda elements */
    const void *b;     /* packed, 4-byte aligned */
    float *c;          /* [m, n], row stride ldc */
    const float *bias; /* [n] or NULL */
    int64_t m, n, k, lda, ldc;
    pith_activation activation;
    const void *next; /* as of pith_gemm; the processor's own products fetch it */
} pith_gemm_half;

/* Bytes a packed [k, n] matrix takes; -1 on overflow. */
int64_t pith_gemm_half_packed_size(int64_t k, int64_t n);

/* A panel [k][16] of f32 (pith_gemm_pack_f32_fn) to one of 16 bits, rounded to nearest, ties to even. */
typedef void pith_gemm_pack_half_fn(void *packed, const float *panel, int64_t k);
PITH_KERNEL_DECLARE(gemm_pack_f16, pith_gemm_pack_half_fn)  /* family "gemm_pack" */
PITH_KERNEL_DECLARE(gemm_pack_bf16, pith_gemm_pack_half_fn) /* family "gemm_pack" */

/* n floats to bf16, rounded so; as bf16, or as the f32 of the same value. */
typedef void pith_round_bf16_fn(const float *x, void *y, int64_t n);
PITH_KERNEL_DECLARE(to_bf16_bf16, pith_round_bf16_fn) /* family "to_bf16" bf16: 16 bits each */
PITH_KERNEL_DECLARE(to_bf16_f32, pith_round_bf16_fn)  /* family "to_bf16" f32: the f32 of the same value */

/* Rows [m0, m1), columns [n0, n1) with n0 a multiple of 16, as pith_gemm_f32_fn. */
typedef void pith_gemm_half_fn(const pith_gemm_half *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(gemm_f16, pith_gemm_half_fn)      /* family "gemm": wide */
PITH_KERNEL_DECLARE(gemm_bf16, pith_gemm_half_fn)     /* family "gemm": wide */
PITH_KERNEL_DECLARE(gemm_dp_bf16, pith_gemm_half_fn)  /* family "gemm_dp": needs AVX512_BF16 on level avx512,
                                                         lda even, and behind an odd k of each row of a a zero */
PITH_KERNEL_DECLARE(gemm_amx_bf16, pith_gemm_half_fn) /* family "gemm_amx": needs AMX_BF16 on level avx512 */

/* The fastest bf16 row this processor can run at the level; *wide: it wants a in f32. */
pith_gemm_half_fn *pith_gemm_bf16_find(int *wide, pith_isa isa);

#endif
