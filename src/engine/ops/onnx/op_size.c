/* op_size.c - Size: the number of elements of a tensor, followed as a symbol. Source: ONNX Size
 * (opset 25). */
#include "engine/ops/shared/infer_shapes.h"

static pith_status size_op_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__infer_set(c, 0, PITH_I64, 0, NULL);
    int64_t n;
    pith__dim *elems = x->rank >= 0 ? pith__infer_new_elems(c, &n) : NULL;
    if (!elems) return PITH_OK;
    elems[0] = pith__dim_product(c->dims, x->dims, x->rank);
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status size_op_run(pith__run *r) {
    *(int64_t *)r->out[0]->data = pith__tensor_count(r->in[0]);
    return PITH_OK;
}

const pith__op pith__op_Size = { .domain = "",
                                 .name = "Size",
                                 .since = 1,
                                 .newest = 25,
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .max_outputs = 1,
                                 .types = "a",
                                 .attrs = "",
                                 .flags = PITH_OP_SHAPE_ONLY,
                                 .infer = size_op_infer,
                                 .run = size_op_run };
