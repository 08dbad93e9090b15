/* rule_positions.c - slices and ranges along the sequence, taken by position.
 *
 * In the padded graph, row i of a table belongs to column i of the sequence. Packed rows have no
 * columns, but each knows its position in its text: so slices of tables become look-ups by
 * position, and ranges over the sequence the positions themselves. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* constant[…, 0:sequence, …] holds a row for each position: looked up by token. */
static bool rule_positions_look_up(pith__ragged *r, const pith__node *node, int axis) {
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    pith__value *inputs[] = { pith__ragged_const(r, x), r->positions };
    if (!inputs[0]) return false;
    if (axis > 0) {
        int64_t perm[PITH_MAX_RANK] = { axis };
        for (int i = 0, at = 1; i < x->type.rank; i++) {
            if (i != axis) perm[at++] = i;
        }
        pith__node *front = pith__ragged_emit(r, "", "Transpose", inputs, 1);
        if (!front ||
            !pith__ragged_stored(r, pith__node_set_ints(front, "perm", perm, (size_t)x->type.rank)))
            return false;
        inputs[0] = front->outputs[0];
    }
    pith__node *made = pith__ragged_emit(r, "", "Gather", inputs, 2);
    return made && pith__ragged_stored(r, pith__node_set_int(made, "axis", 0)) &&
           pith__ragged_set(r, out, made->outputs[0]);
}

/* A slice of a constant up to the sequence's length takes the row of each position: a look-up by
 * position. A slice of the sequence itself can only be the first token. Other axes are renumbered.
 */
static bool rule_positions_slice(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    int64_t starts[PITH_MAX_RANK], axes[PITH_MAX_RANK], steps[PITH_MAX_RANK], n, m;
    if (!pith__match_ints(node->inputs[1], starts, PITH_MAX_RANK, &n))
        return pith__ragged_refuse(r, "its start is computed");
    for (int64_t i = 0; i < n; i++) axes[i] = i, steps[i] = 1;
    if (pith__match_input(node, 3) &&
        (!pith__match_ints(node->inputs[3], axes, PITH_MAX_RANK, &m) || m != n))
        return pith__ragged_refuse(r, "its axes are computed");
    if (pith__match_input(node, 4) &&
        (!pith__match_ints(node->inputs[4], steps, PITH_MAX_RANK, &m) || m != n))
        return pith__ragged_refuse(r, "its steps are computed");
    pith__ragged_form form = r->forms[x->id], result = pith__ragged_form_of(r, &out->type);
    if (n < 1) return pith__ragged_refuse(r, "it has no axes");
    int64_t axis = axes[0] < 0 ? axes[0] + x->type.rank : axes[0];
    if (pith__ragged_kind_of(r, x) == PITH_RAGGED_CONST && result.kind == PITH_RAGGED_TOKEN &&
        !result.batch) {
        bool plain = n == 1 && axis == result.sequence && starts[0] == 0 && steps[0] == 1;
        return plain ? rule_positions_look_up(r, node, (int)axis)
                     : pith__ragged_refuse(r, "it slices positions in an unknown way");
    }
    pith__value *value = pith__ragged_operand(r, x, &form, x->type.rank);
    if (!value) return false;
    if (n == 1 && form.kind == PITH_RAGGED_TOKEN && axis == form.sequence) {
        bool first = starts[0] == 0 && steps[0] == 1 && out->type.dims[axis] == 1;
        return first ? pith__ragged_segment(r, x, out, "first", true)
                     : pith__ragged_refuse(r, "it slices the sequence");
    }
    for (int64_t i = 0; i < n; i++) {
        axes[i] = pith__ragged_rest_axis(r, &form, axes[i], x->type.rank);
        if (axes[i] < 0) return false;
    }
    pith__value *inputs[] = { value, pith__ragged_const(r, node->inputs[1]),
                              pith__ragged_const(r, node->inputs[2]),
                              pith__ragged_ints(r, axes, (int)n),
                              pith__ragged_ints(r, steps, (int)n) };
    for (int i = 0; i < 5; i++) {
        if (!inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, 5);
    return clone && pith__ragged_set(r, out, clone->outputs[0]);
}

/* Range(0, sequence, 1) is pith.positions: 0, 1, … within each text. A range that begins elsewhere
 * or has another step is refused. */
static bool rule_positions_range(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->outputs[0];
    pith__dim limit;
    if (!pith__match_scalar_near(node->inputs[0], 0.0, 0.0) ||
        !pith__match_scalar_near(node->inputs[2], 1.0, 0.0) ||
        !pith__type_elem(&node->inputs[1]->type, 0, &limit) ||
        !pith__dim_equal(limit, r->sequence) || out->type.dtype != PITH_I64) {
        return pith__ragged_refuse(r, "it is not the range of positions");
    }
    if (pith__ragged_form_of(r, &out->type).kind == PITH_RAGGED_TOKEN)
        return pith__ragged_set(r, out, r->positions);
    return pith__ragged_refuse(r, "its length is not known to be the sequence");
}

const pith__ragged_rule pith__ragged_rule_slice = { .operators = "Slice",
                                                    .translate = rule_positions_slice };
const pith__ragged_rule pith__ragged_rule_range = { .operators = "Range",
                                                    .translate = rule_positions_range };
