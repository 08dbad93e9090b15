/* gemm.h - GEMM in f32.
 *
 * Definition (all levels, all blockings): c[i,j] = epilogue(sum over ascending k of fma(a[i,k],
 * b[k,j])), one accumulator per element starting at +0, no split of k. Blocking k is allowed only
 * by storing and reloading the accumulator. Epilogue: + bias[j], then the activation.
 *
 * B is packed once: panels of 16 columns, k-major, the last panel padded with zeros; the layout is
 * the same for every level, so a file may hold it. */
#ifndef PITH_ENGINE_KERNELS_GEMM_H
#define PITH_ENGINE_KERNELS_GEMM_H

#include <stdint.h>

#include "base/private_symbol.h"
#include "engine/kernels/kernel.h"

typedef enum pith__gemm_activation {
    PITH_ACT_NONE,
    PITH_ACT_GELU_ERF,
    PITH_ACT_GELU_TANH,
    PITH_ACT_RELU,
    PITH_ACT_TANH,
    PITH_ACT_SIGMOID,
    PITH_ACT_SILU,
    PITH_ACT_QUICK_GELU
} pith__gemm_activation;

#define PITH_GEMM_PANEL 16

typedef struct pith__gemm {
    const float *a;    /* [m, k], row stride lda */
    const float *b;    /* packed */
    float *c;          /* [m, n], row stride ldc; must not overlap a */
    const float *bias; /* [n] or NULL */
    int64_t m, n, k, lda, ldc;
    pith__gemm_activation activation;
    const void *next; /* the memory that is read after this call, for prefetching; it need not be
                         valid. NULL: the columns that follow */
} pith__gemm;

/* Returns the floats of a packed [k, n] matrix, or -1 on overflow. */
PITH_PRIVATE int64_t pith__gemm_f32_packed_size(int64_t k, int64_t n);

/* Packs columns [n0, n1) (n0 a multiple of 16) of b, whose element (k, n) is b[k * row_stride + n *
 * column_stride]. */
typedef void pith__gemm_pack_f32_fn(float *packed, const float *b, int64_t row_stride,
                                    int64_t column_stride, int64_t k, int64_t n, int64_t n0,
                                    int64_t n1);
PITH_KERNEL_DECLARE(gemm_pack_f32, pith__gemm_pack_f32_fn) /* family "gemm_pack" */

/* Computes rows [m0, m1) and columns [n0, n1) of c; n0 is a multiple of 16. Ranges may be computed
 * in any order and in parallel. Efficient from 1 row, where it reads b at the speed of memory, to
 * thousands. */
typedef void pith__gemm_f32_fn(const pith__gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(gemm_f32, pith__gemm_f32_fn) /* family "gemm" */

#endif
