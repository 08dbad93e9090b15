/* op_ms_conv_transpose_with_dynamic_pads.c - com.microsoft's ConvTransposeWithDynamicPads, written
 * out at load: the whole result of ConvTranspose, cut at both ends by pads that are an input.
 * Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* pads is a list of begins, then ends. The cut is a Slice from [0, 0, begins] to the shape minus
 * [0, 0, ends], because the pads are known in the run only. */
static pith_status dynamic_pads_upgrade(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "auto_pad",       "dilations", "group", "kernel_shape",
                                        "output_padding", "strides",   NULL };
    PITH_TRY(pith__compose_require(node, 3u, 1, err));
    pith__value *in[] = { pith__node_input(node, 0), pith__node_input(node, 1),
                          pith__node_input(node, 3) },
                *pads = pith__node_input(node, 2);
    pith__value *y =
        pith__with_attributes(pith__compose(node, "", "ConvTranspose", in, 3, 1), node, kept);
    if (!pads || !y) return pith__compose_become(node, y, err);
    pith__value *none = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 0, 0 }, 2),
                *cut[2];
    pads = pith__compose_list(node, "Reshape", pads, (int64_t[]){ 2, -1 }, 2);
    for (int64_t i = 0; i < 2; i++) {
        cut[i] = pith__compose_list(
            node, "Reshape", pith__compose_list(node, "Gather", pads, &i, 1), (int64_t[]){ -1 }, 1);
        cut[i] = none ? pith__compose_join(node, none, cut[i]) : NULL;
    }
    cut[1] = pith__compose2(node, "Sub", pith__compose1(node, "Shape", y), cut[1]);
    return pith__compose_become(
        node, cut[0] ? pith__compose3(node, "Slice", y, cut[0], cut[1]) : NULL, err);
}

PITH_OP_COMPOSED(
    ConvTransposeWithDynamicPads_ms, "com.microsoft", "ConvTransposeWithDynamicPads", 2, 4, 1,
    dynamic_pads_upgrade, NULL,
    .attrs =
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; output_padding ints 0..; "
        "strides ints 1..")
