/* compose_fused_conv.c - see compose_fused_conv.h. */
#include "engine/ops/shared/compose_fused_conv.h"

#include <string.h>

#include "engine/ops/shared/compose_ops.h"

/* A parameter of the activation: the i-th of activation_params, or the attribute that FusedGemm has
 * for it. */
static bool compose_activation_parameter(const pith__node *node, size_t i, const char *name,
                                         float *value) {
    static const char *const own[][2] = { { "alpha", "activation_alpha" },
                                          { "beta", "activation_beta" },
                                          { "gamma", "activation_gamma" } };
    size_t count;
    const float *list = pith__node_floats(node, "activation_params", &count);
    if (i < count) *value = list[i];
    if (i < count) return true;
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        if (strcmp(name, own[k][0]) != 0 || !pith__node_attr(node, own[k][1])) continue;
        *value = pith__node_float(node, own[k][1], 0);
        return true;
    }
    return false;
}

/* Parameters come as the list activation_params, in the order of the names here. Clip is made at
 * opset 6, where its limits were attributes. */
pith_status pith__compose_activation(pith__node *node, pith__value **y, pith_error *err) {
    pith_str name = pith__node_str(node, "activation", "");
    static const struct {
        const char *name, *parameters[2];
    } known[] = {
        { "Clip", { "min", "max" } },
        { "Elu", { "alpha" } },
        { "HardSigmoid", { "alpha", "beta" } },
        { "HardSwish", { NULL } },
        { "LeakyRelu", { "alpha" } },
        { "Relu", { NULL } },
        { "Selu", { "alpha", "gamma" } },
        { "Sigmoid", { NULL } },
        { "Softplus", { NULL } },
        { "Softsign", { NULL } },
        { "Tanh", { NULL } },
        { "ThresholdedRelu", { "alpha" } },
    };
    if (!*y) return pith__fail_memory(err, 0);
    if (name.size == 0) return PITH_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!pith__str_is(name, known[i].name)) continue;
        *y = pith__compose1(node, known[i].name, *y);
        for (size_t k = 0; k < 2 && known[i].parameters[k]; k++) {
            float value;
            if (compose_activation_parameter(node, k, known[i].parameters[k], &value))
                *y = pith__with_float(*y, known[i].parameters[k], value);
        }
        if (!*y) return pith__fail_memory(err, 0);
        if (known[i].name[0] == 'C') (*y)->producer->opset = 6; /* limits are attributes */
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "activation '" PITH_STR_FMT "' is not supported",
                      PITH_STR_ARG(name));
}

/* Conv of these weights, + the added input 3, activation. */
pith_status pith__compose_become_conv(pith__node *node, pith__value *weights, pith_error *err) {
    static const char *const kept[] = { "auto_pad", "dilations", "group", "kernel_shape",
                                        "pads",     "strides",   NULL };
    pith__value *inputs[] = { pith__node_input(node, 0), weights, pith__node_input(node, 2) };
    pith__value *y = weights ? pith__compose(node, "", "Conv", inputs, 3, 1) : NULL;
    y = pith__with_attributes(y, node, kept);
    if (pith__node_input(node, 3)) y = pith__compose2(node, "Add", y, pith__node_input(node, 3));
    PITH_TRY(pith__compose_activation(node, &y, err));
    return pith__compose_become(node, y, err);
}
