/* rule_quantize.c - quantised operators on packed tokens.
 *
 * A scale that DynamicQuantizeLinear takes from its whole input is, for a text alone, a scale of
 * that text. So a value that has neither batch nor sequence in the padded graph becomes a row per
 * token, and all rows of a text are equal (kind SHARED). Its products with the weights' scales stay
 * so. Together with tokens it broadcasts over their other axes, and an integer matmul takes one
 * zero point per row. Sums, rounding and scales are those of the text alone, and so are the
 * bits. */
#include "engine/opt/match_nodes.h"
#include "engine/ragged/rule.h"

static bool rule_quantize_is_constant(const pith__value *v) { return v->kind == PITH_VALUE_CONST; }

static bool rule_quantize_is_shared(const pith__ragged *r, const pith__value *v) {
    return v && !rule_quantize_is_constant(v) && r->forms[v->id].kind == PITH_RAGGED_SHARED;
}

bool pith__ragged_is_shared(const pith__ragged *r, const pith__node *node) {
    for (int i = 0; i < node->input_count; i++)
        if (rule_quantize_is_shared(r, node->inputs[i])) return true;
    return false;
}

static bool rule_quantize_set_shared(pith__ragged *r, const pith__value *v, pith__value *value,
                                     pith__ragged_kind of) {
    if (!pith__ragged_set(r, v, value)) return false;
    r->forms[v->id] = (pith__ragged_form){ .kind = PITH_RAGGED_SHARED, .sequence = -1, .of = of };
    return true;
}

/* [rows, own axes] to [rows, 1…, own axes]: `rest` axes after the rows. */
static pith__value *rule_quantize_widen(pith__ragged *r, const pith__value *v, int rest) {
    int64_t axes[PITH_MAX_RANK];
    int missing = rest - v->type.rank;
    pith__value *x = r->values[v->id];
    if (missing < 0) {
        r->why = "a scale has more axes than its values";
        return NULL;
    }
    for (int i = 0; i < missing; i++) axes[i] = 1 + i;
    if (!missing) return x;
    pith__value *inputs[] = { x, pith__ragged_ints(r, axes, missing) };
    pith__node *node = inputs[1] ? pith__ragged_emit(r, "", "Unsqueeze", inputs, 2) : NULL;
    return node ? node->outputs[0] : NULL;
}

/* A row per token (or per text) broadcasts only if its own axes stand behind the sequence (or the
 * batch) in the result. Axes of size 1 are put in between. */
pith__value *pith__ragged_shared_operand(pith__ragged *r, const pith__value *v,
                                         const pith__ragged_form *form, int rank) {
    /* Its axes stand after the sequence (or the batch) in the result. */
    int lead = form->kind == PITH_RAGGED_TOKEN ? form->sequence + 1 : 1;
    if (r->forms[v->id].of != form->kind || v->type.rank > rank - lead) {
        r->why = "a scale per text is applied to values that are not tokens";
        return NULL;
    }
    return rule_quantize_widen(r, v, rank - 1 - (form->kind == PITH_RAGGED_TOKEN && form->batch));
}

/* The product of an activation scale with the weights' scales, for example. All SHARED inputs must
 * be of the same kind of rows; constants broadcast to them. The result is SHARED as well. */
bool pith__ragged_map_shared(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->outputs[0];
    pith__ragged_kind of = PITH_RAGGED_NONE;
    pith__value *inputs[16];
    if (node->input_count > 16 || out->type.rank < 0)
        return pith__ragged_refuse(r, "it has too many inputs");
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        inputs[i] = NULL;
        if (!v) continue;
        if (!rule_quantize_is_shared(r, v)) {
            inputs[i] = pith__ragged_const(r, v);
        } else if (of != PITH_RAGGED_NONE && of != r->forms[v->id].of) {
            return pith__ragged_refuse(r, "it combines scales per text with scales per token");
        } else {
            of = r->forms[v->id].of;
            inputs[i] = rule_quantize_widen(r, v, out->type.rank);
        }
        if (!inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && rule_quantize_set_shared(r, out, clone->outputs[0], of);
}

/* Values, scale and zero point of x, each text or row by itself. */
static pith__node *rule_quantize_by_text(pith__ragged *r, const pith__value *x) {
    pith__ragged_form form = r->forms[x->id];
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return NULL;
    bool tokens = form.kind == PITH_RAGGED_TOKEN && form.batch;
    if (!tokens && form.kind != PITH_RAGGED_TEXT) {
        r->why = "it quantises values that have neither one row per token nor one row per text";
        return NULL;
    }
    pith__node *node = pith__graph_add_node(r->to, NULL, "pith", "SegmentQuantize", inputs,
                                            tokens ? 2 : 1, NULL, 3);
    r->status = node ? pith__op_bind_node(node, r->err) : pith__fail_memory(r->err, sizeof *node);
    return r->status ? NULL : node;
}

static bool rule_quantize_dynamic(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0];
    pith__node *made = rule_quantize_by_text(r, x);
    if (!made) return false;
    pith__ragged_kind of = r->forms[x->id].kind;
    for (int i = 0; i < node->output_count; i++) {
        const pith__value *out = node->outputs[i];
        if (!out) continue;
        bool set = i ? rule_quantize_set_shared(r, out, made->outputs[i], of)
                     : pith__ragged_set(r, out, made->outputs[0]);
        if (!set) return false;
    }
    return true;
}

/* True if the node multiplies rows [rows, k] by one constant matrix: the product of a row then does
 * not depend on which other rows are there. */
