/* op_expand.c - Expand: a tensor broadcast to a shape. It is one strided copy in which the stride
 * of a repeated axis is 0. Source: ONNX Expand (opset 13). */
#include "engine/kernels/move.h"
#include "engine/ops/shared/infer_shapes.h"

/* The shape broadcasts both ways: a 1 in it keeps the size of the input. Exporters expand a scalar
 * computed from shapes, whose contents then stay known. */
static pith_status expand_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers shape;
    PITH_TRY(pith__infer_numbers(c, 1, &shape));
    if (shape.count > PITH_MAX_RANK)
        return pith__op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    pith__type wanted, out;
    pith__type_set(&wanted, PITH_I64, shape.count, shape.items);
    pith__type_init(&out);
    for (int i = 0; i < shape.count; i++) {
        if (pith__dim_known(shape.items[i]) && shape.items[i] < 0) {
            return pith__op_fail(c, "shape[%d] is %lld; it must not be negative", i,
                                 (long long)shape.items[i]);
        }
    }
    PITH_TRY(pith__infer_broadcast(c, x, &wanted, &out));
    pith__infer_set(c, 0, x->dtype, out.rank, out.dims);
    int64_t count;
    pith__dim *elems = x->data || x->elems ? pith__infer_new_elems(c, &count) : NULL, item;
    if (!elems || pith__type_count(x) != 1 || !pith__type_elem(x, 0, &item)) return PITH_OK;
    for (int64_t i = 0; i < count; i++) elems[i] = item;
    c->out[0].elems = elems;
    return PITH_OK;
}

static pith_status expand_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    pith_tensor *y = r->out[0];
    int64_t own[PITH_MAX_RANK], from[PITH_MAX_RANK] = { 0 }, to[PITH_MAX_RANK];
    int shift = y->rank - x->rank;
    pith__strides(own, x->dims, x->rank);
    pith__strides(to, y->dims, y->rank);
    for (int i = 0; i < x->rank; i++) from[i + shift] = x->dims[i] == 1 ? 0 : own[i];
    if (pith__tensor_count(y))
        pith__run_move(r, y->data, to, x->data, from, y->dims, y->rank,
                       pith__element_size(x->dtype));
    return PITH_OK;
}

const pith__op pith__op_Expand = { .domain = "",
                                   .name = "Expand",
                                   .since = 8,
                                   .newest = 13,
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .max_outputs = 1,
                                   .types = "ml",
                                   .attrs = "",
                                   .shape_inputs = 1u << 1,
                                   .infer = expand_infer,
                                   .prepare = pith__prepare_movable,
                                   .run = expand_run };
