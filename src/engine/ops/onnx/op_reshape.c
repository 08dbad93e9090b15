/* op_reshape.c - Reshape: the same elements in another shape. A view: nothing is copied.
 *
 * In the target, 0 copies a size of the input and one -1 stands for what is left. Both may be
 * symbols, so a target computed from a shape stays known. Source: ONNX Reshape (opset 25). */
#include "engine/ops/shared/infer_shapes.h"

static pith_status reshape_upgrade(pith__node *node, pith_error *err) {
    return pith__upgrade_ints(node, "shape", 1) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* 0 copies a size unless allowzero is set. -1 is the number of elements divided by the product of
 * the others, as symbols if need be. With concrete sizes the products must agree; with symbols that
 * is checked when the graph is bound. */
static pith_status reshape_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    pith__numbers shape;
    PITH_TRY(pith__infer_numbers(c, 1, &shape));
    if (shape.count > PITH_MAX_RANK) {
        return pith__op_fail(c, "rank %d is more than %d", shape.count, PITH_MAX_RANK);
    }
    bool allow_zero = pith__node_int(c->node, "allowzero", 0) != 0;
    int rest = -1;
    pith__dim product = 1;
    bool concrete = x->rank >= 0;
    for (int i = 0; i < shape.count; i++) {
        pith__dim d = shape.items[i];
        if (d == 0 && !allow_zero) {
            if (x->rank >= 0 && i >= x->rank)
                return pith__op_fail(c, "shape[%d] is 0, but the input has rank %d", i, x->rank);
            d = x->rank >= 0 ? x->dims[i] : PITH_DIM_UNKNOWN;
        }
        if (d == -1) {
            if (rest >= 0) return pith__op_fail(c, "shape has -1 twice, at %d and %d", rest, i);
            rest = i;
            continue;
        }
        if (pith__dim_known(d) && d < 0)
            return pith__op_fail(c, "shape[%d] is %lld; it must be at least -1", i, (long long)d);
        shape.items[i] = d;
        concrete &= pith__dim_known(d);
        product = pith__dim_apply(c->dims, PITH_DIM_MUL, product, d);
    }
    pith__dim total =
        x->rank >= 0 ? pith__dim_product(c->dims, x->dims, x->rank) : PITH_DIM_UNKNOWN;
    if (rest >= 0) {
        bool empty = pith__dim_known(product) && product == 0;
        shape.items[rest] =
            empty ? 0 : pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, total, product);
        product = pith__dim_apply(c->dims, PITH_DIM_MUL, product, shape.items[rest]);
    }
    if (concrete && pith__dim_known(total) && pith__dim_known(product) && total != product) {
        char from[128], to[128];
        return pith__op_fail(c, "shape %s cannot be reshaped to %s",
                             pith__dims_text(x->dims, x->rank, from, sizeof from),
                             pith__dims_text(shape.items, shape.count, to, sizeof to));
    }
    pith__infer_set(c, 0, x->dtype, shape.count, shape.items);
    pith__infer_keep_elems(c);
    return PITH_OK;
}

const pith__op pith__op_Reshape = {
    .domain = "",
    .name = "Reshape",
    .since = 5,
    .newest = 25,
    .min_inputs = 2,
    .max_inputs = 2,
    .max_outputs = 1,
    .types = "al",
    .attrs = "allowzero bool = 0 @14; consumed_inputs ints @-4; shape ints @-4",
    .flags = PITH_OP_VIEW,
    .upgrade = reshape_upgrade,
    .shape_inputs = 1u << 1,
    .infer = reshape_infer
};
