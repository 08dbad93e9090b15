/* op_ms_attention.c - com.microsoft's MultiHeadAttention and RotaryEmbedding, written out at load as those of ai.onnx.
 *
 * Supported are query, key and value of their own, a bias for all three, a mask of keys by position (declared with rank
 * 2) or by length (rank 1), an additive bias of scores, and past keys and values; packed projections are not. Source:
 * ONNX Runtime's ContribOperators.md. */
#include "ops/op.h"

/* No opset of the domain is new enough: these are always written out. */
#define ALWAYS_UPGRADED INT32_MAX

static pith_value *input(const pith_node *node, int i) { return i < node->input_count ? node->inputs[i] : NULL; }

static pith_node *add(pith_node *at, const char *op_type, pith_value *const *inputs, int count, int outputs) {
    while (count > 0 && !inputs[count - 1]) count--;
    pith_node *node = pith_graph_add_node(at->graph, at, "", op_type, inputs, count, NULL, outputs);
    if (!node) return NULL;
    node->name = at->name;
    node->index = at->index;
    return node;
}

static pith_value *add2(pith_node *at, const char *op_type, pith_value *a, pith_value *b) {
    pith_node *node = a && b ? add(at, op_type, (pith_value *[]){ a, b }, 2, 1) : NULL;
    return node ? node->outputs[0] : NULL;
}

static pith_value *cast(pith_node *at, pith_value *x, int dtype) {
    pith_node *node = add(at, "Cast", &x, 1, 1);
    return node && !pith_node_set_int(node, "to", dtype) ? node->outputs[0] : NULL;
}

/* The first `count` outputs of by take the place of the node's. */
static pith_status become(pith_node *node, pith_node *by, int count, pith_error *err) {
    for (int i = 0; i < node->output_count && i < count; i++) {
        if (!node->outputs[i]) continue;
        by->outputs[i]->name = node->outputs[i]->name;
        by->outputs[i]->hint = node->outputs[i]->hint;
        node->outputs[i]->name = PITH_STR("");
        if (pith_value_replace(node->outputs[i], by->outputs[i])) return pith_fail_memory(err, 0);
    }
    pith_node_remove(node);
    return PITH_OK;
}

static int declared_rank(const pith_value *v) { return v->type.rank < 0 && v->hint ? v->hint->rank : v->type.rank; }

enum { QUERY, KEY, VALUE, BIAS, KEY_MASK, SCORE_BIAS, PAST_KEY, PAST_VALUE };

/* query, key and value plus their thirds of the bias. */
static pith_status add_bias(pith_node *node, pith_value *v[3], pith_error *err) {
    pith_value *bias = input(node, BIAS);
    if (!bias) return PITH_OK;
    pith_node *parts = add(node, "Split", &bias, 1, 3);
    if (!parts || pith_node_set_int(parts, "num_outputs", 3)) return pith_fail_memory(err, 0);
    for (int i = 0; i < 3; i++) {
        v[i] = add2(node, "Add", v[i], parts->outputs[i]);
        if (!v[i]) return pith_fail_memory(err, 0);
    }
    return PITH_OK;
}

/* The mask of scores, and lengths of keys if that is how they are given. */
static pith_status masks(pith_node *node, pith_value **mask, pith_value **lengths, pith_error *err) {
    pith_value *keys = input(node, KEY_MASK);
    *mask = input(node, SCORE_BIAS);
    *lengths = NULL;
    if (!keys) return PITH_OK;
    int rank = declared_rank(keys);
    if (rank == 1) {
        *lengths = cast(node, keys, PITH_I64);
        return *lengths ? PITH_OK : pith_fail_memory(err, 0);
    }
    if (rank != 2) return pith_fail(err, PITH_ERR_UNSUPPORTED, "a key mask of rank %d is not supported", rank);
    pith_graph *graph = node->graph;
    pith_value *axes = pith_graph_add_i64s(graph, PITH_STR(""), (int64_t[]){ 1, 2 }, 2);
    pith_value *kept = cast(node, keys, PITH_BOOL);
    pith_value *wide = axes ? add2(node, "Unsqueeze", kept, axes) : NULL; /* [batch, 1, 1, keys] */
    if (wide && *mask) {
        pith_value *none =
            pith_graph_add_f32(graph, PITH_STR(""), pith_node_float(node, "mask_filter_value", -10000.0f));
        pith_node *chosen = none ? add(node, "Where", (pith_value *[]){ wide, *mask, none }, 3, 1) : NULL;
        wide = chosen ? chosen->outputs[0] : NULL;
    }
    *mask = wide;
    return wide ? PITH_OK : pith_fail_memory(err, 0);
}

