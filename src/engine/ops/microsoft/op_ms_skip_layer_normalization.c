/* op_ms_skip_layer_normalization.c - com.microsoft's SkipLayerNormalization and
 * SkipSimplifiedLayerNormalization: a normalised sum, written out at load as Add and
 * LayerNormalization or RMSNormalization. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

/* The bias is added to x before the other side is, as in ONNX Runtime. Mean and deviation are
 * outputs of the norm, the sum is one of its own. */
static pith_status ms_skip_norm_upgrade(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 4, err));
    bool rms = pith__str_is(node->op_type, "SkipSimplifiedLayerNormalization");
    pith__value *bias = pith__node_input(node, rms ? 3 : 4), *x = pith__node_input(node, 0);
    if (bias) x = pith__compose2(node, "Add", x, bias);
    pith__value *sum = pith__compose2(node, "Add", x, pith__node_input(node, 1));
    pith__value *inputs[] = { sum, pith__node_input(node, 2),
                              rms ? NULL : pith__node_input(node, 3) };
    if (rms && (pith__compose_wanted(node, 1) || pith__compose_wanted(node, 2)))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "its statistics are read");
    int outputs = pith__compose_wanted(node, 1) ? 2 : 1;
    if (pith__compose_wanted(node, 2)) outputs = 3;
    pith__value *y = pith__compose(node, "", rms ? "RMSNormalization" : "LayerNormalization",
                                   inputs, 3, outputs);
    y = pith__with_float(y, "epsilon", pith__node_float(node, "epsilon", 1e-12f));
    if (y) {
        for (int i = 1; i < 3; i++) {
            if (pith__compose_wanted(node, i))
                PITH_TRY(pith__compose_give(node, i, pith__node_output(y->producer, i), err));
        }
    }
    if (pith__compose_wanted(node, 3)) PITH_TRY(pith__compose_give(node, 3, sum, err));
    return pith__compose_become(node, y, err);
}

#define SKIP_NORM(symbol, name, min, max, outputs, how, attrs_)                                    \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, how, NULL, .attrs = attrs_)
SKIP_NORM(SkipLayerNormalization_ms, "SkipLayerNormalization", 3, 5, 4, ms_skip_norm_upgrade,
          "epsilon float = 1e-12")
SKIP_NORM(SkipSimplifiedLayerNormalization_ms, "SkipSimplifiedLayerNormalization", 3, 4, 4,
          ms_skip_norm_upgrade, "epsilon float = 1e-12")
