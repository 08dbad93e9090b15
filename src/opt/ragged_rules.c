/* ragged_rules.c - how each operator works on packed tokens: see ragged.h.
 *
 * Most are row-wise and stay what they are, with axes counted anew. What works along the sequence axis becomes a
 * segment step over pith.offsets; what takes positions takes pith.positions. Everything else is not known to work row
 * by row. */
#include "opt/match.h"
#include "opt/ragged.h"
#include "opt/view.h"

static bool ragged_rules_fail(pith_ragged *r, const char *why) {
    r->why = why;
    return false;
}

static pith_ragged_kind kind_of(const pith_ragged *r, const pith_value *v) {
    return v->kind == PITH_VALUE_CONST ? PITH_RAGGED_CONST : r->forms[v->id].kind;
}

/* An attribute could not be stored. */
static bool stored(pith_ragged *r, pith_status status) {
    if (status) r->status = pith_fail_memory(r->err, 0);
    return !status;
}

/* Where a rest axis of a TOKEN value lies in the new graph. */
static int64_t moved_axis(const pith_ragged_form *form, int axis) {
    return form->kind == PITH_RAGGED_TOKEN ? axis + (axis < form->sequence) - (form->batch ? 1 : 0) : axis;
}

/* The sizes of the rest axes; false if one is not a number. */
static bool rest_dims(const pith_ragged_form *form, const pith_type *type, int64_t *dims, int *count) {
    *count = 0;
    for (int axis = 0; axis < type->rank; axis++) {
        if (axis == form->sequence || (axis == 0 && form->batch)) continue;
        if (!pith_dim_known(type->dims[axis])) return false;
        dims[(*count)++] = type->dims[axis];
    }
    return true;
}

/* ---- row-wise ---- */

/* Elementwise: operands brought to the rank of the result. */
static bool map(pith_ragged *r, const pith_node *node) {
    const pith_value *out = node->outputs[0];
    pith_ragged_form form = pith_ragged_form_of(r, &out->type);
    pith_value *inputs[16];
    if (node->input_count > 16) return ragged_rules_fail(r, "it has too many inputs");
    if (form.kind == PITH_RAGGED_CONST && pith_ragged_is_shared(r, node)) return pith_ragged_map_shared(r, node);
    if (form.kind != PITH_RAGGED_TOKEN && form.kind != PITH_RAGGED_TEXT)
        return ragged_rules_fail(r, "its result has sizes of no known kind");
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i] ? pith_ragged_operand(r, node->inputs[i], &form, out->type.rank) : NULL;
        if (node->inputs[i] && !inputs[i]) return false;
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, node->input_count);
    return clone && pith_ragged_set(r, out, clone->outputs[0]);
}

/* Input 0 has rows along its last axis, the others are constants: products with weights, norms, softmax. */
static bool rows(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0];
    pith_ragged_form form = r->forms[x->id];
    pith_value *inputs[16] = { pith_ragged_operand(r, x, &form, x->type.rank) };
    if (!inputs[0]) return false;
    if (form.kind == PITH_RAGGED_TOKEN ? form.sequence == x->type.rank - 1 : x->type.rank < 2) {
        return ragged_rules_fail(r, "it works along the sequence or the batch");
    }
    if (node->input_count > 16) return ragged_rules_fail(r, "it has too many inputs");
    for (int i = 1; i < node->input_count; i++) {
        inputs[i] = node->inputs[i] ? pith_ragged_const(r, node->inputs[i]) : NULL;
        if (node->inputs[i] && !inputs[i]) return false;
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, node->input_count);
    return clone && pith_ragged_set(r, node->outputs[0], clone->outputs[0]);
}

static bool rows_last_axis(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0];
    int64_t axis = pith_node_int(node, "axis", -1);
    if (axis != -1 && axis != x->type.rank - 1) return ragged_rules_fail(r, "it does not work along the last axis");
    if (!rows(r, node)) return false;
    return stored(r, pith_node_set_int(r->values[node->outputs[0]->id]->producer, "axis", -1));
}

static bool ragged_rules_product(pith_ragged *r, const pith_node *node) {
    if (kind_of(r, node->inputs[0]) == PITH_RAGGED_PAIR || kind_of(r, node->inputs[1]) == PITH_RAGGED_PAIR)
        return ragged_rules_fail(r, "it takes every pair of tokens: attention in single steps, which was not fused");
    if (node->inputs[1]->type.rank != 2) return ragged_rules_fail(r, "it multiplies by more than one matrix");
    return rows(r, node);
}

