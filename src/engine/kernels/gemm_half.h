/* gemm_half.h - GEMM with weights packed in f16 or bf16, and sums in f32.
 *
 * The wide kernels take a in f32 and widen b as they read it. Their arithmetic is that of gemm.h,
 * so on every level the bits are those of the f32 GEMM with the widened weights, for half the bytes
 * of b. The other kernels multiply bf16 by bf16 with AMX or AVX512_BF16. These instructions round
 * and order sums differently, so each has its own bits, which are the same for every blocking.
 *
 * b is packed once, in panels of 16 columns, padded with zeros to whole panels and to an even k.
 * f16: rows of 16, k-major. bf16: groups of 2 steps of k, as the instructions need them: element 2
 * * j + (k mod 2) of a group's 32 belongs to column j. */
#ifndef PITH_ENGINE_KERNELS_GEMM_HALF_H
#define PITH_ENGINE_KERNELS_GEMM_HALF_H

#include <stdint.h>

#include "engine/kernels/gemm.h"

typedef struct pith__gemm_half {
    const void *a;     /* [m, k] f32 (wide) or bf16, row stride lda elements */
    const void *b;     /* packed, 4-byte aligned */
    float *c;          /* [m, n], row stride ldc */
    const float *bias; /* [n] or NULL */
    int64_t m, n, k, lda, ldc;
    pith__gemm_activation activation;
    const void *next; /* as in pith__gemm; the AMX and AVX512_BF16 kernels prefetch it */
} pith__gemm_half;

/* Returns the bytes of a packed [k, n] matrix, or -1 on overflow. */
int64_t pith__gemm_half_packed_size(int64_t k, int64_t n);

/* Converts a panel [k][16] of f32 (pith__gemm_pack_f32_fn) to 16 bits, rounded to nearest, ties to
 * even. */
typedef void pith__gemm_pack_half_fn(void *packed, const float *panel, int64_t k);
PITH_KERNEL_DECLARE(gemm_pack_f16, pith__gemm_pack_half_fn)  /* family "gemm_pack" */
PITH_KERNEL_DECLARE(gemm_pack_bf16, pith__gemm_pack_half_fn) /* family "gemm_pack" */

/* Rounds n floats to bf16 in the same way, and stores them as bf16 or as f32. */
typedef void pith__round_bf16_fn(const float *x, void *y, int64_t n);
PITH_KERNEL_DECLARE(to_bf16_bf16, pith__round_bf16_fn) /* family "to_bf16" bf16: 16 bits each */
/* family "to_bf16" f32: the f32 of the same value */
PITH_KERNEL_DECLARE(to_bf16_f32, pith__round_bf16_fn)

/* Rows [m0, m1), columns [n0, n1) with n0 a multiple of 16, as pith__gemm_f32_fn. */
typedef void pith__gemm_half_fn(const pith__gemm_half *g, int64_t m0, int64_t m1, int64_t n0,
                                int64_t n1);
PITH_KERNEL_DECLARE(gemm_f16, pith__gemm_half_fn)  /* family "gemm": wide */
PITH_KERNEL_DECLARE(gemm_bf16, pith__gemm_half_fn) /* family "gemm": wide */
/* family "gemm_dp": needs AVX512_BF16 on level avx512, lda even, and behind an odd k of each row of
 * a a zero */
PITH_KERNEL_DECLARE(gemm_dp_bf16, pith__gemm_half_fn)
/* family "gemm_amx": needs AMX_BF16 on level avx512 */
PITH_KERNEL_DECLARE(gemm_amx_bf16, pith__gemm_half_fn)

/* Returns the fastest bf16 kernel that this processor can run at the level. *wide is set to 1 if it
 * takes a in f32. */
const char *pith__gemm_bf16_family(int *wide, pith__isa isa);

#endif
