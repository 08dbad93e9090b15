/* rule_gather.c - look-ups, and one token of each text.
 *
 * A table that is looked up by token stays as it is. Taking one token of each text is spelled in
 * three ways by exporters: an index along the sequence, GatherND over (batch, index), and Gather
 * over flattened rows; all become a look-up at the text's offset plus the index. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* v without axes of size 1. */
static const pith__value *rule_gather_squeezed(const pith__value *v) {
    while (pith__match_maker(v, "Unsqueeze") || pith__match_maker(v, "Squeeze"))
        v = v->producer->inputs[0];
    return v;
}

/* 0, 1, … batch - 1. */
static bool rule_gather_is_batch_range(const pith__ragged *r, const pith__value *v) {
    pith__node *node = pith__match_maker(rule_gather_squeezed(v), "Range");
    pith__dim limit;
    return node && pith__match_scalar_near(node->inputs[0], 0.0, 0.0) &&
           pith__match_scalar_near(node->inputs[2], 1.0, 0.0) &&
           pith__type_elem(&node->inputs[1]->type, 0, &limit) && pith__dim_equal(limit, r->batch);
}

/* batch range * sequence: the row at which each text begins in [batch * sequence, …]. */
static bool rule_gather_is_padded_start(const pith__ragged *r, const pith__value *v) {
    pith__node *mul = pith__match_maker(v, "Mul");
    pith__dim stride;
    if (!mul) return false;
    for (int i = 0; i < 2; i++) {
        if (rule_gather_is_batch_range(r, mul->inputs[i]) &&
            pith__type_count(&mul->inputs[1 - i]->type) == 1 &&
            pith__type_elem(&mul->inputs[1 - i]->type, 0, &stride) &&
            pith__dim_equal(stride, r->sequence))
            return true;
    }
    return false;
}

/* Row index[b] of text b of x [batch, sequence, …]. */
static bool rule_gather_take_token(pith__ragged *r, const pith__value *x, const pith__value *index,
                                   const pith__value *out) {
    static const int64_t first = 0, last = -1;
    pith__ragged_form form = r->forms[x->id],
                      text = { .kind = PITH_RAGGED_TEXT, .sequence = -1, .batch = true };
    pith__value *rows = pith__ragged_operand(r, x, &form, x->type.rank),
                *at = pith__ragged_operand(r, index, &text, 1);
    if (!rows || !at) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch || form.sequence != 1 ||
        index->type.rank != 1 || index->type.dtype != PITH_I64)
        return pith__ragged_refuse(r, "it does not select one token of each text");
    pith__value *slice_inputs[] = { r->offsets, pith__ragged_ints(r, &first, 1),
                                    pith__ragged_ints(r, &last, 1) };
    if (!slice_inputs[1] || !slice_inputs[2]) return false;
    pith__node *starts = pith__ragged_emit(r, "", "Slice", slice_inputs, 3);
    if (!starts) return false;
    pith__value *add_inputs[] = { starts->outputs[0], at };
    pith__node *sum = pith__ragged_emit(r, "", "Add", add_inputs, 2);
    if (!sum) return false;
    pith__value *gather_inputs[] = { rows, sum->outputs[0] };
    pith__node *taken = pith__ragged_emit(r, "", "Gather", gather_inputs, 2);
    return taken && pith__ragged_set(r, out, taken->outputs[0]);
}

/* x[b, index[b]], the indices side by side. */
static bool rule_gather_nd(pith__ragged *r, const pith__node *node) {
    pith__node *concat = pith__match_maker(node->inputs[1], "Concat");
    if (pith__node_int(node, "batch_dims", 0) == 0 && concat && concat->input_count == 2 &&
        node->inputs[1]->type.rank == 2 && rule_gather_is_batch_range(r, concat->inputs[0])) {
        return rule_gather_take_token(r, node->inputs[0], rule_gather_squeezed(concat->inputs[1]),
                                      node->outputs[0]);
    }
    return pith__ragged_refuse(r, "it does not select one token of each text");
}

/* True if the node takes row b * sequence + index[b] of a value that was flattened to [batch *
 * sequence, …], for each text b: the second spelling of rule_gather_nd. Sets *x to the value before
 * flattening and *index. False without setting r->why if the pattern does not match, since the node
 * may be another kind of Gather. */
static bool rule_gather_is_flat_take(const pith__ragged *r, const pith__node *node,
                                     const pith__value **x, const pith__value **index) {
    const pith__value *data = node->inputs[0];
    pith__node *flat = pith__match_maker(data, "Flatten"),
               *add = pith__match_maker(node->inputs[1], "Add");
    if (!flat) flat = pith__match_maker(data, "Reshape");
    if (!flat || !add || data->type.rank != flat->inputs[0]->type.rank - 1) return false;
    for (int axis = 1; axis < data->type.rank; axis++) {
        if (!pith__dim_equal(data->type.dims[axis], flat->inputs[0]->type.dims[axis + 1]))
            return false;
    }
    *x = flat->inputs[0];
    for (int i = 0; i < 2; i++) {
        *index = add->inputs[1 - i];
        if (rule_gather_is_padded_start(r, add->inputs[i])) return true;
    }
    return false;
}

/* Four cases: one token of each text, spelled over flattened rows; a look-up in a table by ids; the
 * first or last token along the sequence; and an axis that is neither batch nor sequence. */
static bool rule_gather(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *ids = node->inputs[1], *out = node->outputs[0];
    pith__ragged_form form = r->forms[x->id];
    int64_t axis = pith__node_int(node, "axis", 0), index, count;
    const pith__value *rows_of, *row;
    if (axis < 0) axis += x->type.rank;
    if (axis == 0 && rule_gather_is_flat_take(r, node, &rows_of, &row))
        return rule_gather_take_token(r, rows_of, row, out);
    if (pith__ragged_kind_of(r, x) == PITH_RAGGED_CONST) {
        pith__ragged_form own = r->forms[ids->id];
        pith__value *inputs[] = { pith__ragged_const(r, x),
                                  pith__ragged_operand(r, ids, &own, ids->type.rank) };
        if (!inputs[0] || !inputs[1]) return false;
        if (axis != 0) return pith__ragged_refuse(r, "it gathers along an inner axis");
        pith__node *clone = pith__ragged_clone(r, node, inputs, 2);
        return clone && pith__ragged_set(r, out, clone->outputs[0]);
    }
    if (form.kind == PITH_RAGGED_TOKEN && axis == form.sequence) {
        if (!pith__match_ints(ids, &index, 1, &count) || count != 1 || ids->type.rank > 1 ||
            (index != 0 && index != -1)) {
            return pith__ragged_refuse(r, "it selects tokens other than the first or the last");
        }
        return pith__ragged_segment(r, x, out, index ? "last" : "first", ids->type.rank == 1);
    }
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank),
                              pith__ragged_const(r, ids) };
    if (!inputs[0] || !inputs[1]) return false;
    axis = pith__ragged_rest_axis(r, &form, axis, x->type.rank);
    if (axis < 0) return false;
    pith__node *clone = pith__ragged_clone(r, node, inputs, 2);
    return clone && pith__ragged_stored(r, pith__node_set_int(clone, "axis", axis)) &&
           pith__ragged_set(r, out, clone->outputs[0]);
}

const pith__ragged_rule pith__ragged_rule_gather = { .operators = "Gather",
                                                     .translate = rule_gather };
const pith__ragged_rule pith__ragged_rule_gather_nd = { .operators = "GatherND",
                                                        .translate = rule_gather_nd };