static bool gemm(pith_ragged *r, const pith_node *node) {
    if (pith_node_int(node, "transA", 0)) return ragged_rules_fail(r, "it transposes the batch");
    return rows(r, node);
}

static bool skip_norm(pith_ragged *r, const pith_node *node) {
    pith_value *inputs[4];
    pith_ragged_form form = pith_ragged_form_of(r, &node->outputs[0]->type);
    for (int i = 0; i < node->input_count; i++) {
        const pith_value *v = node->inputs[i];
        inputs[i] = !v      ? NULL
                    : i < 2 ? pith_ragged_operand(r, v, &form, node->outputs[0]->type.rank)
                            : pith_ragged_const(r, v);
        if (v && !inputs[i]) return false;
    }
    if (form.kind != PITH_RAGGED_TOKEN || form.sequence == node->outputs[0]->type.rank - 1)
        return ragged_rules_fail(r, "it is not over tokens");
    pith_node *clone = pith_ragged_clone(r, node, inputs, node->input_count);
    for (int i = 0; clone && i < node->output_count; i++) {
        if (node->outputs[i] && !pith_ragged_set(r, node->outputs[i], clone->outputs[i])) return false;
    }
    return clone != NULL;
}

static bool embed_norm(pith_ragged *r, const pith_node *node) {
    const pith_value *out = node->outputs[0];
    pith_ragged_form form = pith_ragged_form_of(r, &out->type);
    pith_value *inputs[8];
    if (form.kind != PITH_RAGGED_TOKEN) return ragged_rules_fail(r, "it is not over tokens");
    for (int i = 0; i < node->input_count; i++) {
        const pith_value *v = node->inputs[i];
        bool ids = i > 2 && i % 2;
        inputs[i] = !v ? NULL : ids ? pith_ragged_operand(r, v, &form, out->type.rank - 1) : pith_ragged_const(r, v);
        if (v && !inputs[i]) return false;
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, node->input_count);
    return clone && pith_ragged_set(r, out, clone->outputs[0]);
}

/* Does the mask say "every real token", so that a text alone needs none? */
static bool is_padding_mask(const pith_ragged *r, const pith_value *v) {
    while (pith_match_maker(v, "Cast")) v = v->producer->inputs[0];
    pith_node *count = pith_match_maker(v, "ReduceSum");
    if (count && v->type.rank == 1) return is_padding_mask(r, count->inputs[0]);
    if (v->kind != PITH_VALUE_INPUT || v->type.rank != 2) return false;
    return r->values[v->id] && r->values[v->id]->kind == PITH_VALUE_NODE; /* the ones made for it */
}

static bool ragged_rules_attention(pith_ragged *r, const pith_node *node) {
    enum { Q, K, V, BIAS, KEY_MASK, OFFSETS, INPUTS };
    pith_value *inputs[INPUTS] = { NULL };
    for (int i = Q; i <= V; i++) {
        const pith_value *v = node->inputs[i];
        pith_ragged_form form = r->forms[v->id];
        inputs[i] = pith_ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || !form.batch)
            return ragged_rules_fail(r, "queries or keys are not by token");
    }
    const pith_value *bias = pith_match_input(node, BIAS), *mask = pith_match_input(node, KEY_MASK);
    if (bias && !(inputs[BIAS] = pith_ragged_pair(r, bias, 0))) return false;
    if (mask && !is_padding_mask(r, mask)) return ragged_rules_fail(r, "its key mask is not the padding mask");
    inputs[OFFSETS] = r->offsets;
    pith_node *clone = pith_ragged_clone(r, node, inputs, INPUTS);
    return clone && stored(r, pith_node_set_int(clone, "head_major", 0)) &&
           pith_ragged_set(r, node->outputs[0], clone->outputs[0]);
}

/* The tables have a row a token, or a row a position, looked up by token. */
static bool rotary(pith_ragged *r, const pith_node *node) {
    pith_value *inputs[3];
    for (int i = 0; i < 3; i++) {
        const pith_value *v = node->inputs[i];
        pith_ragged_form form = r->forms[v->id];
        inputs[i] = pith_ragged_operand(r, v, &form, v->type.rank);
        if (!inputs[i]) return false;
        if (form.kind != PITH_RAGGED_TOKEN || form.sequence == v->type.rank - 1)
            return ragged_rules_fail(r, "it is not by token");
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, 3);
    return clone && stored(r, pith_node_set_int(clone, "ragged", 1)) &&
           pith_ragged_set(r, node->outputs[0], clone->outputs[0]);
}

