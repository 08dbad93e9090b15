/* op_mean_variance_normalization.c - MeanVarianceNormalization: elements less the mean of their
 * line, over its standard deviation. Lines run along the axes of an attribute, so elements of one
 * may lie anywhere: three passes in double over all elements, each of which looks up its line.
 * Source: ONNX MeanVarianceNormalization (opset 13). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/reduced_lines.h"

/* Three passes: sums and counts per line, squares of the differences, the result. Two passes over
 * the values give the variance without cancellation. 1e-9 is the reference's guard against a
 * deviation of 0. */
static pith_status mvn_run(pith__run *r) {
    static const int64_t default_axes[] = { 0, 2, 3 };
    size_t count;
    bool reduced[PITH_MAX_RANK];
    const int64_t *axes = pith__node_ints(r->node, "axes", &count);
    if (!axes) axes = default_axes, count = 3;
    PITH_TRY(pith__line_axes(r, axes, count, reduced));
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t n = pith__tensor_count(r->in[0]);
    double *sum = w.rest, *squares = sum + n, *members = squares + n;
    PITH_TRY(pith__run_bytes(r, sum, NULL, (size_t)(3 * n) * sizeof *sum));
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t line = pith__line_of(r->in[0], reduced, i);
        sum[line] += w.in[0][i];
        members[line] += 1;
    }
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t line = pith__line_of(r->in[0], reduced, i);
        double d = w.in[0][i] - sum[line] / members[line];
        squares[line] += d * d;
    }
    for (int64_t i = 0; i < n; i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t line = pith__line_of(r->in[0], reduced, i);
        w.out[0][i] =
            (w.in[0][i] - sum[line] / members[line]) / (sqrt(squares[line] / members[line]) + 1e-9);
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_MeanVarianceNormalization = {
    .domain = "",
    .name = "MeanVarianceNormalization",
    .since = 9,
    .newest = 13,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "axes ints = 0,2,3",
    .infer = pith__infer_same,
    .scratch = pith__line_scratch,
    .run = mvn_run,
};
