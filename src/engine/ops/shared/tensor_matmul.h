/* tensor_matmul.h - matmuls of tensors, for MatMul, Gemm and operators that use them.
 *
 * f32 uses the packed GEMM: a constant right side is packed once at prepare, any other one into
 * scratch. Other types use the plain loop. Work is split by rows and columns, or by matrices if
 * there are many; the split does not change a bit. */
#ifndef PITH_ENGINE_OPS_SHARED_TENSOR_MATMUL_H
#define PITH_ENGINE_OPS_SHARED_TENSOR_MATMUL_H

#include "engine/kernels/gemm.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct pith__product {
    pith__gemm_f32_fn *gemm;
    pith__gemm_pack_f32_fn *pack;
    pith__kernel_fn *plain; /* pith__matmul_fn, if not f32 */
    size_t element;
    const void *packed; /* a constant b: `matrices` packed ones after each other; else NULL */
    int64_t matrices, packed_size;
} pith__product;

/* b: the input that is the right side, which is packed if it is a constant; -1: no input.
 * [matrices…, k, n], or [matrices…, n, k] if transposed. f16 and bf16 are packed as f32; run then
 * expects widened operands. */
pith_status pith__product_prepare(pith__product *p, pith__prepare *c, int dtype, int b,
                                  bool transposed);

/* `count` matmuls c = a b (+ bias, f32 only). Each c is a dense [m, n]; they follow each other. */
typedef struct pith__product_job {
    const pith__product *product;
    const void *a, *b;
    void *c;
    const float *bias;
    int64_t count, m, n, k, a_row, a_column, b_row, b_column;
    const int64_t *a_at; /* [count] elements before matrix i; NULL: dense matrices after each
                            other */
    const int64_t *b_at; /* [count] the same, but matrices where b is packed; NULL: all take the
                            first */
} pith__product_job;

/* Sets *bytes to the scratch for matmuls of these sizes; returns false on overflow. */
bool pith__product_scratch(const pith__product *p, int64_t count, int64_t n, int64_t k, int threads,
                           size_t *bytes);
void pith__product_run(pith__run *r, void *scratch, const pith__product_job *job);

#endif
