/* op_det.c - Det, determinants of square matrices, and com.microsoft's Inverse, by elimination with
 * partial pivoting in double. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

static pith_status det_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank < 2)
        return pith__op_fail(c, "input has %d dimensions, at least 2 are needed", x->rank);
    if (x->rank >= 2 && pith__dim_known(x->dims[x->rank - 1]) &&
        pith__dim_known(x->dims[x->rank - 2]) && x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return pith__op_fail(c, "matrices of %lld by %lld are not square",
                             (long long)x->dims[x->rank - 2], (long long)x->dims[x->rank - 1]);
    bool inverse = pith__str_is(c->node->op_type, "Inverse");
    pith__type_set(&c->out[0], x->dtype, x->rank < 0 || inverse ? x->rank : x->rank - 2, x->dims);
    return PITH_OK;
}

static void swap_rows(double *a, int64_t i, int64_t k, int64_t n) {
    for (int64_t j = 0; i != k && j < n; j++) {
        double t = a[k * n + j];
        a[k * n + j] = a[i * n + j];
        a[i * n + j] = t;
    }
}

/* The row from k on whose element k is the largest. */
static int64_t find_pivot(const double *a, int64_t k, int64_t n) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; i++)
        if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
    return pivot;
}

static double determinant(double *a, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = find_pivot(a, k, n);
        if (a[pivot * n + k] == 0) return 0;
        swap_rows(a, pivot, k, n);
        det *= pivot == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

static pith_status det_run(pith__run *r) {
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t n = r->in[0]->dims[r->in[0]->rank - 1];
    for (int64_t i = 0; i < pith__tensor_count(r->out[0]); i++)
        w.out[0][i] = determinant(w.in[0] + i * n * n, n);
    pith__wide_close(&w, r);
    return PITH_OK;
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

/* a becomes the identity, and y, which is it at first, the inverse; false if a has none. */
static bool invert(double *a, double *y, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) y[i] = i / n == i % n;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = find_pivot(a, k, n);
        double scale = a[pivot * n + k];
        if (scale == 0) return false;
        swap_rows(a, pivot, k, n);
        swap_rows(y, pivot, k, n);
        for (int64_t j = 0; j < n; j++) a[k * n + j] /= scale, y[k * n + j] /= scale;
        for (int64_t i = 0; i < n; i++) {
            double factor = a[i * n + k];
            for (int64_t j = 0; i != k && j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
                y[i * n + j] -= factor * y[k * n + j];
            }
        }
    }
    return true;
}

static pith_status run_inverse(pith__run *r) {
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t n = r->in[0]->dims[r->in[0]->rank - 1], count = pith__tensor_count(r->in[0]);
    for (int64_t at = 0; n && at < count; at += n * n) {
        if (!invert(w.in[0] + at, w.out[0] + at, n))
            return pith__fail(r->err, PITH_ERR_RUN, "matrix %lld has no inverse",
                              (long long)(at / (n * n)));
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
    .infer = det_infer,
    .scratch = pith__wide_scratch,
    .run = run_inverse,
};
