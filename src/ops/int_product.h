/* int_product.h - exact products of 8-bit matrices with 32-bit sums, on the f32 GEMM.
 *
 * A difference of two 8-bit numbers is at most 255 in size, so 256 products of them add up to less than 2^24: blocks of
 * 256 along k are exact in f32 whatever the order, and are then added as integers (which wrap). */
#ifndef PITH_OPS_INT_PRODUCT_H
#define PITH_OPS_INT_PRODUCT_H

#include "ops/product.h"

enum { PITH_INT_BLOCK = 256 };

typedef struct pith_int_product {
    pith_product product; /* f32, nothing packed in it */
    const float *packed;  /* blocks of a constant right side [k, n] after each other; NULL if it is not constant */
} pith_int_product;

/* Inputs a, b, a's and b's zero points (-1: there is none) by number. b is packed if it and its zero point are
 * constants and it has rank 2. */
pith_status pith_int_product_prepare(pith_int_product *p, pith_prepare *c, int b, int b_zero);
/* Bytes of scratch for one product of these sizes; false on overflow. */
bool pith_int_product_scratch(const pith_int_product *p, int64_t m, int64_t n, int64_t k, size_t *bytes);
/* c[m, n] = (a - a_zero) (b - b_zero). a_zero: one number or one per row; b_zero: one or one per column; NULL: 0. a and
 * b are dense; a_first, b_first: element to begin at. */
void pith_int_product_run(pith_run *r, const pith_int_product *p, void *scratch, int32_t *c, const pith_tensor *a,
                          int64_t a_first, const pith_tensor *b, int64_t b_first, const pith_tensor *a_zero,
                          const pith_tensor *b_zero, int64_t m, int64_t n, int64_t k);

#endif
