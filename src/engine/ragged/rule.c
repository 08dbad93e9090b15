/* rule.c - finds the rule of an operator, and what rules share. */
#include "engine/ragged/rule.h"

#include <stdio.h>

#include "base/error.h"
#include "base/str.h"

bool pith_ragged_refuse(pith_ragged *r, const char *why) {
    r->why = why;
    return false;
}

pith_ragged_kind pith_ragged_kind_of(const pith_ragged *r, const pith_value *v) {
    return v->kind == PITH_VALUE_CONST ? PITH_RAGGED_CONST : r->forms[v->id].kind;
}

/* An attribute could not be stored. */
bool pith_ragged_stored(pith_ragged *r, pith_status status) {
    if (status) r->status = pith_fail_memory(r->err, 0);
    return !status;
}

/* Where a rest axis of a TOKEN value lies in the new graph. */
int64_t pith_ragged_moved_axis(const pith_ragged_form *form, int axis) {
    return form->kind == PITH_RAGGED_TOKEN ? axis + (axis < form->sequence) - (form->batch ? 1 : 0) : axis;
}

/* The sizes of the rest axes; false if one is not a number. */
bool pith_ragged_rest_dims(const pith_ragged_form *form, const pith_type *type, int64_t *dims, int *count) {
    *count = 0;
    for (int axis = 0; axis < type->rank; axis++) {
        if (axis == form->sequence || (axis == 0 && form->batch)) continue;
        if (!pith_dim_known(type->dims[axis])) return false;
        dims[(*count)++] = type->dims[axis];
    }
    return true;
}

/* Reshape to [as before, rest…]. */
bool pith_ragged_reshape_rest(pith_ragged *r, const pith_value *out, pith_value *x, const pith_ragged_form *form) {
    int64_t shape[PITH_MAX_RANK + 1] = { 0 };
    int count;
    if (!pith_ragged_rest_dims(form, &out->type, shape + 1, &count))
        return pith_ragged_refuse(r, "a size is not a number");
    pith_value *inputs[] = { x, pith_ragged_ints(r, shape, count + 1) };
    pith_node *node = inputs[1] ? pith_ragged_emit(r, "", "Reshape", inputs, 2) : NULL;
    return node && pith_ragged_set(r, out, node->outputs[0]);
}

/* pith.Segment over the tokens of x; the sequence axis of out is gone, or 1 if kept. */
bool pith_ragged_segment(pith_ragged *r, const pith_value *x, const pith_value *out, const char *how, bool kept) {
    pith_ragged_form form = r->forms[x->id];
    pith_value *inputs[] = { pith_ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch)
        return pith_ragged_refuse(r, "it does not have one row per text");
    pith_node *node = pith_ragged_emit(r, "pith", "Segment", inputs, 2);
    if (!node || !pith_ragged_stored(r, pith_node_set_str(node, "how", pith_str_of(how)))) return false;
    if (!kept) return pith_ragged_set(r, out, node->outputs[0]);
    pith_ragged_form text = pith_ragged_form_of(r, &out->type);
    return pith_ragged_reshape_rest(r, out, node->outputs[0], &text);
}

int64_t pith_ragged_rest_axis(pith_ragged *r, const pith_ragged_form *form, int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || axis == form->sequence || (axis == 0 && form->batch)) {
        r->why = "it works along the sequence or the batch";
        return -1;
    }
    return pith_ragged_moved_axis(form, (int)axis);
}

/* Does the list hold the node's operator? */
static bool rule_names(const char *list, const pith_node *node) {
    while (*list) {
        size_t size = strcspn(list, " ");
        pith_str name = { list, size }, domain = PITH_STR("");
        for (size_t i = 0; i + 1 < size; i++)
            if (list[i] == ':' && list[i + 1] == ':')
                domain = (pith_str){ list, i }, name = (pith_str){ list + i + 2, size - i - 2 };
        if (pith_str_eq(domain, node->domain) && pith_str_eq(name, node->op_type)) return true;
        list += size;
        list += strspn(list, " ");
    }
    return false;
}

const pith_ragged_rule *pith_ragged_find(const pith_node *node) {
    bool elementwise = node->op->flags & PITH_OP_ELEMENTWISE && node->output_count == 1;
    const pith_ragged_rule *other = NULL;
    for (size_t i = 0; i < pith_ragged_rule_table_count; i++) {
        const pith_ragged_rule *rule = pith_ragged_rule_table[i];
        if (rule_names(rule->operators, node)) return rule;
        if (rule->elementwise && elementwise) other = rule;
    }
    return other;
}