/* ---- moving elements ---- */

/* Reshape to [as before, rest…]. */
static bool reshape_rest(pith_ragged *r, const pith_value *out, pith_value *x, const pith_ragged_form *form) {
    int64_t shape[PITH_MAX_RANK + 1] = { 0 };
    int count;
    if (!rest_dims(form, &out->type, shape + 1, &count)) return ragged_rules_fail(r, "a size is not a number");
    pith_value *inputs[] = { x, pith_ragged_ints(r, shape, count + 1) };
    pith_node *node = inputs[1] ? pith_ragged_emit(r, "", "Reshape", inputs, 2) : NULL;
    return node && pith_ragged_set(r, out, node->outputs[0]);
}

/* Rest axes keep their elements' order, batch and sequence stay whole. */
static bool keeps_order(const pith_node *node, const pith_ragged_form *in, const pith_ragged_form *out) {
    const pith_value *x = node->inputs[0], *y = node->outputs[0];
    pith_view view;
    pith_view_init(&view, &x->type);
    if (!pith_view_apply(&view, node, y)) return false;
    const pith_view_atom *last = NULL;
    for (int i = 0; i < view.count; i++) {
        const pith_view_atom *a = &view.atoms[i];
        bool batch = in->batch && a->axis == 0, sequence = a->axis == in->sequence;
        if (batch != (out->batch && a->of == 0) || sequence != (a->of == out->sequence)) return false;
        if (batch || sequence) continue;
        if (a->axis < 0 || (last && (a->axis < last->axis || (a->axis == last->axis && a->stride > last->stride))))
            return false;
        last = a;
    }
    return true;
}

static bool ragged_rules_reshape(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    pith_ragged_form in = r->forms[x->id], form = pith_ragged_form_of(r, &out->type);
    pith_value *value = pith_ragged_operand(r, x, &in, x->type.rank);
    if (!value) return false;
    if (form.kind != in.kind || (in.kind != PITH_RAGGED_TOKEN && in.kind != PITH_RAGGED_TEXT) ||
        form.batch != in.batch || !keeps_order(node, &in, &form))
        return ragged_rules_fail(r, "it mixes batch or sequence with other axes");
    return reshape_rest(r, out, value, &form);
}

static bool ragged_rules_transpose(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    pith_ragged_form in = r->forms[x->id], form = pith_ragged_form_of(r, &out->type);
    pith_value *value = pith_ragged_operand(r, x, &in, x->type.rank);
    size_t count;
    const int64_t *given = pith_node_ints(node, "perm", &count);
    if (!value) return false;
    if (form.kind != in.kind || in.kind != PITH_RAGGED_TOKEN || form.batch != in.batch)
        return ragged_rules_fail(r, "it moves the batch");
    int64_t perm[PITH_MAX_RANK] = { 0 };
    int rank = 1;
    bool identity = true;
    for (int axis = 0; axis < out->type.rank; axis++) {
        int from = (int)(given ? given[axis] : out->type.rank - 1 - axis);
        if (axis == form.sequence || (axis == 0 && form.batch)) continue;
        perm[rank] = moved_axis(&in, from);
        identity = identity && perm[rank] == rank;
        rank++;
    }
    if (identity) return pith_ragged_set(r, out, value);
    pith_node *made = pith_ragged_emit(r, "", "Transpose", &value, 1);
    return made && stored(r, pith_node_set_ints(made, "perm", perm, (size_t)rank)) &&
           pith_ragged_set(r, out, made->outputs[0]);
}

/* value repeated to [as many as front has, want…]. */
static bool repeat(pith_ragged *r, const pith_value *out, pith_value *value, pith_value *front, const int64_t *want,
                   int want_count) {
    pith_node *shape = pith_ragged_emit(r, "", "Shape", &front, 1);
    if (!shape || !stored(r, pith_node_set_int(shape, "start", 0)) || !stored(r, pith_node_set_int(shape, "end", 1)))
        return false;
    pith_value *parts[] = { shape->outputs[0], pith_ragged_ints(r, want, want_count) };
    pith_node *concat = parts[1] ? pith_ragged_emit(r, "", "Concat", parts, 2) : NULL;
    if (!concat || !stored(r, pith_node_set_int(concat, "axis", 0))) return false;
    pith_value *inputs[] = { value, concat->outputs[0] };
    pith_node *made = pith_ragged_emit(r, "", "Expand", inputs, 2);
    return made && pith_ragged_set(r, out, made->outputs[0]);
}

