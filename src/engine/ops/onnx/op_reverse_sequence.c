/* op_reverse_sequence.c - ReverseSequence: the first lengths[b] elements of each batch element
 * along the time axis, backwards; the others stay. Source: ONNX ReverseSequence (opset 28). */
#include <string.h>

#include "engine/ops/shared/infer_shapes.h"

static pith_status reverse_sequence_infer(pith__infer *c) {
    int64_t batch = pith__node_int(c->node, "batch_axis", 1),
            time = pith__node_int(c->node, "time_axis", 0);
    if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
        return pith__op_fail(c, "axes are not 0 and 1");
    if (c->in[0]->rank >= 0 && c->in[0]->rank < 2)
        return pith__op_fail(c, "input has rank %d", c->in[0]->rank);
    if (c->in[1]->dtype && c->in[1]->dtype != PITH_I64)
        return pith__op_fail(c, "sequence_lens is not int64");
    int64_t lengths = pith__type_count(c->in[1]);
    if (c->in[0]->rank > 1 && lengths >= 0 && pith__dim_known(c->in[0]->dims[batch]) &&
        lengths != c->in[0]->dims[batch]) {
        return pith__op_fail(c, "%lld lengths for %lld sequences", (long long)lengths,
                             (long long)c->in[0]->dims[batch]);
    }
    pith__infer_set(c, 0, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims);
    return PITH_OK;
}

/* Step t of row b goes to the mirrored step while that is within the length, else it stays. `at`
 * holds where it is written and where it is read. */
static pith_status reverse_sequence_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    int batch = pith__node_choice(r->node, "batch_axis", 1);
    int64_t n = x->dims[1 - batch], rows = x->dims[batch], at[2];
    size_t bytes = pith__element_size(x->dtype);
    for (int i = 2; i < x->rank; i++) bytes *= (size_t)x->dims[i];
    if (bytes) {
        int64_t spent = 0;
        for (int64_t b = 0; b < rows; b++) {
            int64_t length = ((const int64_t *)r->in[1]->data)[b];
            if (length < 0 || length > n) {
                return pith__fail(r->err, PITH_ERR_RUN, "length %lld is out of range for %lld",
                                  (long long)length, (long long)n);
            }
            for (int64_t t = 0; t < n; t++) {
                PITH_TRY(pith__run_spend(r, &spent, 16 + (int64_t)(bytes / 8)));
                for (int k = 0; k < 2; k++) {
                    int64_t step = k && t < length ? length - 1 - t : t;
                    at[k] = batch ? step * rows + b : b * n + step;
                }
                memcpy((char *)r->out[0]->data + (size_t)at[0] * bytes,
                       (const char *)x->data + (size_t)at[1] * bytes, bytes);
            }
        }
    }
    return PITH_OK;
}

const pith__op pith__op_ReverseSequence = { .domain = "",
                                            .name = "ReverseSequence",
                                            .since = 10,
                                            .newest = 28,
                                            .min_inputs = 2,
                                            .max_inputs = 2,
                                            .max_outputs = 1,
                                            .types = "ml",
                                            .attrs =
                                                "batch_axis int 0|1 = 1; time_axis int 0|1 = 0",
                                            .infer = reverse_sequence_infer,
                                            .prepare = pith__prepare_movable,
                                            .run = reverse_sequence_run };
