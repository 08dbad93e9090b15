/* op_flatten.c - Flatten: a matrix of the axes before one and those from it on. A view. Source:
 * ONNX Flatten (opset 25). */
#include "engine/ops/shared/infer_shapes.h"

static pith_status flatten_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__dim dims[2] = { PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN };
    if (x->rank >= 0) {
        int64_t axis = pith__node_int(c->node, "axis", 1);
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis > x->rank)
            return pith__op_fail(c, "axis %lld is out of range for rank %d", (long long)axis,
                                 x->rank);
        dims[0] = pith__dim_product(c->dims, x->dims, (int)axis);
        dims[1] = pith__dim_product(c->dims, x->dims + axis, x->rank - (int)axis);
    }
    pith__infer_set(c, 0, x->dtype, 2, dims);
    pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Flatten = { .domain = "",
                                    .name = "Flatten",
                                    .since = 1,
                                    .newest = 25,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .max_outputs = 1,
                                    .types = "a",
                                    .attrs = "axis int = 1",
                                    .flags = PITH_OP_VIEW,
                                    .infer = flatten_infer };