/* The same number for each token. */
static bool ragged_rules_fill(pith_ragged *r, const pith_node *node) {
    static const float zero = 0.0f;
    static const pith_tensor zeros = { .data = (void *)(uintptr_t)&zero, .bytes = sizeof zero, .dtype = PITH_F32 };
    const pith_value *out = node->outputs[0];
    const pith_tensor *given = pith_node_tensor(node, "value");
    pith_ragged_form form = pith_ragged_form_of(r, &out->type);
    int64_t want[PITH_MAX_RANK];
    int count;
    if (form.kind != PITH_RAGGED_TOKEN) return ragged_rules_fail(r, "its shape is not that of tokens");
    if (!rest_dims(&form, &out->type, want, &count)) return ragged_rules_fail(r, "a size is not a number");
    pith_value *value = pith_graph_add_const(r->to, PITH_STR(""), given ? given : &zeros);
    if (!value) return stored(r, PITH_ERR_MEMORY);
    return repeat(r, out, value, r->ids, want, count);
}

static bool ragged_rules_expand(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    pith_ragged_form form = pith_ragged_form_of(r, &out->type);
    pith_value *value = pith_ragged_operand(r, x, &form, out->type.rank);
    int64_t have[PITH_MAX_RANK], want[PITH_MAX_RANK];
    int have_count, want_count;
    if (!value) return false;
    pith_ragged_kind kind = kind_of(r, x);
    if ((kind != PITH_RAGGED_TOKEN && kind != PITH_RAGGED_TEXT && kind != PITH_RAGGED_CONST) ||
        (kind == PITH_RAGGED_CONST && form.kind != PITH_RAGGED_TOKEN))
        return ragged_rules_fail(r, "it repeats along the batch");
    pith_ragged_form in =
        kind == PITH_RAGGED_CONST ? (pith_ragged_form){ .kind = kind, .sequence = -1 } : r->forms[x->id];
    if (!rest_dims(&in, &x->type, have, &have_count) || !rest_dims(&form, &out->type, want, &want_count)) {
        return ragged_rules_fail(r, "a size is not a number");
    }
    bool same = kind == form.kind;
    for (int i = 0; i < want_count && same; i++) {
        int at = i - (want_count - have_count);
        same = (at < 0 ? 1 : have[at]) == want[i];
    }
    if (same) return pith_ragged_set(r, out, value);
    return repeat(r, out, value, kind == PITH_RAGGED_TEXT ? value : r->ids, want, want_count);
}

/* The rest axis that an attribute names, counted anew; -1 with r->why if it is batch or sequence. */
int64_t pith_ragged_rest_axis(pith_ragged *r, const pith_ragged_form *form, int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || axis == form->sequence || (axis == 0 && form->batch)) {
        r->why = "it works along the sequence or the batch";
        return -1;
    }
    return moved_axis(form, (int)axis);
}

static bool concat(pith_ragged *r, const pith_node *node) {
    const pith_value *out = node->outputs[0];
    pith_ragged_form form = pith_ragged_form_of(r, &out->type);
    pith_value *inputs[16];
    int64_t axis = pith_ragged_rest_axis(r, &form, pith_node_int(node, "axis", 0), out->type.rank);
    if (axis < 0) return false;
    if (node->input_count > 16) return ragged_rules_fail(r, "it has too many inputs");
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = pith_ragged_operand(r, node->inputs[i], &form, out->type.rank);
        if (!inputs[i]) return false;
        if (kind_of(r, node->inputs[i]) != form.kind) return ragged_rules_fail(r, "it joins values of different kinds");
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, node->input_count);
    return clone && stored(r, pith_node_set_int(clone, "axis", axis)) && pith_ragged_set(r, out, clone->outputs[0]);
}

static bool ragged_rules_split(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0];
    pith_ragged_form form = r->forms[x->id];
    pith_value *inputs[2] = { pith_ragged_operand(r, x, &form, x->type.rank) };
    int64_t axis = pith_ragged_rest_axis(r, &form, pith_node_int(node, "axis", 0), x->type.rank);
    if (!inputs[0] || axis < 0) return false;
    if (pith_match_input(node, 1) && !(inputs[1] = pith_ragged_const(r, node->inputs[1]))) return false;
    pith_node *clone = pith_ragged_clone(r, node, inputs, inputs[1] ? 2 : 1);
    if (!clone || !stored(r, pith_node_set_int(clone, "axis", axis))) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && !pith_ragged_set(r, node->outputs[i], clone->outputs[i])) return false;
    }
    return true;
}

