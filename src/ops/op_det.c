/* op_det.c - Det: determinants of square matrices, by elimination with partial pivoting in double. */
#include <math.h>

#include "ops/wide.h"

static pith_status infer(pith_infer *c) {
    const pith_type *x = c->in[0];
    if (x->rank >= 0 && x->rank < 2) return pith_op_fail(c, "input has %d dimensions, at least 2 are needed", x->rank);
    if (x->rank >= 2 && pith_dim_known(x->dims[x->rank - 1]) && pith_dim_known(x->dims[x->rank - 2]) &&
        x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return pith_op_fail(c, "matrices of %lld by %lld are not square", (long long)x->dims[x->rank - 2],
                            (long long)x->dims[x->rank - 1]);
    pith_type_set(&c->out[0], x->dtype, x->rank < 0 ? -1 : x->rank - 2, x->dims);
    return PITH_OK;
}

static double determinant(double *a, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return 0;
        for (int64_t j = 0; pivot != k && j < n; j++) {
            double t = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = t;
        }
        det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static pith_status run(pith_run *r) {
    pith_wide w;
    pith_wide_open(&w, r);
    int64_t n = r->in[0]->dims[r->in[0]->rank - 1];
    for (int64_t i = 0; i < pith_tensor_count(r->out[0]); i++) w.out[0][i] = determinant(w.in[0] + i * n * n, n);
    pith_wide_close(&w, r);
    return PITH_OK;
}

const pith_op pith_op_Det = {
    .domain = "",
    .name = "Det",
    .since = 11,
    .newest = 22,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "",
    .infer = infer,
    .scratch = pith_wide_scratch,
    .run = run,
};
