/* rule_attention.c - attention within each text, and rotary positions. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* Does the mask say "every real token", so that a text alone needs none? */
static bool rule_attention_is_padding_mask(const pith_ragged *r, const pith_value *v) {
    while (pith_match_maker(v, "Cast")) v = v->producer->inputs[0];
    pith_node *count = pith_match_maker(v, "ReduceSum");
    if (count && v->type.rank == 1) return rule_attention_is_padding_mask(r, count->inputs[0]);
    if (v->kind != PITH_VALUE_INPUT || v->type.rank != 2) return false;
    return r->values[v->id] && r->values[v->id]->kind == PITH_VALUE_NODE; /* the ones made for it */
}

static bool rule_attention(pith_ragged *r, const pith_node *node) {
    enum { Q, K, V, BIAS, KEY_MASK, OFFSETS, INPUTS };
    pith_value *inputs[INPUTS] = { NULL };
    for (int i = Q; i <= V; i++) {
        const pith_value *v = node->inputs[i];
        pith_ragged_form form = r->forms[v->id];
        inputs[i] = pith_ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || !form.batch)
            return pith_ragged_refuse(r, "queries or keys do not have one row per token");
    }
    const pith_value *bias = pith_match_input(node, BIAS), *mask = pith_match_input(node, KEY_MASK);
    if (bias && !(inputs[BIAS] = pith_ragged_pair(r, bias, 0))) return false;
    if (mask && !rule_attention_is_padding_mask(r, mask))
        return pith_ragged_refuse(r, "its key mask is not the padding mask");
    inputs[OFFSETS] = r->offsets;
    pith_node *clone = pith_ragged_clone(r, node, inputs, INPUTS);
    return clone && pith_ragged_stored(r, pith_node_set_int(clone, "head_major", 0)) &&
           pith_ragged_set(r, node->outputs[0], clone->outputs[0]);
}

/* The tables have one row per token, or one row per position, which is looked up per token. */
static bool rule_attention_rotary(pith_ragged *r, const pith_node *node) {
    pith_value *inputs[3];
    for (int i = 0; i < 3; i++) {
        const pith_value *v = node->inputs[i];
        pith_ragged_form form = r->forms[v->id];
        inputs[i] = pith_ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || form.sequence == v->type.rank - 1)
            return pith_ragged_refuse(r, "it does not have one row per token");
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, 3);
    return clone && pith_ragged_stored(r, pith_node_set_int(clone, "ragged", 1)) &&
           pith_ragged_set(r, node->outputs[0], clone->outputs[0]);
}

const pith_ragged_rule pith_ragged_rule_attention = { .operators = "pith::Attention", .translate = rule_attention };
const pith_ragged_rule pith_ragged_rule_rotary = { .operators = "pith::Rotary", .translate = rule_attention_rotary };
