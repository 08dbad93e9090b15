/* op_det.c - Det: determinants of square matrices, by elimination with partial pivoting in double.
 * Source: ONNX Det (opset 22). */
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/square_matrices.h"

static pith_status det_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    PITH_TRY(pith__square_check(c));
    pith__type_set(&c->out[0], x->dtype, x->rank < 0 ? -1 : x->rank - 2, x->dims);
    return PITH_OK;
}

/* The product of the pivots, negated for each swap. a is destroyed. A pivot of 0 means that the
 * matrix is singular. */
static pith_status det_determinant(const pith__run *r, double *det, double *a, int64_t n) {
    int64_t spent = 0;
    *det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = pith__square_pivot(a, k, n);
        if (a[pivot * n + k] == 0) {
            *det = 0;
            return PITH_OK;
        }
        pith__square_swap_rows(a, pivot, k, n);
        *det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, n - k));
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return PITH_OK;
}

static pith_status det_run(pith__run *r) {
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t n = r->in[0]->dims[r->in[0]->rank - 1];
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++)
        PITH_TRY(det_determinant(r, &w.out[0][i], w.in[0] + i * n * n, n));
    return pith__wide_close(&w, r);
}

const pith__op pith__op_Det = {
    .domain = "",
    .name = "Det",
    .since = 11,
    .newest = 22,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "",
    .infer = det_infer,
    .scratch = pith__wide_scratch,
    .run = det_run,
};
