/* matmul.h - matmuls for the types that gemm.h does not have: f64 and integers (which wrap). */
#ifndef PITH_ENGINE_KERNELS_MATMUL_H
#define PITH_ENGINE_KERNELS_MATMUL_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* c[i, j] = sum over ascending k of a[i, k] * b[k, j], i in [m0, m1). a[i, k] is at i * a_row + k *
 * a_column, likewise b; c is dense with n columns. */
typedef struct pith__matmul {
    const void *a, *b;
    void *c;
    int64_t n, k, a_row, a_column, b_row, b_column;
} pith__matmul;
typedef void pith__matmul_fn(const pith__matmul *p, int64_t m0, int64_t m1); /* "matmul" */
PITH_KERNEL_DECLARE(matmul_f64, pith__matmul_fn)
/* The loop in plain C, for any b_column; the same bits. */
pith__matmul_fn pith__matmul_any_f64;

#endif