static pith_status upgrade_heads(pith_node *node, pith_error *err) {
    int64_t heads = pith_node_int(node, "num_heads", 0);
    pith_value *v[3] = { input(node, QUERY), input(node, KEY), input(node, VALUE) }, *mask, *lengths;
    if (!v[0] || node->output_count < 1 || !node->outputs[0])
        return pith_fail(err, PITH_ERR_FORMAT, "query or output is missing");
    if (!v[1] || !v[2]) return pith_fail(err, PITH_ERR_UNSUPPORTED, "packed projections are not supported");
    if (heads < 1) return pith_fail(err, PITH_ERR_ARGUMENT, "attribute num_heads is %lld", (long long)heads);
    if (node->input_count > PAST_VALUE + 1 || node->output_count > 3) {
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "sequence lengths of a cache and scores as output are not supported");
    }
    if (declared_rank(v[1]) > 3 || declared_rank(v[2]) > 3) {
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "key and value of rank 4 are not supported");
    }
    PITH_TRY(add_bias(node, v, err));
    PITH_TRY(masks(node, &mask, &lengths, err));
    pith_node *by =
        add(node, "Attention",
            (pith_value *[]){ v[0], v[1], v[2], mask, input(node, PAST_KEY), input(node, PAST_VALUE), lengths }, 7,
            node->output_count);
    if (!by || pith_node_set_int(by, "q_num_heads", heads) || pith_node_set_int(by, "kv_num_heads", heads) ||
        pith_node_set_int(by, "is_causal", pith_node_int(node, "unidirectional", 0)))
        return pith_fail_memory(err, 0);
    float scale = pith_node_float(node, "scale", 0.0f);
    if (scale != 0 && pith_node_set_float(by, "scale", scale)) return pith_fail_memory(err, 0);
    return become(node, by, node->output_count, err);
}

static pith_status upgrade_rotary(pith_node *node, pith_error *err) {
    static const char *const kept[] = { "interleaved", "num_heads", "rotary_embedding_dim" };
    for (int i = 0; i < 4; i++) {
        if (!input(node, i)) return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->output_count != 1 || !node->outputs[0]) return pith_fail(err, PITH_ERR_FORMAT, "one output is expected");
    if (declared_rank(node->inputs[1]) == 1)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "an offset for position_ids is not supported");
    if (pith_node_float(node, "scale", 1.0f) != 1.0f)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "attribute scale is not supported");
    pith_node *by = add(node, "RotaryEmbedding",
                        (pith_value *[]){ node->inputs[0], node->inputs[2], node->inputs[3], node->inputs[1] }, 4, 1);
    for (int i = 0; by && i < 3; i++) {
        if (pith_node_set_int(by, kept[i], pith_node_int(node, kept[i], 0))) by = NULL;
    }
    return by ? become(node, by, 1, err) : pith_fail_memory(err, 0);
}

static pith_status infer_never(pith_infer *c) { return pith_op_fail(c, "is not a form of any opset"); }

const pith_op pith_op_MultiHeadAttention_ms = { .domain = "com.microsoft",
                                                .name = "MultiHeadAttention",
                                                .since = ALWAYS_UPGRADED,
                                                .min_inputs = 3,
                                                .max_inputs = 8,
                                                .max_outputs = 3,
                                                .upgrade = upgrade_heads,
                                                .infer = infer_never,
                                                .note = "no packed projections; key masks of rank 1 or 2" };
const pith_op pith_op_RotaryEmbedding_ms = { .domain = "com.microsoft",
                                             .name = "RotaryEmbedding",
                                             .since = ALWAYS_UPGRADED,
                                             .min_inputs = 4,
                                             .max_inputs = 4,
                                             .max_outputs = 1,
                                             .upgrade = upgrade_rotary,
                                             .infer = infer_never,
                                             .note = "no position offset, no scale" };
