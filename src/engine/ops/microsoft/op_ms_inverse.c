/* op_ms_inverse.c - com.microsoft's Inverse: inverses of square matrices, by Gauss-Jordan
 * elimination with partial pivoting in double. A matrix without an inverse is an error. Source:
 * ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/square_matrices.h"

static pith_status ms_inverse_infer(pith__infer *c) {
    PITH_TRY(pith__square_check(c));
    pith__type_set(&c->out[0], c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* a becomes the identity, and y, which is it at first, the inverse; *exists is false if a has none.
 */
static pith_status ms_inverse_invert(const pith__run *r, bool *exists, double *a, double *y,
                                     int64_t n) {
    int64_t spent = 0;
    *exists = false;
    for (int64_t i = 0; i < n * n; i++) y[i] = i / n == i % n;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = pith__square_pivot(a, k, n);
        double scale = a[pivot * n + k];
        if (scale == 0) return PITH_OK;
        pith__square_swap_rows(a, pivot, k, n);
        pith__square_swap_rows(y, pivot, k, n);
        for (int64_t j = 0; j < n; j++) a[k * n + j] /= scale, y[k * n + j] /= scale;
        for (int64_t i = 0; i < n; i++) {
            PITH_TRY(pith__run_spend(r, &spent, 2 * n));
            double factor = a[i * n + k];
            if (i != k) {
                for (int64_t j = 0; j < n; j++) {
                    a[i * n + j] -= factor * a[k * n + j];
                    y[i * n + j] -= factor * y[k * n + j];
                }
            }
        }
    }
    *exists = true;
    return PITH_OK;
}

/* Matrices lie one after another; the copies in double are destroyed. */
static pith_status ms_inverse_run(pith__run *r) {
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t n = r->in[0]->dims[r->in[0]->rank - 1], count = pith__tensor_count(r->in[0]);
    if (n) {
        for (int64_t at = 0; at < count; at += n * n) {
            bool exists;
            PITH_TRY(ms_inverse_invert(r, &exists, w.in[0] + at, w.out[0] + at, n));
            if (!exists)
                return pith__fail(r->err, PITH_ERR_RUN, "matrix %lld has no inverse",
                                  (long long)(at / (n * n)));
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_Inverse_ms = {
    .domain = "com.microsoft",
    .name = "Inverse",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "",
    .infer = ms_inverse_infer,
    .scratch = pith__wide_scratch,
    .run = ms_inverse_run,
};