/* ---- along the sequence ---- */

/* pith.Segment over the tokens of x; the sequence axis of out is gone, or 1 if kept. */
static bool ragged_rules_segment(pith_ragged *r, const pith_value *x, const pith_value *out, const char *how,
                                 bool kept) {
    pith_ragged_form form = r->forms[x->id];
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch) return ragged_rules_fail(r, "it is not by text");
    pith_node *node = pith_ragged_emit(r, "pith", "Segment", inputs, 2);
    if (!node || !stored(r, pith_node_set_str(node, "how", pith_str_of(how)))) return false;
    if (!kept) return pith_ragged_set(r, out, node->outputs[0]);
    pith_ragged_form text = pith_ragged_form_of(r, &out->type);
    return reshape_rest(r, out, node->outputs[0], &text);
}

static bool ragged_rules_reduce(pith_ragged *r, const pith_node *node) {
    static const struct {
        const char *op_type, *how;
    } names[] = {
        { "ReduceL1", "l1" },   { "ReduceMax", "max" }, { "ReduceMean", "mean" },
        { "ReduceMin", "min" }, { "ReduceSum", "sum" }, { "ReduceSumSquare", "sumsq" },
    };
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    pith_ragged_form form = r->forms[x->id];
    int64_t axes[PITH_MAX_RANK], count = 0;
    if (!pith_match_input(node, 1) || !pith_match_ints(node->inputs[1], axes, PITH_MAX_RANK, &count) || count == 0) {
        return ragged_rules_fail(r, "it reduces the batch");
    }
    int64_t first = axes[0] < 0 ? axes[0] + x->type.rank : axes[0];
    if (count == 1 && form.kind == PITH_RAGGED_TOKEN && first == form.sequence) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (pith_match_is(node, names[i].op_type)) {
                return ragged_rules_segment(r, x, out, names[i].how, pith_node_int(node, "keepdims", 1) != 0);
            }
        }
        return ragged_rules_fail(r, "it reduces the sequence in a way that has no segment form");
    }
    for (int64_t i = 0; i < count; i++) {
        axes[i] = pith_ragged_rest_axis(r, &form, axes[i], x->type.rank);
        if (axes[i] < 0) return false;
    }
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), pith_ragged_ints(r, axes, (int)count) };
    pith_node *clone = inputs[0] && inputs[1] ? pith_ragged_clone(r, node, inputs, 2) : NULL;
    return clone && pith_ragged_set(r, out, clone->outputs[0]);
}

static bool cumsum(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0];
    pith_ragged_form form = r->forms[x->id];
    int64_t axis, count;
    if (!pith_match_ints(node->inputs[1], &axis, 1, &count)) return ragged_rules_fail(r, "its axis is computed");
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (axis < 0) axis += x->type.rank;
    if (form.kind != PITH_RAGGED_TOKEN || axis != form.sequence ||
        (x->type.dtype != PITH_I64 && x->type.dtype != PITH_I32)) {
        return ragged_rules_fail(r, "it is no running sum of integers along the sequence");
    }
    pith_node *made = pith_ragged_emit(r, "pith", "SegmentScan", inputs, 2);
    return made && stored(r, pith_node_set_int(made, "exclusive", pith_node_int(node, "exclusive", 0))) &&
           stored(r, pith_node_set_int(made, "reverse", pith_node_int(node, "reverse", 0))) &&
           pith_ragged_set(r, node->outputs[0], made->outputs[0]);
}

/* Where the largest element of a text lies: the end-of-text token, as CLIP finds it. */
static bool arg_max(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0];
    pith_ragged_form form = r->forms[x->id];
    int64_t axis = pith_node_int(node, "axis", 0);
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (axis < 0) axis += x->type.rank;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch || x->type.rank != 2 || axis != form.sequence ||
        pith_node_int(node, "keepdims", 1) || pith_node_int(node, "select_last_index", 0) ||
        (x->type.dtype != PITH_I64 && x->type.dtype != PITH_I32))
        return ragged_rules_fail(r, "it does not find one token of each text");
    pith_node *made = pith_ragged_emit(r, "pith", "SegmentTop", inputs, 2);
    return made && pith_ragged_set(r, node->outputs[0], made->outputs[0]);
}

