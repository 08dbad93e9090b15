/* op_ms_transformer.c - com.microsoft's fused GELU, normalisation and embedding, written out at
 * load as plain operators. Source: ONNX Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

static pith__value *ms_transformer_gather(pith__node *at, pith__value *table, pith__value *ids) {
    return pith__compose2(at, "Gather", table, ids);
}

/* ---- GELU ---- */

static pith_status upgrade_gelu(pith__node *node, pith_error *err) {
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

/* ---- normalisation ---- */

static pith_status upgrade_skip_norm(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 7u, 4, err));
    bool rms = pith__str_is(node->op_type, "SkipSimplifiedLayerNormalization");
    pith__value *bias = pith__node_input(node, rms ? 3 : 4), *x = pith__node_input(node, 0);
    if (bias) x = pith__compose2(node, "Add", x, bias);
    pith__value *sum = pith__compose2(node, "Add", x, pith__node_input(node, 1));
    pith__value *inputs[] = { sum, pith__node_input(node, 2),
                              rms ? NULL : pith__node_input(node, 3) };
    if (rms && (pith__compose_wanted(node, 1) || pith__compose_wanted(node, 2)))
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "its statistics are read");
    int outputs = pith__compose_wanted(node, 2) ? 3 : pith__compose_wanted(node, 1) ? 2 : 1;
    pith__value *y = pith__compose(node, "", rms ? "RMSNormalization" : "LayerNormalization",
                                   inputs, 3, outputs);
    y = pith__with_float(y, "epsilon", pith__node_float(node, "epsilon", 1e-12f));
    for (int i = 1; y && i < 3; i++) {
        if (pith__compose_wanted(node, i))
            PITH_TRY(pith__compose_give(node, i, pith__node_output(y->producer, i), err));
    }
    if (pith__compose_wanted(node, 3)) PITH_TRY(pith__compose_give(node, 3, sum, err));
    return pith__compose_become(node, y, err);
}

/* 0, 1, … length of axis 1 of ids. */
static pith__value *ms_transformer_positions(pith__node *at, pith__value *ids) {
    static int64_t numbers[] = { 0, 1 };
    pith__value *constants[2];
    for (int i = 0; i < 2; i++) {
        pith_tensor scalar = { .data = &numbers[i], .bytes = sizeof numbers[i], .dtype = PITH_I64 };
        constants[i] = pith__graph_add_const(at->graph, PITH_STR(""), &scalar);
        if (!constants[i]) return NULL;
    }
    pith__value *length = ms_transformer_gather(at, pith__compose1(at, "Shape", ids), constants[1]);
    return pith__compose3(at, "Range", constants[0], length, constants[1]);
}

/* What is not 0 in a mask of rows; nothing if there is none. */
static pith__value *count_ones(pith__node *at, pith__value *mask, pith__value *ids) {
    if (!mask) mask = pith__compose2(at, "Sub", ids, ids);
    return pith__with_int(pith__compose_list(at, "ReduceSum", mask, (int64_t[]){ 1 }, 1),
                          "keepdims", 0);
}

static pith_status ms_transformer_upgrade_embed_norm(pith__node *node, pith_error *err) {
    enum { IDS, TYPES, WORD, POSITION, TYPE, GAMMA, BETA, MASK, POSITION_IDS };
    PITH_TRY(pith__compose_require(
        node, 1u << IDS | 1u << WORD | 1u << POSITION | 1u << GAMMA | 1u << BETA, 3, err));
    pith__value *ids = pith__node_input(node, IDS), *types = pith__node_input(node, TYPES),
                *at = pith__node_input(node, POSITION_IDS);
    if (!at) at = ms_transformer_positions(node, ids);
    pith__value *sum = pith__compose2(
        node, "Add", ms_transformer_gather(node, pith__node_input(node, WORD), ids),
        at ? ms_transformer_gather(node, pith__node_input(node, POSITION), at) : NULL);
    if (types && pith__node_input(node, TYPE))
        sum = pith__compose2(node, "Add", sum,
                             ms_transformer_gather(node, pith__node_input(node, TYPE), types));
    pith__value *inputs[] = { sum, pith__node_input(node, GAMMA), pith__node_input(node, BETA) };
    pith__value *y = pith__compose(node, "", "LayerNormalization", inputs, 3, 1);
    y = pith__with_float(y, "epsilon", pith__node_float(node, "epsilon", 1e-12f));
    if (pith__compose_wanted(node, 1))
        PITH_TRY(
            pith__compose_give(node, 1, count_ones(node, pith__node_input(node, MASK), ids), err));
    if (pith__compose_wanted(node, 2)) PITH_TRY(pith__compose_give(node, 2, sum, err));
    return pith__compose_become(node, y, err);
}

#define FUSED(symbol, name, min, max, outputs, how, attrs_)                                        \
    PITH_OP_COMPOSED(symbol, "com.microsoft", name, min, max, outputs, how, NULL, .attrs = attrs_)
FUSED(BiasGelu_ms, "BiasGelu", 2, 2, 1, upgrade_gelu, "")
FUSED(EmbedLayerNormalization_ms, "EmbedLayerNormalization", 7, 9, 3,
      ms_transformer_upgrade_embed_norm, "epsilon float = 1e-12; mask_index_type int 0|1")
FUSED(FastGelu_ms, "FastGelu", 1, 2, 1, upgrade_gelu, "")
FUSED(SkipLayerNormalization_ms, "SkipLayerNormalization", 3, 5, 4, upgrade_skip_norm,
      "epsilon float = 1e-12")
FUSED(SkipSimplifiedLayerNormalization_ms, "SkipSimplifiedLayerNormalization", 3, 4, 4,
      upgrade_skip_norm, "epsilon float = 1e-12")
