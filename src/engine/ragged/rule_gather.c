/* rule_gather.c - look-ups, and one token of each text. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* v without axes of size 1. */
static const pith_value *rule_gather_squeezed(const pith_value *v) {
    while (pith_match_maker(v, "Unsqueeze") || pith_match_maker(v, "Squeeze")) v = v->producer->inputs[0];
    return v;
}

/* 0, 1, … batch - 1. */
static bool rule_gather_is_batch_range(const pith_ragged *r, const pith_value *v) {
    pith_node *node = pith_match_maker(rule_gather_squeezed(v), "Range");
    pith_dim limit;
    return node && pith_match_scalar_near(node->inputs[0], 0.0, 0.0) &&
           pith_match_scalar_near(node->inputs[2], 1.0, 0.0) && pith_type_elem(&node->inputs[1]->type, 0, &limit) &&
           pith_dim_equal(limit, r->batch);
}

/* batch range * sequence: the row at which each text begins in [batch * sequence, …]. */
static bool rule_gather_is_padded_start(const pith_ragged *r, const pith_value *v) {
    pith_node *mul = pith_match_maker(v, "Mul");
    pith_dim stride;
    for (int i = 0; mul && i < 2; i++) {
        if (rule_gather_is_batch_range(r, mul->inputs[i]) && pith_type_count(&mul->inputs[1 - i]->type) == 1 &&
            pith_type_elem(&mul->inputs[1 - i]->type, 0, &stride) && pith_dim_equal(stride, r->sequence))
            return true;
    }
    return false;
}

/* Row index[b] of text b of x [batch, sequence, …]. */
static bool rule_gather_take_token(pith_ragged *r, const pith_value *x, const pith_value *index,
                                   const pith_value *out) {
    static const int64_t first = 0, last = -1;
    pith_ragged_form form = r->forms[x->id], text = { .kind = PITH_RAGGED_TEXT, .sequence = -1, .batch = true };
    pith_value *rows = pith_ragged_operand(r, x, &form, x->type.rank), *at = pith_ragged_operand(r, index, &text, 1);
    if (!rows || !at) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch || form.sequence != 1 || index->type.rank != 1 ||
        index->type.dtype != PITH_I64)
        return pith_ragged_refuse(r, "it does not take one token of each text");
    pith_value *slice_inputs[] = { r->offsets, pith_ragged_ints(r, &first, 1), pith_ragged_ints(r, &last, 1) };
    pith_node *starts = slice_inputs[1] && slice_inputs[2] ? pith_ragged_emit(r, "", "Slice", slice_inputs, 3) : NULL;
    pith_node *sum = starts ? pith_ragged_emit(r, "", "Add", (pith_value *[]){ starts->outputs[0], at }, 2) : NULL;
    pith_node *taken = sum ? pith_ragged_emit(r, "", "Gather", (pith_value *[]){ rows, sum->outputs[0] }, 2) : NULL;
    return taken && pith_ragged_set(r, out, taken->outputs[0]);
}

/* x[b, index[b]], the indices side by side. */
static bool rule_gather_nd(pith_ragged *r, const pith_node *node) {
    pith_node *concat = pith_match_maker(node->inputs[1], "Concat");
    if (pith_node_int(node, "batch_dims", 0) == 0 && concat && concat->input_count == 2 &&
        node->inputs[1]->type.rank == 2 && rule_gather_is_batch_range(r, concat->inputs[0])) {
        return rule_gather_take_token(r, node->inputs[0], rule_gather_squeezed(concat->inputs[1]), node->outputs[0]);
    }
    return pith_ragged_refuse(r, "it does not take one token of each text");
}

/* The same from [batch * sequence, …] with the rows counted through. Not that: false, nothing said. */
static bool rule_gather_is_flat_take(const pith_ragged *r, const pith_node *node, const pith_value **x,
                                     const pith_value **index) {
    const pith_value *data = node->inputs[0];
    pith_node *flat = pith_match_maker(data, "Flatten"), *add = pith_match_maker(node->inputs[1], "Add");
    if (!flat) flat = pith_match_maker(data, "Reshape");
    if (!flat || !add || data->type.rank != flat->inputs[0]->type.rank - 1) return false;
    for (int axis = 1; axis < data->type.rank; axis++) {
        if (!pith_dim_equal(data->type.dims[axis], flat->inputs[0]->type.dims[axis + 1])) return false;
    }
    *x = flat->inputs[0];
    for (int i = 0; i < 2; i++) {
        *index = add->inputs[1 - i];
        if (rule_gather_is_padded_start(r, add->inputs[i])) return true;
    }
    return false;
}

static bool rule_gather(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *ids = node->inputs[1], *out = node->outputs[0];
    pith_ragged_form form = r->forms[x->id];
    int64_t axis = pith_node_int(node, "axis", 0), index, count;
    const pith_value *rows_of, *row;
    if (axis < 0) axis += x->type.rank;
    if (axis == 0 && rule_gather_is_flat_take(r, node, &rows_of, &row))
        return rule_gather_take_token(r, rows_of, row, out);
    if (pith_ragged_kind_of(r, x) == PITH_RAGGED_CONST) {
        pith_ragged_form own = r->forms[ids->id];
        pith_value *inputs[] = { pith_ragged_const(r, x), pith_ragged_operand(r, ids, &own, ids->type.rank) };
        if (!inputs[0] || !inputs[1]) return false;
        if (axis != 0) return pith_ragged_refuse(r, "it gathers along an inner axis");
        pith_node *clone = pith_ragged_clone(r, node, inputs, 2);
        return clone && pith_ragged_set(r, out, clone->outputs[0]);
    }
    if (form.kind == PITH_RAGGED_TOKEN && axis == form.sequence) {
        if (!pith_match_ints(ids, &index, 1, &count) || count != 1 || ids->type.rank > 1 ||
            (index != 0 && index != -1)) {
            return pith_ragged_refuse(r, "it takes tokens other than the first or the last");
        }
        return pith_ragged_segment(r, x, out, index ? "last" : "first", ids->type.rank == 1);
    }
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), pith_ragged_const(r, ids) };
    if (!inputs[0] || !inputs[1]) return false;
    axis = pith_ragged_rest_axis(r, &form, axis, x->type.rank);
    if (axis < 0) return false;
    pith_node *clone = pith_ragged_clone(r, node, inputs, 2);
    return clone && pith_ragged_stored(r, pith_node_set_int(clone, "axis", axis)) &&
           pith_ragged_set(r, out, clone->outputs[0]);
}

const pith_ragged_rule pith_ragged_rule_gather = { .operators = "Gather", .translate = rule_gather };
const pith_ragged_rule pith_ragged_rule_gather_nd = { .operators = "GatherND", .translate = rule_gather_nd };