/* constant[…, 0:sequence, …] holds a row for each position: looked up by token. */
static bool slice_positions(pith_ragged *r, const pith_node *node, int axis) {
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    pith_value *inputs[] = { pith_ragged_const(r, x), r->positions };
    if (!inputs[0]) return false;
    if (axis > 0) {
        int64_t perm[PITH_MAX_RANK] = { axis };
        for (int i = 0, at = 1; i < x->type.rank; i++) {
            if (i != axis) perm[at++] = i;
        }
        pith_node *front = pith_ragged_emit(r, "", "Transpose", inputs, 1);
        if (!front || !stored(r, pith_node_set_ints(front, "perm", perm, (size_t)x->type.rank))) return false;
        inputs[0] = front->outputs[0];
    }
    pith_node *made = pith_ragged_emit(r, "", "Gather", inputs, 2);
    return made && stored(r, pith_node_set_int(made, "axis", 0)) && pith_ragged_set(r, out, made->outputs[0]);
}

static bool ragged_rules_slice(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *out = node->outputs[0];
    int64_t starts[PITH_MAX_RANK], axes[PITH_MAX_RANK], steps[PITH_MAX_RANK], n, m;
    if (!pith_match_ints(node->inputs[1], starts, PITH_MAX_RANK, &n))
        return ragged_rules_fail(r, "its start is computed");
    for (int64_t i = 0; i < n; i++) axes[i] = i, steps[i] = 1;
    if (pith_match_input(node, 3) && (!pith_match_ints(node->inputs[3], axes, PITH_MAX_RANK, &m) || m != n))
        return ragged_rules_fail(r, "its axes are computed");
    if (pith_match_input(node, 4) && (!pith_match_ints(node->inputs[4], steps, PITH_MAX_RANK, &m) || m != n))
        return ragged_rules_fail(r, "its steps are computed");
    pith_ragged_form form = r->forms[x->id], result = pith_ragged_form_of(r, &out->type);
    if (n < 1) return ragged_rules_fail(r, "it has no axes");
    int64_t axis = axes[0] < 0 ? axes[0] + x->type.rank : axes[0];
    if (kind_of(r, x) == PITH_RAGGED_CONST && result.kind == PITH_RAGGED_TOKEN && !result.batch) {
        bool plain = n == 1 && axis == result.sequence && starts[0] == 0 && steps[0] == 1;
        return plain ? slice_positions(r, node, (int)axis) : ragged_rules_fail(r, "it takes positions in its own way");
    }
    pith_value *value = pith_ragged_operand(r, x, &form, x->type.rank);
    if (!value) return false;
    if (n == 1 && form.kind == PITH_RAGGED_TOKEN && axis == form.sequence) {
        bool first = starts[0] == 0 && steps[0] == 1 && out->type.dims[axis] == 1;
        return first ? ragged_rules_segment(r, x, out, "first", true)
                     : ragged_rules_fail(r, "it takes a part of the sequence");
    }
    for (int64_t i = 0; i < n; i++) {
        axes[i] = pith_ragged_rest_axis(r, &form, axes[i], x->type.rank);
        if (axes[i] < 0) return false;
    }
    pith_value *inputs[] = { value, pith_ragged_const(r, node->inputs[1]), pith_ragged_const(r, node->inputs[2]),
                             pith_ragged_ints(r, axes, (int)n), pith_ragged_ints(r, steps, (int)n) };
    for (int i = 0; i < 5; i++) {
        if (!inputs[i]) return false;
    }
    pith_node *clone = pith_ragged_clone(r, node, inputs, 5);
    return clone && pith_ragged_set(r, out, clone->outputs[0]);
}

static bool range(pith_ragged *r, const pith_node *node) {
    const pith_value *out = node->outputs[0];
    pith_dim limit;
    if (!pith_match_scalar_near(node->inputs[0], 0.0, 0.0) || !pith_match_scalar_near(node->inputs[2], 1.0, 0.0) ||
        !pith_type_elem(&node->inputs[1]->type, 0, &limit) || !pith_dim_equal(limit, r->sequence) ||
        out->type.dtype != PITH_I64) {
        return ragged_rules_fail(r, "it is not the range of positions");
    }
    if (pith_ragged_form_of(r, &out->type).kind == PITH_RAGGED_TOKEN) return pith_ragged_set(r, out, r->positions);
    return ragged_rules_fail(r, "its length is not known to be the sequence");
}