static bool rule_quantize_is_row_product(pith__ragged *r, const pith__node *node) {
    const pith__value *a = node->inputs[0], *b = node->inputs[1];
    pith__ragged_form form = r->forms[a->id];
    if (!rule_quantize_is_constant(b) || b->type.rank != 2)
        return pith__ragged_refuse(r, "it multiplies by more than one matrix");
    int rest = a->type.rank - 1 - (form.kind == PITH_RAGGED_TOKEN && form.batch);
    bool rows = form.kind == PITH_RAGGED_TOKEN ? form.sequence < a->type.rank - 1
                                               : form.kind == PITH_RAGGED_TEXT;
    return (rows && rest == 1) ||
           pith__ragged_refuse(r, "its left side does not have one row per token");
}

/* A scale or zero point of the left side: one number, or one a row. */
static pith__value *rule_quantize_left_scale(pith__ragged *r, const pith__value *v,
                                             const pith__value *a) {
    if (!rule_quantize_is_shared(r, v)) {
        if (pith__type_count(&v->type) == 1) return pith__ragged_const(r, v);
        r->why = "its left side is quantised per row";
        return NULL;
    }
    if (v->type.rank > 0 || r->forms[v->id].of != r->forms[a->id].kind) {
        r->why = "its left side is not quantised per text";
        return NULL;
    }
    return r->values[v->id];
}

static bool rule_quantize_integer_matmul(pith__ragged *r, const pith__node *node) {
    /* MatMulInteger: a, b, a_zero, b_zero. MatMulIntegerToFloat: a, b, a_scale, b_scale, a_zero,
     * b_zero, bias. */
    bool scaled = pith__str_is(node->op_type, "MatMulIntegerToFloat");
    const pith__value *a = node->inputs[0];
    pith__ragged_form form = r->forms[a->id];
    pith__value *inputs[8] = { pith__ragged_operand(r, a, &form, a->type.rank) };
    if (!inputs[0] || !rule_quantize_is_row_product(r, node)) return false;
    for (int i = 1; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        if (!v) continue;
        bool left = i == 2 || (scaled && i == 4);
        inputs[i] = left ? rule_quantize_left_scale(r, v, a) : pith__ragged_const(r, v);
        if (!inputs[i]) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, node->input_count);
    return clone && pith__ragged_set(r, node->outputs[0], clone->outputs[0]);
}

/* DynamicQuantizeMatMul (a, b, b_scale, b_zero, bias) in its two parts. */
static bool rule_quantize_dynamic_matmul(pith__ragged *r, const pith__node *node) {
    if (!rule_quantize_is_row_product(r, node)) return false;
    pith__node *quantized = rule_quantize_by_text(r, node->inputs[0]);
    pith__value *inputs[7] = { NULL };
    static const int place[] = { 0, 1, 3, 5, 6 };
    if (!quantized) return false;
    for (int i = 1; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        if (v && !(inputs[place[i]] = pith__ragged_const(r, v))) return false;
    }
    inputs[0] = quantized->outputs[0];
    inputs[2] = quantized->outputs[1];
    inputs[4] = quantized->outputs[2];
    pith__node *made =
        pith__ragged_emit(r, "com.microsoft", "MatMulIntegerToFloat", inputs, inputs[6] ? 7 : 6);
    return made && pith__ragged_set(r, node->outputs[0], made->outputs[0]);
}

/* QuantizeLinear and DequantizeLinear with constant scales. */
static bool rule_quantize_linear(pith__ragged *r, const pith__node *node) {
    const pith__value *x = node->inputs[0], *scale = node->inputs[1];
    pith__ragged_form form = r->forms[x->id];
    pith__value *inputs[3] = { pith__ragged_operand(r, x, &form, x->type.rank),
                               pith__ragged_const(r, scale) };
    if (!inputs[0] || !inputs[1]) return false;
    if (form.kind != PITH_RAGGED_TOKEN && form.kind != PITH_RAGGED_TEXT)
        return pith__ragged_refuse(
            r, "it quantises values that have neither one row per token nor one row per text");
    if (pith__match_input(node, 2) && !(inputs[2] = pith__ragged_const(r, node->inputs[2])))
        return false;
    if (pith__node_int(node, "block_size", 0))
        return pith__ragged_refuse(r, "it quantises in blocks");
    int64_t axis = 0;
    if (pith__type_count(&scale->type) != 1) {
        axis = pith__ragged_rest_axis(r, &form, pith__node_int(node, "axis", 1), x->type.rank);
        if (axis < 0) return false;
    }
    pith__node *clone = pith__ragged_clone(r, node, inputs, inputs[2] ? 3 : 2);
    if (!clone) return false;
    if (pith__node_set_int(clone, "axis", axis)) {
        r->status = pith__fail_memory(r->err, 0);
        return false;
    }
    return pith__ragged_set(r, node->outputs[0], clone->outputs[0]);
}

const pith__ragged_rule pith__ragged_rule_dynamic_quantize = { .operators = "DynamicQuantizeLinear",
                                                               .translate = rule_quantize_dynamic };
const pith__ragged_rule pith__ragged_rule_integer_matmul = {
    .operators = "MatMulInteger com.microsoft::MatMulIntegerToFloat",
    .translate = rule_quantize_integer_matmul
};
const pith__ragged_rule pith__ragged_rule_dynamic_matmul = {
    .operators = "com.microsoft::DynamicQuantizeMatMul", .translate = rule_quantize_dynamic_matmul
};
const pith__ragged_rule pith__ragged_rule_linear_quantize = {
    .operators = "DequantizeLinear QuantizeLinear com.microsoft::DequantizeLinear "
                 "com.microsoft::QuantizeLinear",
    .translate = rule_quantize_linear
};
