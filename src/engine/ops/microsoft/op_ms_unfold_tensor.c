/* op_ms_unfold_tensor.c - com.microsoft's UnfoldTensor, written out at load: windows along an axis,
 * as a Gather of first places plus places inside. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* A scalar or a vector of one as a scalar. */
static pith__value *unfold_scalar(pith__node *at, pith__value *v) {
    return v ? pith__compose1(at, "Squeeze", v) : NULL;
}

/* Windows of `size` along an axis, the place inside a window last: Gather of first places + places
 * inside. */
static pith_status unfold_upgrade(pith__node *node, pith_error *err) {
    int64_t axis = pith__node_int(node, "dim", -1), size = pith__node_int(node, "size", 0);
    int64_t step = pith__node_int(node, "step", 1);
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *length = pith__compose_list(
        node, "Gather", pith__compose1(node, "Shape", pith__node_input(node, 0)), &axis, 1);
    length = pith__compose_list(node, "Sub", length, (int64_t[]){ size - 1 }, 1);
    pith__value *zero = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 0 }, 1);
    pith__value *one = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 1 }, 1);
    pith__value *steps = pith__graph_add_i64s(node->graph, PITH_STR(""), &step, 1);
    pith__value *sizes = pith__graph_add_i64s(node->graph, PITH_STR(""), &size, 1);
    if (!length || !zero || !one || !steps || !sizes) return pith__fail_memory(err, 0);
    pith__value *ends[] = { unfold_scalar(node, zero), unfold_scalar(node, one),
                            unfold_scalar(node, steps) };
    if (!ends[0]) return pith__fail_memory(err, 0);
    pith__value *first =
        pith__compose3(node, "Range", ends[0], unfold_scalar(node, length), ends[2]);
    pith__value *inside =
        pith__compose3(node, "Range", ends[0], unfold_scalar(node, sizes), ends[1]);
    first = first ? pith__compose_list(node, "Unsqueeze", first, (int64_t[]){ 1 }, 1) : NULL;
    pith__value *at = first ? pith__compose2(node, "Add", first, inside) : NULL;
    pith__value *y =
        pith__with_int(pith__compose2(node, "Gather", pith__node_input(node, 0), at), "axis", axis);
    return pith__compose_become(node, pith__compose_move(node, y, axis < 0 ? axis : axis + 1, -1),
                                err);
}

PITH_OP_COMPOSED(UnfoldTensor_ms, "com.microsoft", "UnfoldTensor", 1, 1, 1, unfold_upgrade, NULL,
                 .attrs = "dim int = -1; size int! 1..; step int 1.. = 1")
