/* rule.c - finds the rule of an operator, and what rules share.
 *
 * A rule names its operators in one string of words. Rules say why they refuse (r->why), since that
 * is what `inspect` tells the user; a refusal is no failure, r->status is. */
#include "engine/ragged/rule.h"

#include <stdio.h>

#include "base/error.h"
#include "base/str.h"

bool pith__ragged_refuse(pith__ragged *r, const char *why) {
    r->why = why;
    return false;
}

pith__ragged_kind pith__ragged_kind_of(const pith__ragged *r, const pith__value *v) {
    return v->kind == PITH_VALUE_CONST ? PITH_RAGGED_CONST : r->forms[v->id].kind;
}

/* An attribute could not be stored. */
bool pith__ragged_stored(pith__ragged *r, pith_status status) {
    if (status) r->status = pith__fail_memory(r->err, 0);
    return !status;
}

/* Where a rest axis of a TOKEN value lies in the new graph. */
int64_t pith__ragged_moved_axis(const pith__ragged_form *form, int axis) {
    if (form->kind != PITH_RAGGED_TOKEN) return axis;
    return axis + (axis < form->sequence) - (form->batch ? 1 : 0);
}

/* The sizes of the rest axes; false if one is not a number. */
bool pith__ragged_rest_dims(const pith__ragged_form *form, const pith__type *type, int64_t *dims,
                            int *count) {
    *count = 0;
    for (int axis = 0; axis < type->rank; axis++) {
        if (axis == form->sequence || (axis == 0 && form->batch)) continue;
        if (!pith__dim_known(type->dims[axis])) return false;
        dims[(*count)++] = type->dims[axis];
    }
    return true;
}

/* Reshape to [as before, rest…]. */
bool pith__ragged_reshape_rest(pith__ragged *r, const pith__value *out, pith__value *x,
                               const pith__ragged_form *form) {
    int64_t shape[PITH_MAX_RANK + 1] = { 0 };
    int count;
    if (!pith__ragged_rest_dims(form, &out->type, shape + 1, &count))
        return pith__ragged_refuse(r, "a size is not a number");
    pith__value *inputs[] = { x, pith__ragged_ints(r, shape, count + 1) };
    pith__node *node = inputs[1] ? pith__ragged_emit(r, "", "Reshape", inputs, 2) : NULL;
    return node && pith__ragged_set(r, out, node->outputs[0]);
}

/* pith.Segment over the tokens of x; the sequence axis of out is gone, or 1 if kept. */
bool pith__ragged_segment(pith__ragged *r, const pith__value *x, const pith__value *out,
                          const char *how, bool kept) {
    pith__ragged_form form = r->forms[x->id];
    pith__value *inputs[] = { pith__ragged_operand(r, x, &form, x->type.rank), r->offsets };
    if (!inputs[0]) return false;
    if (form.kind != PITH_RAGGED_TOKEN || !form.batch)
        return pith__ragged_refuse(r, "it does not have one row per text");
    pith__node *node = pith__ragged_emit(r, "pith", "Segment", inputs, 2);
    if (!node || !pith__ragged_stored(r, pith__node_set_str(node, "how", pith__str_of(how))))
        return false;
    if (!kept) return pith__ragged_set(r, out, node->outputs[0]);
    pith__ragged_form text = pith__ragged_form_of(r, &out->type);
    return pith__ragged_reshape_rest(r, out, node->outputs[0], &text);
}

int64_t pith__ragged_rest_axis(pith__ragged *r, const pith__ragged_form *form, int64_t axis,
                               int rank) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || axis == form->sequence || (axis == 0 && form->batch)) {
        r->why = "it works along the sequence or the batch";
        return -1;
    }
    return pith__ragged_moved_axis(form, (int)axis);
}

/* Does the list hold the node's operator? */
static bool rule_names(const char *list, const pith__node *node) {
    while (*list) {
        size_t size = strcspn(list, " ");
        pith_str name = { list, size }, domain = PITH_STR("");
        for (size_t i = 0; i + 1 < size; i++)
            if (list[i] == ':' && list[i + 1] == ':')
                domain = (pith_str){ list, i }, name = (pith_str){ list + i + 2, size - i - 2 };
        if (pith__str_eq(domain, node->domain) && pith__str_eq(name, node->op_type)) return true;
        list += size;
        list += strspn(list, " ");
    }
    return false;
}

const pith__ragged_rule *pith__ragged_find(const pith__node *node) {
    bool elementwise = node->op->flags & PITH_OP_ELEMENTWISE && node->output_count == 1;
    const pith__ragged_rule *other = NULL;
    for (size_t i = 0; i < pith__ragged_rule_table_count; i++) {
        const pith__ragged_rule *rule = pith__ragged_rule_table[i];
        if (rule_names(rule->operators, node)) return rule;
        if (rule->elementwise && elementwise) other = rule;
    }
    return other;
}
