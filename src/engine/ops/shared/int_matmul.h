/* int_matmul.h - exact matmuls of 8-bit matrices with zero points and 32-bit sums (which wrap), on
 * the int8 GEMM.
 *
 * (a - p) (b - q) = a b - p * (column sums of b) - q * (row sums of a) + k p q: the GEMM multiplies
 * plain bytes, and zero points are applied afterwards, as integers. 128 is subtracted from an
 * unsigned right side when it is packed, and from its zero points. */
#ifndef PITH_ENGINE_OPS_SHARED_INT_MATMUL_H
#define PITH_ENGINE_OPS_SHARED_INT_MATMUL_H

#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/int_sums.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct pith__int_product {
    pith__gemm_i8_fn *gemm;
    pith__gemm_pack_i8_fn *pack;
    pith__sums_shift_fn *shift;
    const void *packed; /* a constant right side [k, n]; NULL if it is not constant */
} pith__int_product;

/* Finds the loops; packs input b if it is a constant of rank 2. */
pith_status pith__int_product_prepare(pith__int_product *p, pith__prepare *c, int b);
/* Bytes of scratch for one product of these sizes; false on overflow. */
bool pith__int_product_scratch(const pith__int_product *p, int64_t m, int64_t n, int64_t k,
                               size_t *bytes);
/* c[m, n] = (a - a_zero) (b - b_zero). a_zero: one number or one per row; b_zero: one or one per
 * column; NULL: 0. a and b are dense u8 or i8; a_first, b_first: element to begin at. b's data is
 * not read if it is packed. */
void pith__int_product_run(pith__run *r, const pith__int_product *p, void *scratch, int32_t *c,
                           const pith_tensor *a, int64_t a_first, const pith_tensor *b,
                           int64_t b_first, const pith_tensor *a_zero, const pith_tensor *b_zero,
                           int64_t m, int64_t n, int64_t k);

#endif