/* ---- one token of each text ---- */

/* v without axes of size 1. */
static const pith_value *squeezed(const pith_value *v) {
    while (pith_match_maker(v, "Unsqueeze") || pith_match_maker(v, "Squeeze")) v = v->producer->inputs[0];
    return v;
}

/* 0, 1, … batch - 1. */
static bool is_batch_range(const pith_ragged *r, const pith_value *v) {
    pith_node *node = pith_match_maker(squeezed(v), "Range");
    pith_dim limit;
    return node && pith_match_scalar_near(node->inputs[0], 0.0, 0.0) &&
           pith_match_scalar_near(node->inputs[2], 1.0, 0.0) && pith_type_elem(&node->inputs[1]->type, 0, &limit) &&
           pith_dim_equal(limit, r->batch);
}

/* batch range * sequence: the row at which each text begins in [batch * sequence, …]. */
static bool is_padded_start(const pith_ragged *r, const pith_value *v) {
    pith_node *mul = pith_match_maker(v, "Mul");
    pith_dim stride;
    for (int i = 0; mul && i < 2; i++) {
        if (is_batch_range(r, mul->inputs[i]) && pith_type_count(&mul->inputs[1 - i]->type) == 1 &&
            pith_type_elem(&mul->inputs[1 - i]->type, 0, &stride) && pith_dim_equal(stride, r->sequence))
            return true;
    }
    return false;
}

/* Row index[b] of text b of x [batch, sequence, …]. */
static bool take_token(pith_ragged *r, const pith_value *x, const pith_value *index, const pith_value *out) {
    static const int64_t first = 0, last = -1;
    pith_ragged_form form = r->forms[x->id], text = { .kind = PITH_RAGGED_TEXT, .sequence = -1, .batch = true };
    pith_value *rows = pith_ragged_operand(r, x, &form, x->type.rank), *at = pith_ragged_operand(r, index, &text, 1);
    if (!rows || !at) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch || form.sequence != 1 || index->type.rank != 1 ||
        index->type.dtype != PITH_I64)
        return ragged_rules_fail(r, "it does not take one token of each text");
    pith_value *slice_inputs[] = { r->offsets, pith_ragged_ints(r, &first, 1), pith_ragged_ints(r, &last, 1) };
    pith_node *starts = slice_inputs[1] && slice_inputs[2] ? pith_ragged_emit(r, "", "Slice", slice_inputs, 3) : NULL;
    pith_node *sum = starts ? pith_ragged_emit(r, "", "Add", (pith_value *[]){ starts->outputs[0], at }, 2) : NULL;
    pith_node *taken = sum ? pith_ragged_emit(r, "", "Gather", (pith_value *[]){ rows, sum->outputs[0] }, 2) : NULL;
    return taken && pith_ragged_set(r, out, taken->outputs[0]);
}

/* x[b, index[b]], the indices side by side. */
static bool gather_nd(pith_ragged *r, const pith_node *node) {
    pith_node *concat = pith_match_maker(node->inputs[1], "Concat");
    if (pith_node_int(node, "batch_dims", 0) == 0 && concat && concat->input_count == 2 &&
        node->inputs[1]->type.rank == 2 && is_batch_range(r, concat->inputs[0])) {
        return take_token(r, node->inputs[0], squeezed(concat->inputs[1]), node->outputs[0]);
    }
    return ragged_rules_fail(r, "it does not take one token of each text");
}

/* The same from [batch * sequence, …] with the rows counted through. Not that: false, nothing said. */
static bool is_flat_take(const pith_ragged *r, const pith_node *node, const pith_value **x, const pith_value **index) {
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
        if (is_padded_start(r, add->inputs[i])) return true;
    }
    return false;
}

