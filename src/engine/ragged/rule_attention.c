/* rule_attention.c - attention within each text, and rotary positions.
 *
 * The fused step takes offsets in the place of a key mask: a text's queries see the keys of its own
 * segment. Rotary steps take the positions, since packed rows have no column to count. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* True if the mask says "every real token", so that a text alone needs none: it comes from an input
 * for which make_inputs made ones, through casts, or is the number of tokens per text (a sum of
 * that input). */
static bool rule_attention_is_padding_mask(const pith__ragged *r, const pith__value *v) {
    while (pith__match_maker(v, "Cast")) v = v->producer->inputs[0];
    pith__node *count = pith__match_maker(v, "ReduceSum");
    if (count && v->type.rank == 1) return rule_attention_is_padding_mask(r, count->inputs[0]);
    if (v->kind != PITH_VALUE_INPUT || v->type.rank != 2) return false;
    return r->values[v->id] && r->values[v->id]->kind == PITH_VALUE_NODE; /* the ones made for it */
}

/* The mask that hides padding is dropped, and offsets take its place. A bias over pairs of
 * positions is computed once, for the longest text. Any other mask depends on the batch and is
 * refused. */
static bool rule_attention(pith__ragged *r, const pith__node *node) {
    enum { Q, K, V, BIAS, KEY_MASK, OFFSETS, INPUTS };
    pith__value *inputs[INPUTS] = { NULL };
    for (int i = Q; i <= V; i++) {
        const pith__value *v = node->inputs[i];
        pith__ragged_form form = r->forms[v->id];
        inputs[i] = pith__ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || !form.batch)
            return pith__ragged_refuse(r, "queries or keys do not have one row per token");
    }
    const pith__value *bias = pith__match_input(node, BIAS),
                      *mask = pith__match_input(node, KEY_MASK);
    if (bias && !(inputs[BIAS] = pith__ragged_pair(r, bias, 0))) return false;
    if (mask && !rule_attention_is_padding_mask(r, mask))
        return pith__ragged_refuse(r, "its key mask is not the padding mask");
    inputs[OFFSETS] = r->offsets;
    pith__node *clone = pith__ragged_clone(r, node, inputs, INPUTS);
    return clone && pith__ragged_stored(r, pith__node_set_int(clone, "head_major", 0)) &&
           pith__ragged_set(r, node->outputs[0], clone->outputs[0]);
}

/* The tables have one row per token, or one row per position, which is looked up per token. */
static bool rule_attention_rotary(pith__ragged *r, const pith__node *node) {
    pith__value *inputs[3];
    for (int i = 0; i < 3; i++) {
        const pith__value *v = node->inputs[i];
        pith__ragged_form form = r->forms[v->id];
        inputs[i] = pith__ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || form.sequence == v->type.rank - 1)
            return pith__ragged_refuse(r, "it does not have one row per token");
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, 3);
    return clone && pith__ragged_stored(r, pith__node_set_int(clone, "ragged", 1)) &&
           pith__ragged_set(r, node->outputs[0], clone->outputs[0]);
}

const pith__ragged_rule pith__ragged_rule_attention = { .operators = "pith::Attention",
                                                        .translate = rule_attention };
const pith__ragged_rule pith__ragged_rule_rotary = { .operators = "pith::Rotary",
                                                     .translate = rule_attention_rotary };
