/* rule_rows.c - rows that stay what they are: elementwise operators, matmuls by constants, norms,
 * softmax. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* Elementwise: operands brought to the rank of the result. */
static bool rule_rows_map(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->outputs[0];
    pith__ragged_form form = pith__ragged_form_of(r, &out->type);
    pith__value *inputs[16];
    if (node->input_count > 16) return pith__ragged_refuse(r, "it has too many inputs");
    if (form.kind == PITH_RAGGED_CONST && pith__ragged_is_shared(r, node))
        return pith__ragged_map_shared(r, node);
    if (form.kind != PITH_RAGGED_TOKEN && form.kind != PITH_RAGGED_TEXT)
        return pith__ragged_refuse(r, "its result has a size of unknown kind");
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i]
                        ? pith__ragged_operand(r, node->inputs[i], &form, out->type.rank)
                        : NULL;
        if (node->inputs[i] && !inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && pith__ragged_set(r, out, clone->outputs[0]);
}

/* Input 0 has rows along its last axis, the others are constants: matmuls by weights, norms,
 * softmax. The result of a row depends on that row alone, so the node is copied as it is. The last
 * axis must not be the sequence, or the operator would mix tokens. */
static bool rule_rows(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    pith__ragged_form form = r->forms[x->id];
    pith__value *inputs[16] = { pith__ragged_operand(r, x, &form, x->type.rank) };
    if (!inputs[0]) return false;
    if (form.kind == PITH_RAGGED_TOKEN ? form.sequence == x->type.rank - 1 : x->type.rank < 2) {
        return pith__ragged_refuse(r, "it works along the sequence or the batch");
    }
    if (node->input_count > 16) return pith__ragged_refuse(r, "it has too many inputs");
    for (int i = 1; i < node->input_count; i++) {
        inputs[i] = node->inputs[i] ? pith__ragged_const(r, node->inputs[i]) : NULL;
        if (node->inputs[i] && !inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && pith__ragged_set(r, node->outputs[0], clone->outputs[0]);
}

static bool rule_rows_last_axis(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    int64_t axis = pith__node_int(node, "axis", -1);
    if (axis != -1 && axis != x->type.rank - 1)
        return pith__ragged_refuse(r, "it does not work along the last axis");
    if (!rule_rows(r, node)) return false;
    return pith__ragged_stored(
        r, pith__node_set_int(r->values[node->outputs[0]->id]->producer, "axis", -1));
}

static bool rule_rows_product(pith__ragged *r, const pith__node *node) {
    if (pith__ragged_kind_of(r, node->inputs[0]) == PITH_RAGGED_PAIR ||
        pith__ragged_kind_of(r, node->inputs[1]) == PITH_RAGGED_PAIR)
        return pith__ragged_refuse(
            r, "it works on every pair of tokens: this attention was not fused");
    if (node->inputs[1]->type.rank != 2)
        return pith__ragged_refuse(r, "it multiplies by more than one matrix");
    return rule_rows(r, node);
}

static bool rule_rows_gemm(pith__ragged *r, const pith__node *node) {
    if (pith__node_int(node, "transA", 0)) return pith__ragged_refuse(r, "it transposes the batch");
    return rule_rows(r, node);
}

static bool rule_rows_skip_norm(pith__ragged *r, const pith__node *node) {
    pith__value *inputs[4] = { NULL };
    pith__ragged_form form = pith__ragged_form_of(r, &node->outputs[0]->type);
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        if (!v) continue;
        inputs[i] = i < 2 ? pith__ragged_operand(r, v, &form, node->outputs[0]->type.rank)
                          : pith__ragged_const(r, v);
        if (!inputs[i]) return false;
    }
    if (form.kind != PITH_RAGGED_TOKEN || form.sequence == node->outputs[0]->type.rank - 1)
        return pith__ragged_refuse(r, "it is not over tokens");
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    if (!clone) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && !pith__ragged_set(r, node->outputs[i], clone->outputs[i]))
            return false;
    }
    return true;
}

static bool rule_rows_embed_norm(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->outputs[0];
    pith__ragged_form form = pith__ragged_form_of(r, &out->type);
    pith__value *inputs[8] = { NULL };
    if (form.kind != PITH_RAGGED_TOKEN) return pith__ragged_refuse(r, "it is not over tokens");
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        if (!v) continue;
        bool ids = i > 2 && i % 2;
        inputs[i] =
            ids ? pith__ragged_operand(r, v, &form, out->type.rank - 1) : pith__ragged_const(r, v);
        if (!inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && pith__ragged_set(r, out, clone->outputs[0]);
}

const pith__ragged_rule pith__ragged_rule_elementwise = { .operators = "Cast Where",
                                                          .elementwise = true,
                                                          .translate = rule_rows_map };
const pith__ragged_rule pith__ragged_rule_rows = {
    .operators = "com.microsoft::MatMulNBits pith::Gated pith::Linear", .translate = rule_rows
};
const pith__ragged_rule pith__ragged_rule_last_axis = {
    .operators = "LayerNormalization LogSoftmax RMSNormalization Softmax",
    .translate = rule_rows_last_axis
};
const pith__ragged_rule pith__ragged_rule_matmul = { .operators = "MatMul",
                                                     .translate = rule_rows_product };
const pith__ragged_rule pith__ragged_rule_gemm = { .operators = "Gemm",
                                                   .translate = rule_rows_gemm };
const pith__ragged_rule pith__ragged_rule_skip_norm = { .operators = "pith::SkipNorm",
                                                        .translate = rule_rows_skip_norm };
const pith__ragged_rule pith__ragged_rule_embed_norm = { .operators = "pith::EmbedNorm",
                                                         .translate = rule_rows_embed_norm };
