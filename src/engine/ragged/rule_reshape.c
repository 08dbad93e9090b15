/* rule_reshape.c - operators that move elements: their axes are renumbered.
 *
 * [batch, sequence, …] is [tokens, …] in the packed graph, so an axis behind the sequence moves by
 * one. What would move, split or merge the batch or sequence axis itself has no translation. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* True if the reshape leaves batch and sequence whole and does not change the order of the elements
 * within a token's (or a text's) rest axes. The node is applied to a view that splits the axes into
 * atoms (opt/tensor_view.h): those of batch and sequence must map to the batch and sequence of the
 * result and to nothing else, and the others must come in ascending axis and descending stride. */
static bool rule_reshape_keeps_order(const pith__node *node, const pith__ragged_form *in,
                                     const pith__ragged_form *out) {
    const pith__value *x = node->inputs[0], *y = node->outputs[0];
    pith__view view;
    pith__view_init(&view, &x->type);
    if (!pith__view_apply(&view, node, y)) return false;
    const pith__view_atom *last = NULL;
    for (int i = 0; i < view.count; i++) {
        const pith__view_atom *a = &view.atoms[i];
        bool batch = in->batch && a->axis == 0, sequence = a->axis == in->sequence;
        if (batch != (out->batch && a->of == 0) || sequence != (a->of == out->sequence))
            return false;
        if (batch || sequence) continue;
        if (a->axis < 0 ||
            (last && (a->axis < last->axis || (a->axis == last->axis && a->stride > last->stride))))
            return false;
        last = a;
    }
    return true;
}

static bool rule_reshape(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    pith__ragged_form in = r->forms[x->id], form = pith__ragged_form_of(r, &out->type);
    pith__value *value = pith__ragged_operand(r, x, &in, x->type.rank);
    if (!value) return false;
    if (form.kind != in.kind || (in.kind != PITH_RAGGED_TOKEN && in.kind != PITH_RAGGED_TEXT) ||
        form.batch != in.batch || !rule_reshape_keeps_order(node, &in, &form))
        return pith__ragged_refuse(r, "it merges batch or sequence with other axes");
    return pith__ragged_reshape_rest(r, out, value, &form);
}

/* Batch and sequence are one axis of packed rows, the first, wherever they stand in the original.
 * So only the order of the other axes counts: where that stays, as between [batch, heads, sequence,
 * size] and [batch, sequence, heads, size], the packed value is the same. */
static bool rule_reshape_transpose(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    pith__ragged_form in = r->forms[x->id], form = pith__ragged_form_of(r, &out->type);
    pith__value *value = pith__ragged_operand(r, x, &in, x->type.rank);
    size_t count;
    const int64_t *given = pith__node_ints(node, "perm", &count);
    if (!value) return false;
    if (form.kind != in.kind || in.kind != PITH_RAGGED_TOKEN || form.batch != in.batch)
        return pith__ragged_refuse(r, "it moves the batch");
    int64_t perm[PITH_MAX_RANK] = { 0 };
    int rank = 1;
    bool identity = true;
    for (int axis = 0; axis < out->type.rank; axis++) {
        int from = (int)(given ? given[axis] : out->type.rank - 1 - axis);
        if (axis == form.sequence || (axis == 0 && form.batch)) continue;
        perm[rank] = pith__ragged_moved_axis(&in, from);
        identity = identity && perm[rank] == rank;
        rank++;
    }
    if (identity) return pith__ragged_set(r, out, value);
    pith__node *made = pith__ragged_emit(r, "", "Transpose", &value, 1);
    return made && pith__ragged_stored(r, pith__node_set_ints(made, "perm", perm, (size_t)rank)) &&
           pith__ragged_set(r, out, made->outputs[0]);
}

/* value repeated to [as many as front has, want…]. */
static bool rule_reshape_repeat(pith__ragged *r, const pith__value *out, pith__value *value,
                                pith__value *front, const int64_t *want, int want_count) {
    pith__node *shape = pith__ragged_emit(r, "", "Shape", &front, 1);
    if (!shape || !pith__ragged_stored(r, pith__node_set_int(shape, "start", 0)) ||
        !pith__ragged_stored(r, pith__node_set_int(shape, "end", 1)))
        return false;
    pith__value *parts[] = { shape->outputs[0], pith__ragged_ints(r, want, want_count) };
    pith__node *concat = parts[1] ? pith__ragged_emit(r, "", "Concat", parts, 2) : NULL;
    if (!concat || !pith__ragged_stored(r, pith__node_set_int(concat, "axis", 0))) return false;
    pith__value *inputs[] = { value, concat->outputs[0] };
    pith__node *made = pith__ragged_emit(r, "", "Expand", inputs, 2);
    return made && pith__ragged_set(r, out, made->outputs[0]);
}