static bool ragged_rules_gather(pith_ragged *r, const pith_node *node) {
    const pith_value *x = node->inputs[0], *ids = node->inputs[1], *out = node->outputs[0];
    pith_ragged_form form = r->forms[x->id];
    int64_t axis = pith_node_int(node, "axis", 0), index, count;
    const pith_value *rows_of, *row;
    if (axis < 0) axis += x->type.rank;
    if (axis == 0 && is_flat_take(r, node, &rows_of, &row)) return take_token(r, rows_of, row, out);
    if (kind_of(r, x) == PITH_RAGGED_CONST) {
        pith_ragged_form own = r->forms[ids->id];
        pith_value *inputs[] = { pith_ragged_const(r, x), pith_ragged_operand(r, ids, &own, ids->type.rank) };
        if (!inputs[0] || !inputs[1]) return false;
        if (axis != 0) return ragged_rules_fail(r, "it looks up along an inner axis");
        pith_node *clone = pith_ragged_clone(r, node, inputs, 2);
        return clone && pith_ragged_set(r, out, clone->outputs[0]);
    }
    if (form.kind == PITH_RAGGED_TOKEN && axis == form.sequence) {
        if (!pith_match_ints(ids, &index, 1, &count) || count != 1 || ids->type.rank > 1 ||
            (index != 0 && index != -1)) {
            return ragged_rules_fail(r, "it takes tokens other than the first or the last");
        }
        return ragged_rules_segment(r, x, out, index ? "last" : "first", ids->type.rank == 1);
    }
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), pith_ragged_const(r, ids) };
    if (!inputs[0] || !inputs[1]) return false;
    axis = pith_ragged_rest_axis(r, &form, axis, x->type.rank);
    if (axis < 0) return false;
    pith_node *clone = pith_ragged_clone(r, node, inputs, 2);
    return clone && stored(r, pith_node_set_int(clone, "axis", axis)) && pith_ragged_set(r, out, clone->outputs[0]);
}

/* ---- the table ---- */

pith_ragged_rule *pith_ragged_find(const pith_node *node) {
    static const struct {
        const char *domain, *op_type;
        pith_ragged_rule *rule;
    } rules[] = {
        { "", "ArgMax", arg_max },
        { "", "Cast", map },
        { "", "Concat", concat },
        { "", "ConstantOfShape", ragged_rules_fill },
        { "", "CumSum", cumsum },
        { "", "DequantizeLinear", pith_ragged_linear_quantize },
        { "", "DynamicQuantizeLinear", pith_ragged_dynamic_quantize },
        { "", "Expand", ragged_rules_expand },
        { "", "Flatten", ragged_rules_reshape },
        { "", "Gather", ragged_rules_gather },
        { "", "GatherND", gather_nd },
        { "", "Gemm", gemm },
        { "", "LayerNormalization", rows_last_axis },
        { "", "LogSoftmax", rows_last_axis },
        { "", "MatMul", ragged_rules_product },
        { "", "MatMulInteger", pith_ragged_integer_product },
        { "", "QuantizeLinear", pith_ragged_linear_quantize },
        { "", "RMSNormalization", rows_last_axis },
        { "", "Range", range },
        { "", "ReduceL1", ragged_rules_reduce },
        { "", "ReduceL2", ragged_rules_reduce },
        { "", "ReduceMax", ragged_rules_reduce },
        { "", "ReduceMean", ragged_rules_reduce },
        { "", "ReduceMin", ragged_rules_reduce },
        { "", "ReduceSum", ragged_rules_reduce },
        { "", "ReduceSumSquare", ragged_rules_reduce },
        { "", "Reshape", ragged_rules_reshape },
        { "", "Slice", ragged_rules_slice },
        { "", "Softmax", rows_last_axis },
        { "", "Split", ragged_rules_split },
        { "", "Squeeze", ragged_rules_reshape },
        { "", "Transpose", ragged_rules_transpose },
        { "", "Unsqueeze", ragged_rules_reshape },
        { "", "Where", map },
        { "com.microsoft", "DequantizeLinear", pith_ragged_linear_quantize },
        { "com.microsoft", "DynamicQuantizeMatMul", pith_ragged_dynamic_product },
        { "com.microsoft", "MatMulIntegerToFloat", pith_ragged_integer_product },
        { "com.microsoft", "MatMulNBits", rows },
        { "com.microsoft", "QuantizeLinear", pith_ragged_linear_quantize },
        { "pith", "Attention", ragged_rules_attention },
        { "pith", "EmbedNorm", embed_norm },
        { "pith", "Gated", rows },
        { "pith", "Linear", rows },
        { "pith", "Rotary", rotary },
        { "pith", "SkipNorm", skip_norm },
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (pith_str_is(node->domain, rules[i].domain) && pith_str_is(node->op_type, rules[i].op_type))
            return rules[i].rule;
    }
    return node->op->flags & PITH_OP_ELEMENTWISE && node->output_count == 1 ? map : NULL;
}
