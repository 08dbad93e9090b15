/* op_ms_fused.c - com.microsoft's FusedConv and FusedGemm: a convolution or matmul followed by an
 * activation, written out at load, so that the passes meet the form that exporters write. Source:
 * ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_fused_conv.h"
#include "engine/ops/shared/compose_ops.h"

static pith_status ms_fused_upgrade_conv(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 0x3, 1, err));
    return pith__compose_become_conv(node, pith__node_input(node, 1), err);
}

static pith_status ms_fused_upgrade_gemm(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "alpha", "beta", "transA", "transB", NULL };
    PITH_TRY(pith__compose_require(node, 0x3, 1, err));
    pith__value *inputs[] = { pith__node_input(node, 0), pith__node_input(node, 1),
                              pith__node_input(node, 2) };
    pith__value *y =
        pith__with_attributes(pith__compose(node, "", "Gemm", inputs, 3, 1), node, kept);
    PITH_TRY(pith__compose_activation(node, &y, err));
    return pith__compose_become(node, y, err);
}
#define CONV_ATTRS                                                                                 \
    "activation string; activation_params floats; auto_pad string "                                \
    "NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "                                               \
    "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; strides ints 1.."
PITH_OP_COMPOSED(FusedConv_ms, "com.microsoft", "FusedConv", 2, 4, 1, ms_fused_upgrade_conv, NULL,
                 .attrs = CONV_ATTRS)
PITH_OP_COMPOSED(FusedGemm_ms, "com.microsoft", "FusedGemm", 2, 3, 1, ms_fused_upgrade_gemm, NULL,
                 .attrs =
                     "activation string; activation_alpha float; activation_beta float; "
                     "activation_gamma float; alpha float = 1; beta float = 1; transA bool = 0; "
                     "transB bool = 0")