/* The same number for each token. */
static bool rule_reshape_fill(pith__ragged *r, const pith__node *node) {
    static const float zero = 0.0f;
    static const pith_tensor zeros = { .data = (void *)(uintptr_t)&zero,
                                       .bytes = sizeof zero,
                                       .dtype = PITH_F32 };
    const pith__value *out = node->outputs[0];
    const pith_tensor *given = pith__node_tensor(node, "value");
    pith__ragged_form form = pith__ragged_form_of(r, &out->type);
    int64_t want[PITH_MAX_RANK];
    int count;
    if (form.kind != PITH_RAGGED_TOKEN)
        return pith__ragged_refuse(r, "its shape does not keep batch and sequence");
    if (!pith__ragged_rest_dims(&form, &out->type, want, &count))
        return pith__ragged_refuse(r, "a size is not a number");
    pith__value *value = pith__graph_add_const(r->to, PITH_STR(""), given ? given : &zeros);
    if (!value) return pith__ragged_stored(r, PITH_ERR_MEMORY);
    return rule_reshape_repeat(r, out, value, r->ids, want, count);
}

/* A repetition along rest axes. Along the sequence a constant becomes one row per token; along the
 * batch there is nothing to repeat, since packed rows have no such axis. */
static bool rule_reshape_expand(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    pith__ragged_form form = pith__ragged_form_of(r, &out->type);
    pith__value *value = pith__ragged_operand(r, x, &form, out->type.rank);
    int64_t have[PITH_MAX_RANK], want[PITH_MAX_RANK];
    int have_count, want_count;
    if (!value) return false;
    pith__ragged_kind kind = pith__ragged_kind_of(r, x);
    if ((kind != PITH_RAGGED_TOKEN && kind != PITH_RAGGED_TEXT && kind != PITH_RAGGED_CONST) ||
        (kind == PITH_RAGGED_CONST && form.kind != PITH_RAGGED_TOKEN))
        return pith__ragged_refuse(r, "it repeats along the batch");
    pith__ragged_form in = kind == PITH_RAGGED_CONST
                               ? (pith__ragged_form){ .kind = kind, .sequence = -1 }
                               : r->forms[x->id];
    if (!pith__ragged_rest_dims(&in, &x->type, have, &have_count) ||
        !pith__ragged_rest_dims(&form, &out->type, want, &want_count)) {
        return pith__ragged_refuse(r, "a size is not a number");
    }
    bool same = kind == form.kind;
    for (int i = 0; i < want_count && same; i++) {
        int at = i - (want_count - have_count);
        same = (at < 0 ? 1 : have[at]) == want[i];
    }
    if (same) return pith__ragged_set(r, out, value);
    return rule_reshape_repeat(r, out, value, kind == PITH_RAGGED_TEXT ? value : r->ids, want,
                               want_count);
}

static bool rule_reshape_concat(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->outputs[0];
    pith__ragged_form form = pith__ragged_form_of(r, &out->type);
    pith__value *inputs[16];
    int64_t axis =
        pith__ragged_rest_axis(r, &form, pith__node_int(node, "axis", 0), out->type.rank);
    if (axis < 0) return false;
    if (node->input_count > 16) return pith__ragged_refuse(r, "it has too many inputs");
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = pith__ragged_operand(r, node->inputs[i], &form, out->type.rank);
        if (!inputs[i]) return false;
        if (pith__ragged_kind_of(r, node->inputs[i]) != form.kind)
            return pith__ragged_refuse(r, "it joins values per text with values per token");
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && pith__ragged_stored(r, pith__node_set_int(clone, "axis", axis)) &&
           pith__ragged_set(r, out, clone->outputs[0]);
}

static bool rule_reshape_split(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    pith__ragged_form form = r->forms[x->id];
    pith__value *inputs[2] = { pith__ragged_operand(r, x, &form, x->type.rank) };
    int64_t axis = pith__ragged_rest_axis(r, &form, pith__node_int(node, "axis", 0), x->type.rank);
    if (!inputs[0] || axis < 0) return false;
    if (pith__match_input(node, 1) && !(inputs[1] = pith__ragged_const(r, node->inputs[1])))
        return false;
    pith__node *clone = pith__ragged_clone(r, node, inputs, inputs[1] ? 2 : 1);
    if (!clone || !pith__ragged_stored(r, pith__node_set_int(clone, "axis", axis))) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && !pith__ragged_set(r, node->outputs[i], clone->outputs[i]))
            return false;
    }
    return true;
}

const pith__ragged_rule pith__ragged_rule_reshape = { .operators =
                                                          "Flatten Reshape Squeeze Unsqueeze",
                                                      .translate = rule_reshape };
const pith__ragged_rule pith__ragged_rule_transpose = { .operators = "Transpose",
                                                        .translate = rule_reshape_transpose };
const pith__ragged_rule pith__ragged_rule_fill = { .operators = "ConstantOfShape",
                                                   .translate = rule_reshape_fill };
const pith__ragged_rule pith__ragged_rule_expand = { .operators = "Expand",
                                                     .translate = rule_reshape_expand };
const pith__ragged_rule pith__ragged_rule_concat = { .operators = "Concat",
                                                     .translate = rule_reshape_concat };
const pith__ragged_rule pith__ragged_rule_split = { .operators = "Split",
                                                    .translate = rule_reshape_split };
