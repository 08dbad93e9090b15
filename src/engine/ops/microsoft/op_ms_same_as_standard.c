/* op_ms_same_as_standard.c - com.microsoft's operators that mean the same as one of ai.onnx, under
 * another name or with an input in another form. At load each becomes that operator. Source: ONNX
 * Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* A scalar or a vector of one as a scalar. */
static pith__value *same_scalar(pith__node *at, pith__value *v) {
    return v ? pith__compose1(at, "Squeeze", v) : NULL;
}

static pith_status same_upgrade_expand_dims(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *axis = pith__compose_cast(node, pith__node_input(node, 1), PITH_I64);
    axis = pith__compose_list(node, "Reshape", axis, (int64_t[]){ 1 }, 1);
    return pith__compose_become(
        node, pith__compose2(node, "Unsqueeze", pith__node_input(node, 0), axis), err);
}

static pith_status same_upgrade_gather_nd(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *indices = pith__compose_cast(node, pith__node_input(node, 1), PITH_I64);
    return pith__compose_become(
        node, pith__compose2(node, "GatherND", pith__node_input(node, 0), indices), err);
}

/* Its modes are those of opset 16. */
static pith_status same_upgrade_grid_sample(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "align_corners", "mode", "padding_mode", NULL };
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *y =
        pith__compose2(node, "GridSample", pith__node_input(node, 0), pith__node_input(node, 1));
    y = pith__with_attributes(y, node, kept);
    if (y) y->producer->opset = 16;
    return pith__compose_become(node, y, err);
}

/* pads may be [1, 2 rank] and the value a tensor of one element; Pad takes a vector and a scalar.
 */
static pith_status same_upgrade_pad(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "mode", NULL };
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *pads =
        pith__compose_list(node, "Reshape", pith__node_input(node, 1), (int64_t[]){ -1 }, 1);
    pith__value *in[] = { pith__node_input(node, 0), pads,
                          same_scalar(node, pith__node_input(node, 2)) };
    if (!in[1] || (!in[2] && pith__node_input(node, 2))) return pith__fail_memory(err, 0);
    return pith__compose_become(
        node, pith__with_attributes(pith__compose(node, "", "Pad", in, 3, 1), node, kept), err);
}

/* The limits may be vectors of one element, the step may be absent: then it is 1 in their type. */
static pith_status same_upgrade_range(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *start = same_scalar(node, pith__node_input(node, 0)),
                *limit = same_scalar(node, pith__node_input(node, 1));
    pith__value *delta = same_scalar(node, pith__node_input(node, 2));
    if (!pith__node_input(node, 2))
        delta = pith__compose2(node, "CastLike", pith__graph_add_f32(node->graph, PITH_STR(""), 1),
                               start);
    return pith__compose_become(
        node, start ? pith__compose3(node, "Range", start, limit, delta) : NULL, err);
}

static pith_status same_upgrade_sample(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    return pith__compose_become(node, pith__compose1(node, "Identity", pith__node_input(node, 0)),
                                err);
}

static pith_status same_upgrade_trilu(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "upper", NULL };
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *in[] = { pith__node_input(node, 0), pith__node_input(node, 1) };
    return pith__compose_become(
        node, pith__with_attributes(pith__compose(node, "", "Trilu", in, 2, 1), node, kept), err);
}

/* Values in the order in which they are met, where each input element is among them, and how often
 * each was met. */
static pith_status same_upgrade_unique(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 3, err));
    pith__value *y = pith__compose(node, "", "Unique", node->inputs, 1, 4);
    if (!pith__with_int(y, "sorted", 0)) return pith__fail_memory(err, 0);
    for (int i = 1; i < 3; i++) {
        if (pith__compose_wanted(node, i))
            PITH_TRY(pith__compose_give(node, i, pith__node_output(y->producer, i + 1), err));
    }
    return pith__compose_become(node, y, err);
}

static pith_status same_upgrade_int16_product(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *b = pith__compose_cast(node, pith__node_input(node, 1), PITH_I32);
    return pith__compose_become(
        node,
        pith__compose2(node, "MatMul",
                       pith__compose_cast(node, pith__node_input(node, 0), PITH_I32), b),
        err);
}

#define PLAIN(symbol, name, min, max, outputs, upgrade, attrs_)                                    \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, upgrade, NULL,              \
                     .attrs = attrs_)
PLAIN(ExpandDims_ms, "ExpandDims", 2, 2, 1, same_upgrade_expand_dims, "")
PLAIN(GatherND_ms, "GatherND", 2, 2, 1, same_upgrade_gather_nd, "")
PLAIN(GridSample_ms, "GridSample", 2, 2, 1, same_upgrade_grid_sample,
      "align_corners bool = 0; mode string bilinear|nearest|bicubic = bilinear; "
      "padding_mode string zeros|border|reflection = zeros")
PLAIN(MatMulInteger16_ms, "MatMulInteger16", 2, 2, 1, same_upgrade_int16_product, "")
PLAIN(Pad_ms, "Pad", 2, 3, 1, same_upgrade_pad, "mode string constant|reflect|edge = constant")
PLAIN(Range_ms, "Range", 2, 3, 1, same_upgrade_range, "")
PLAIN(SampleOp_ms, "SampleOp", 1, 1, 1, same_upgrade_sample, "")
PLAIN(Trilu_ms, "Trilu", 1, 2, 1, same_upgrade_trilu, "upper bool = 1")
PLAIN(Unique_ms, "Unique", 1, 1, 3, same_upgrade_unique, "")
