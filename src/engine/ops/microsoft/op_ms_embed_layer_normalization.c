/* op_ms_embed_layer_normalization.c - com.microsoft's EmbedLayerNormalization: the sum of word,
 * position and type vectors, normalised, written out at load as plain operators. Source: ONNX
 * Runtime's ContribOperators.md. */
#include "engine/ops/shared/compose_ops.h"

static pith__value *ms_embed_norm_gather(pith__node *at, pith__value *table, pith__value *ids) {
    return pith__compose2(at, "Gather", table, ids);
}

/* 0, 1, … length of axis 1 of ids. */
static pith__value *ms_embed_norm_positions(pith__node *at, pith__value *ids) {
    static int64_t numbers[] = { 0, 1 };
    pith__value *constants[2];
    for (int i = 0; i < 2; i++) {
        pith_tensor scalar = { .data = &numbers[i], .bytes = sizeof numbers[i], .dtype = PITH_I64 };
        constants[i] = pith__graph_add_const(at->graph, PITH_STR(""), &scalar);
        if (!constants[i]) return NULL;
    }
    pith__value *length = ms_embed_norm_gather(at, pith__compose1(at, "Shape", ids), constants[1]);
    return pith__compose3(at, "Range", constants[0], length, constants[1]);
}

/* What is not 0 in a mask of rows; nothing if there is none. */
static pith__value *ms_embed_norm_count_ones(pith__node *at, pith__value *mask, pith__value *ids) {
    if (!mask) mask = pith__compose2(at, "Sub", ids, ids);
    return pith__with_int(pith__compose_list(at, "ReduceSum", mask, (int64_t[]){ 1 }, 1),
                          "keepdims", 0);
}

/* Positions that are not given count from 0 in each row. The pass that finds Gather, Add and
 * LayerNormalization then makes pith.EmbedNorm of them. */
static pith_status ms_embed_norm_upgrade(pith__node *node, pith_error *err) {
    enum { IDS, TYPES, WORD, POSITION, TYPE, GAMMA, BETA, MASK, POSITION_IDS };
    PITH_TRY(pith__compose_require(
        node, 1u << IDS | 1u << WORD | 1u << POSITION | 1u << GAMMA | 1u << BETA, 3, err));
    pith__value *ids = pith__node_input(node, IDS), *types = pith__node_input(node, TYPES),
                *at = pith__node_input(node, POSITION_IDS);
    if (!at) at = ms_embed_norm_positions(node, ids);
    pith__value *sum = pith__compose2(
        node, "Add", ms_embed_norm_gather(node, pith__node_input(node, WORD), ids),
        at ? ms_embed_norm_gather(node, pith__node_input(node, POSITION), at) : NULL);
    if (types && pith__node_input(node, TYPE))
        sum = pith__compose2(node, "Add", sum,
                             ms_embed_norm_gather(node, pith__node_input(node, TYPE), types));
    pith__value *inputs[] = { sum, pith__node_input(node, GAMMA), pith__node_input(node, BETA) };
    pith__value *y = pith__compose(node, "", "LayerNormalization", inputs, 3, 1);
    y = pith__with_float(y, "epsilon", pith__node_float(node, "epsilon", 1e-12f));
    if (pith__compose_wanted(node, 1))
        PITH_TRY(pith__compose_give(
            node, 1, ms_embed_norm_count_ones(node, pith__node_input(node, MASK), ids), err));
    if (pith__compose_wanted(node, 2)) PITH_TRY(pith__compose_give(node, 2, sum, err));
    return pith__compose_become(node, y, err);
}

PITH_OP_COMPOSED(EmbedLayerNormalization_ms, "com.microsoft", "EmbedLayerNormalization", 7, 9, 3,
                 ms_embed_norm_upgrade, NULL,
                 .attrs = "epsilon float = 1e-12; mask_index_type int 0|1")
