/* op_one_hot.c - OneHot: a new axis of `depth` elements, one of which is the on value. The output
 * is filled with the off value first. An index outside of the depth sets nothing. Source: ONNX
 * OneHot (opset 28). */
#include <string.h>

#include "engine/kernels/convert.h"
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

/* depth may be of any number type and must be known for the shape; if it is not, the axis stays
 * unknown until the step is bound. */
static pith_status one_hot_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    double depth;
    pith__dim n = PITH_DIM_UNKNOWN, dims[PITH_MAX_RANK];
    if (pith__infer_scalar(c, 1, &depth)) {
        if (!(depth >= 0 && depth < 4503599627370496.0))
            return pith__op_fail(c, "depth is %g", depth);
        n = (pith__dim)depth;
    }
    int rank = x->rank >= 0 ? x->rank + 1 : -1, axis = 0;
    if (rank > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", rank, PITH_MAX_RANK);
    if (rank > 0)
        PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", -1), rank, &axis, c->err));
    for (int i = 0; i < axis; i++) dims[i] = x->dims[i];
    if (rank > 0) dims[axis] = n;
    for (int i = axis + 1; i < rank; i++) dims[i] = x->dims[i - 1];
    if (pith__type_count(c->in[2]) >= 0 && pith__type_count(c->in[2]) != 2)
        return pith__op_fail(c, "values are not two");
    pith__infer_set(c, 0, c->in[2]->dtype, rank, dims);
    return PITH_OK;
}

static pith_status one_hot_prepare(pith__prepare *c) {
    int dtype = c->in[0]->dtype;
    if (!pith__convert_known(dtype, PITH_F64)) return pith__fail_dtype(c->err, dtype);
    return pith__element_size(c->in[2]->dtype) ? PITH_OK
                                               : pith__fail_dtype(c->err, c->in[2]->dtype);
}

/* Negative indices count from the end of the depth, once. */
static pith_status one_hot_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", -1), y->rank, &axis, r->err));
    int64_t outer = 1, n = y->dims[axis], inner = 1;
    size_t size = pith__element_size(y->dtype);
    for (int i = 0; i < axis; i++) outer *= y->dims[i];
    for (int i = axis + 1; i < y->rank; i++) inner *= y->dims[i];
    PITH_TRY(pith__run_fill(r, y->data, r->in[2]->data, outer * n * inner, size));
    const char *on = (const char *)r->in[2]->data + size;
    if (n) {
        for (int64_t i = 0; i < outer * inner; i++) {
            int64_t at;
            PITH_TRY(pith__run_step(r, i));
            pith__convert(&at, PITH_I64, 0, x->data, x->dtype, i, 1, true);
            if (at < 0) at += n;
            if (at >= 0 && at < n)
                memcpy((char *)y->data + (size_t)((i / inner * n + at) * inner + i % inner) * size,
                       on, size);
        }
    }
    return PITH_OK;
}

const pith__op pith__op_OneHot = { .domain = "",
                                   .name = "OneHot",
                                   .since = 9,
                                   .newest = 28,
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .max_outputs = 1,
                                   .types = "nnm",
                                   .attrs = "axis int = -1",
                                   .shape_inputs = 1u << 1,
                                   .infer = one_hot_infer,
                                   .prepare = one_hot_prepare,
                                   .run = one_hot_run };
