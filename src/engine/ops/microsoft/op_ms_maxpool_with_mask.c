/* op_ms_maxpool_with_mask.c - com.microsoft's MaxpoolWithMask: MaxPool whose windows end, row by
 * row, where the mask is 0. Source: ONNX Runtime's ContribOperators.md. */
#include <float.h>

#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/window_attrs.h"

/* As MaxPool. */
static pith_status masked_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__window w;
    pith__dim dims[PITH_MAX_RANK];
    if (x->rank >= 0 && (x->rank < 3 || x->rank > 5))
        return pith__op_fail(c, "X has %d dimensions, not 3 to 5", x->rank);
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    if (x->rank >= 0) {
        PITH_TRY(pith__windows_attributes(&w, c->node, x->rank - 2, NULL, c->err));
        PITH_TRY(pith__windows_output(dims + 2, c->dims, &w, c->node, x->dims + 2, 0, c->err));
    }
    pith__infer_set(c, 0, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* The largest element of the window of three axes whose first place is `start`. The plane's first
 * element counts whatever its mask, if it has more axes than one. */
static float masked_max(const pith__window *w, const int64_t *start, const float *x,
                        const int32_t *mask) {
    float most = -FLT_MAX;
    int64_t end[3];
    for (int i = 0; i < 3; i++) {
        end[i] = start[i] + w->kernel[i];
        if (end[i] > w->in[i]) end[i] = w->in[i];
    }
    for (int64_t a = start[0] > 0 ? start[0] : 0; a < end[0]; a++) {
        for (int64_t b = start[1] > 0 ? start[1] : 0; b < end[1]; b++) {
            for (int64_t c = start[2] > 0 ? start[2] : 0; c < end[2]; c++) {
                int64_t at = (a * w->in[1] + b) * w->in[2] + c;
                if ((at > 0 || w->rank == 1) && !mask[at]) break;
                if (x[at] > most) most = x[at];
            }
        }
    }
    return most;
}

/* Windows of 1 to 3 axes are all taken as 3. The mask may be of one image or of several, over which
 * the planes then go round. */
static pith_status masked_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *mask = r->in[1];
    pith__window own, w;
    PITH_TRY(pith__windows_attributes(&own, r->node, x->rank - 2, NULL, r->err));
    pith__windows_complete(&own, r->node, x->dims + 2, r->out[0]->dims + 2);
    w.rank = own.rank;
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - own.rank); /* axes that are not there are of 1 */
        w.in[i] = from < 0 ? 1 : own.in[from], w.out[i] = from < 0 ? 1 : own.out[from];
        w.kernel[i] = from < 0 ? 1 : own.kernel[from],
        w.stride[i] = from < 0 ? 1 : own.stride[from];
        w.begin[i] = from < 0 ? 0 : own.begin[from];
    }
    int64_t plane = pith__window_count(w.in, 3), pixels = pith__window_count(w.out, 3),
            planes = x->dims[0] * x->dims[1];
    int64_t masked = plane ? pith__tensor_count(mask) / plane : 0;
    if (pith__tensor_count(r->out[0]) == 0) return PITH_OK;
    if (masked < 1 || pith__tensor_count(mask) % plane)
        return pith__op_fail(r, "the mask does not fit X");
    float *y = r->out[0]->data;
    int64_t spent = 0;
    for (int64_t i = 0; i < planes * pixels; i++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 + 4 * pith__window_count(w.kernel, 3)));
        int64_t at = i % pixels, c = i / pixels;
        int64_t out[3] = { at / (w.out[1] * w.out[2]), at / w.out[2] % w.out[1], at % w.out[2] },
                start[3];
        for (int k = 0; k < 3; k++) start[k] = out[k] * w.stride[k] - w.begin[k];
        y[i] = masked_max(&w, start, (const float *)x->data + c * plane,
                          (const int32_t *)mask->data + c % masked * plane);
    }
    return PITH_OK;
}

const pith__op pith__op_MaxpoolWithMask_ms = {
    .domain = "com.microsoft",
    .name = "MaxpoolWithMask",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "ew",
    .attrs = "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; kernel_shape ints 1..; "
             "pads ints; "
             "storage_order bool = 0; strides ints 1..",
    .infer = masked_infer,
    .run = masked_run
};
