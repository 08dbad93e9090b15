/* op_concat.c - Concat: tensors joined along an axis.
 *
 * Each input is one strided copy into the output. The contents of vectors are followed, since
 * exporters join shapes from single sizes. Source: ONNX Concat (opset 13). */
#include "engine/ops/shared/infer_shapes.h"

/* opset 1: the axis has a default */
static pith_status concat_upgrade(pith__node *node, pith_error *err) {
    if (pith__node_attr(node, "axis")) return PITH_OK;
    return pith__node_set_int(node, "axis", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* Sizes along the axis add up as symbols; all others must agree. Contents are joined for vectors,
 * whose unknown elements stay unknown one by one. */
static pith_status concat_infer(pith__infer *c) {
    PITH_TRY(pith__infer_equal_dtypes(c, 0, c->in_count - 1));
    pith__type out = *c->in[0];
    for (int i = 1; i < c->in_count; i++) {
        if (c->in[i]->rank < 0 || out.rank < 0)
            out.rank = -1;
        else if (c->in[i]->rank != out.rank) {
            return pith__op_fail(c, "input %d has rank %d, the first has %d", i, c->in[i]->rank,
                                 out.rank);
        }
    }
    if (out.rank < 0) {
        pith__infer_set(c, 0, out.dtype, -1, NULL);
        return PITH_OK;
    }
    int axis;
    PITH_TRY(pith__axis_normalize(pith__node_int(c->node, "axis", 0), out.rank, &axis, c->err));
    for (int i = 1; i < c->in_count; i++) {
        for (int k = 0; k < out.rank; k++) {
            pith__dim d = c->in[i]->dims[k];
            if (k == axis)
                out.dims[k] = pith__dim_apply(c->dims, PITH_DIM_ADD, out.dims[k], d);
            else if (pith__dim_known(d) && pith__dim_known(out.dims[k]) && d != out.dims[k]) {
                return pith__op_fail(c, "input %d has size %lld at axis %d, the first has %lld", i,
                                     (long long)d, k, (long long)out.dims[k]);
            } else if (pith__dim_known(d) || out.dims[k] == PITH_DIM_UNKNOWN)
                out.dims[k] = d;
        }
    }
    pith__infer_set(c, 0, out.dtype, out.rank, out.dims);
    int64_t count, at = 0;
    pith__dim *elems = out.rank == 1 ? pith__infer_new_elems(c, &count) : NULL;
    if (!elems) return PITH_OK;
    for (int i = 0; i < c->in_count; i++) {
        int64_t own = pith__type_count(c->in[i]);
        for (int64_t k = 0; k < own; k++, at++) {
            if (!pith__type_elem(c->in[i], k, &elems[at])) elems[at] = PITH_DIM_UNKNOWN;
        }
    }
    c->out[0].elems = elems;
    return PITH_OK;
}

/* A row is all that lies behind one place of the axes before. Each input is [rows, its row] inside
 * [rows, the output's row]. */
static pith_status concat_run(pith__run *r) {
    pith_tensor *y = r->out[0];
    const size_t size = pith__element_size(y->dtype);
    int axis;
    int64_t form[3], x_row, at = 0;
    PITH_TRY(pith__axis_normalize(pith__node_int(r->node, "axis", 0), y->rank, &axis, r->err));
    pith__axis_split(y->dims, y->rank, axis, form);
    const int64_t rows = form[0], y_row = form[1] * form[2], inner = form[2];
    for (int i = 0; i < r->in_count; i++, at += x_row) {
        x_row = r->in[i]->dims[axis] * inner;
        if (!x_row || !rows) continue;
        pith__run_move(r, (char *)y->data + (size_t)at * size, (int64_t[]){ y_row, 1 },
                       r->in[i]->data, (int64_t[]){ x_row, 1 }, (int64_t[]){ rows, x_row }, 2,
                       size);
    }
    return PITH_OK;
}

const pith__op pith__op_Concat = { .domain = "",
                                   .name = "Concat",
                                   .since = 4,
                                   .newest = 13,
                                   .min_inputs = 1,
                                   .max_inputs = -1,
                                   .max_outputs = 1,
                                   .types = "m",
                                   .attrs = "axis int @-3; axis int! @4",
                                   .upgrade = concat_upgrade,
                                   .infer = concat_infer,
                                   .prepare = pith__prepare_movable,
                                   .run = concat_run };
