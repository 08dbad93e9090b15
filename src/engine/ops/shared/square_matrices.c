/* square_matrices.c - see square_matrices.h. */
#include "engine/ops/shared/square_matrices.h"

#include <math.h>

pith_status pith__square_check(const pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank < 0) return PITH_OK;
    if (x->rank < 2)
        return pith__op_fail(c, "input has %d dimensions, at least 2 are needed", x->rank);
    pith__dim rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    if (pith__dim_known(rows) && pith__dim_known(columns) && rows != columns)
        return pith__op_fail(c, "matrices of %lld by %lld are not square", (long long)rows,
                             (long long)columns);
    return PITH_OK;
}

void pith__square_swap_rows(double *a, int64_t i, int64_t k, int64_t n) {
    if (i != k) {
        for (int64_t j = 0; j < n; j++) {
            double t = a[k * n + j];
            a[k * n + j] = a[i * n + j];
            a[i * n + j] = t;
        }
    }
}

/* The row from k on whose element k is the largest. */
int64_t pith__square_pivot(const double *a, int64_t k, int64_t n) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; i++)
        if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
    return pivot;
}
