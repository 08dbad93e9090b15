/* op_max_unpool.c - MaxUnpool: each number back to the place from which MaxPool took it, zeros
 * elsewhere. The indices count in the shape that kernel, strides and pads give; output_shape may be
 * larger and then frames it. Source: ONNX MaxUnpool (opset 22). */
#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/window_attrs.h"

static pith__dim max_unpool_unpooled(const pith__infer *c, int axes, int d) {
    pith__dim n = pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[0]->dims[2 + d], 1);
    n = pith__dim_apply(c->dims, PITH_DIM_MUL, n, pith__window_entry(c->node, "strides", d, 1));
    int64_t pads = pith__window_entry(c->node, "pads", d, 0) +
                   pith__window_entry(c->node, "pads", axes + d, 0);
    return pith__dim_apply(c->dims, PITH_DIM_ADD, n,
                           pith__window_entry(c->node, "kernel_shape", d, 1) - pads);
}

/* Without output_shape the sizes are those that MaxPool would have read, (n - 1) * stride + kernel
 * - pads. */
static pith_status max_unpool_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->rank >= 0 && x->rank < 3)
        return pith__op_fail(c, "input has %d dimensions, at least 3 are needed", x->rank);
    PITH_TRY(pith__windows_check(c->node, x->rank - 2, c->err));
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    for (int d = 0; d < x->rank - 2; d++)
        c->out[0].dims[2 + d] = max_unpool_unpooled(c, x->rank - 2, d);
    if (c->in_count > 2 && c->in[2]) {
        for (int d = 0; d < x->rank; d++)
            if (!pith__type_elem(c->in[2], d, &c->out[0].dims[d]))
                c->out[0].dims[d] = PITH_DIM_UNKNOWN;
    }
    return PITH_OK;
}

/* An index is split into places in the inferred shape and put together again in the output's; what
 * lies outside of a smaller output is dropped. */
static pith_status max_unpool_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *y = r->out[0];
    if (pith__tensor_count(r->in[1]) != pith__tensor_count(x))
        return pith__op_fail(r, "indices do not fit the input");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    /* Indices count in the inferred shape, which a larger output_shape frames. */
    int axes = x->rank - 2;
    int64_t from[PITH_MAX_RANK], total = x->dims[0] * x->dims[1];
    for (int d = 0; d < axes; d++) {
        int64_t rest = pith__window_entry(r->node, "kernel_shape", d, 1) -
                       pith__window_entry(r->node, "pads", d, 0) -
                       pith__window_entry(r->node, "pads", axes + d, 0);
        if (pith__mul_overflows(x->dims[2 + d] - 1, pith__window_entry(r->node, "strides", d, 1),
                                &from[d]) ||
            pith__add_overflows(from[d], rest, &from[d]) || from[d] < 0 ||
            pith__mul_overflows(total, from[d], &total))
            return pith__op_fail(r, "kernel and pads do not fit");
    }
    for (int64_t i = 0; i < pith__tensor_count(x); i++) {
        PITH_TRY(pith__run_step(r, i));
        int64_t at = ((const int64_t *)r->in[1]->data)[i], index = 0, stride = 1;
        if (at < 0 || at >= total)
            return pith__fail(r->err, PITH_ERR_RUN, "index %lld is outside of the output",
                              (long long)at);
        bool inside = true;
        for (int d = axes - 1; d >= 0; d--) {
            inside &= at % from[d] < y->dims[2 + d];
            index += at % from[d] * stride;
            stride *= y->dims[2 + d];
            at /= from[d];
        }
        inside &= at < y->dims[0] * y->dims[1];
        if (inside) w.out[0][at * stride + index] = w.in[0][i];
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_MaxUnpool = {
    .domain = "",
    .name = "MaxUnpool",
    .since = 9,
    .newest = 22,
    .min_inputs = 2,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "fl",
    .attrs = "kernel_shape ints! 1..; pads ints; strides ints 1..",
    .shape_inputs = 1u << 2,
    .infer = max_unpool_infer,
    .scratch = pith__wide_scratch,
    .run = max_unpool_run,
};
