/* square_matrices.h - elimination with partial pivoting in double, for determinants and inverses.
 */
#ifndef PITH_ENGINE_OPS_SHARED_SQUARE_MATRICES_H
#define PITH_ENGINE_OPS_SHARED_SQUARE_MATRICES_H

#include "engine/ops/op.h"

/* Fails unless input 0 is a batch of square matrices, as far as its shape is known. */
pith_status pith__square_check(const pith__infer *c);
/* The row of a [n, n], from row k on, whose element in column k is the largest. */
int64_t pith__square_pivot(const double *a, int64_t k, int64_t n);
void pith__square_swap_rows(double *a, int64_t i, int64_t k, int64_t n);

#endif
