/* op_ms_gelu.c - com.microsoft's BiasGelu and FastGelu: Gelu of a sum, exact or by tanh, written
 * out at load. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

static pith_status ms_gelu_upgrade(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 1u, 1, err));
    pith__value *x = pith__node_input(node, 0), *bias = pith__node_input(node, 1);
    bool tanh = pith__str_is(node->op_type, "FastGelu");
    if (bias) x = pith__compose2(node, "Add", x, bias);
    pith__value *y = pith__compose1(node, "Gelu", x);
    if (y &&
        pith__node_set_str(y->producer, "approximate", tanh ? PITH_STR("tanh") : PITH_STR("none")))
        y = NULL;
    return pith__compose_become(node, y, err);
}

#define GELU(symbol, name, min, max, outputs, how, attrs_)                                         \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, how, NULL, .attrs = attrs_)
GELU(BiasGelu_ms, "BiasGelu", 2, 2, 1, ms_gelu_upgrade, "")
GELU(FastGelu_ms, "FastGelu", 1, 2, 1, ms_gelu_upgrade, "")
