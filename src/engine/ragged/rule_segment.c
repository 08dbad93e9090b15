/* rule_segment.c - operators along the sequence become steps over the segments of the texts.
 *
 * A segment is a text's rows in the packed values, from one offset to the next. A reduction over
 * the padded sequence would see padding; the step sees none, which is what the result is defined
 * as. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"
#include "engine/ragged/rule.h"

/* Along the sequence a reduction becomes one per text; along other axes it stays, renumbered. */
static bool rule_segment_reduce(pith__ragged *r, const pith__node *node) {
    static const struct {
        const char *op_type, *how;
    } names[] = {
        { "ReduceL1", "l1" },   { "ReduceMax", "max" }, { "ReduceMean", "mean" },
        { "ReduceMin", "min" }, { "ReduceSum", "sum" }, { "ReduceSumSquare", "sumsq" },
    };
    const pith__value *x = node->inputs[0], *out = node->outputs[0];
    pith__ragged_form form = r->forms[x->id];
    int64_t axes[PITH_MAX_RANK], count = 0;
    if (!pith__match_input(node, 1) ||
        !pith__match_ints(node->inputs[1], axes, PITH_MAX_RANK, &count) || count == 0) {
        return pith__ragged_refuse(r, "it reduces the batch");
    }
    int64_t first = axes[0] < 0 ? axes[0] + x->type.rank : axes[0];
    if (count == 1 && form.kind == PITH_RAGGED_TOKEN && first == form.sequence) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (pith__match_is(node, names[i].op_type)) {
                return pith__ragged_segment(r, x, out, names[i].how,
                                            pith__node_int(node, "keepdims", 1) != 0);
            }
        }
        return pith__ragged_refuse(r, "it reduces the sequence in a way that cannot run per text");
    }
    for (int64_t i = 0; i < count; i++) {
        axes[i] = pith__ragged_rest_axis(r, &form, axes[i], x->type.rank);
        if (axes[i] < 0) return false;
    }
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank),
                              pith__ragged_ints(r, axes, (int)count) };
    pith__node *clone = inputs[0] && inputs[1] ? pith__ragged_clone(r, node, inputs, 2) : NULL;
    return clone && pith__ragged_set(r, out, clone->outputs[0]);
}

/* Position ids, as RoBERTa counts them: the sum begins again with each text. */
static bool rule_segment_cumsum(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    pith__ragged_form form = r->forms[x->id];
    int64_t axis, count;
    if (!pith__match_ints(node->inputs[1], &axis, 1, &count))
        return pith__ragged_refuse(r, "its axis is computed");
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (axis < 0) axis += x->type.rank;
    if (form.kind != PITH_RAGGED_TOKEN || axis != form.sequence ||
        (x->type.dtype != PITH_I64 && x->type.dtype != PITH_I32)) {
        return pith__ragged_refuse(r, "it is not a cumulative sum of integers along the sequence");
    }
    pith__node *made = pith__ragged_emit(r, "pith", "SegmentScan", inputs, 2);
    return made &&
           pith__ragged_stored(
               r, pith__node_set_int(made, "exclusive", pith__node_int(node, "exclusive", 0))) &&
           pith__ragged_stored(
               r, pith__node_set_int(made, "reverse", pith__node_int(node, "reverse", 0))) &&
           pith__ragged_set(r, node->outputs[0], made->outputs[0]);
}

/* Where the largest element of a text lies: the end-of-text token, as CLIP finds it. */
static bool rule_segment_arg_max(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    pith__ragged_form form = r->forms[x->id];
    int64_t axis = pith__node_int(node, "axis", 0);
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (axis < 0) axis += x->type.rank;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch || x->type.rank != 2 ||
        axis != form.sequence || pith__node_int(node, "keepdims", 1) ||
        pith__node_int(node, "select_last_index", 0) ||
        (x->type.dtype != PITH_I64 && x->type.dtype != PITH_I32))
        return pith__ragged_refuse(r, "it does not find one token of each text");
    pith__node *made = pith__ragged_emit(r, "pith", "SegmentTop", inputs, 2);
    return made && pith__ragged_set(r, node->outputs[0], made->outputs[0]);
}

const pith__ragged_rule pith__ragged_rule_reduce = {
    .operators = "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare",
    .translate = rule_segment_reduce
};
const pith__ragged_rule pith__ragged_rule_cumsum = { .operators = "CumSum",
                                                     .translate = rule_segment_cumsum };
const pith__ragged_rule pith__ragged_rule_arg_max = { .operators = "ArgMax",
                                                      .translate = rule_segment_arg_max };
