/* pass_share.c - nodes that compute the same from the same become one: exporters ask for the same Shape, cast the same
 * mask and take the same square root in every layer. Candidates are found among the users of an input, so the cost
 * is that of the users lists. */
#include "opt/match.h"
#include "opt/pass.h"

static bool same_attr(const pith_attr *a, const pith_attr *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case PITH_ATTR_INT: return a->i == b->i;
    case PITH_ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case PITH_ATTR_STRING: return pith_str_eq(a->s, b->s);
    case PITH_ATTR_INTS: return a->count == b->count && memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
    case PITH_ATTR_TENSOR:
        return a->tensor->dtype == b->tensor->dtype && a->tensor->rank == b->tensor->rank &&
               a->tensor->bytes == b->tensor->bytes &&
               memcmp(a->tensor->dims, b->tensor->dims, (size_t)a->tensor->rank * sizeof a->tensor->dims[0]) == 0 &&
               memcmp(a->tensor->data, b->tensor->data, a->tensor->bytes) == 0;
    default: return false;
    }
}

static bool same_value(const pith_value *a, const pith_value *b) {
    if (a == b) return true;
    if (!pith_match_const(a) || !pith_match_const(b)) return false;
    const pith_tensor *x = a->type.data, *y = b->type.data;
    return x->bytes <= PITH_ELEMS_MAX * sizeof(int64_t) && x->bytes == y->bytes && x->dtype == y->dtype &&
           x->dtype != PITH_STRING && pith_match_same_shape(&a->type, &b->type) &&
           memcmp(x->data, y->data, x->bytes) == 0;
}

static bool same_node(const pith_node *a, const pith_node *b) {
    if (a->op != b->op || a->input_count != b->input_count || a->attr_count != b->attr_count) return false;
    if (a->output_count != 1 || b->output_count != 1 || a->opset != b->opset) return false;
    for (int i = 0; i < a->input_count; i++) {
        if (!same_value(a->inputs[i], b->inputs[i])) return false;
    }
    for (size_t i = 0; i < a->attr_count; i++) {
        size_t j = 0;
        while (j < b->attr_count && !pith_str_eq(a->attrs[i].name, b->attrs[j].name)) j++;
        if (j == b->attr_count || !same_attr(&a->attrs[i], &b->attrs[j])) return false;
    }
    return true;
}

/* a comes before b in the list. */
static bool before(const pith_node *a, const pith_node *b) {
    for (const pith_node *n = a->next; n; n = n->next) {
        if (n == b) return true;
    }
    return false;
}

/* The first node that is not a constant's user decides where to look: any two equal nodes share that input. */
static const pith_value *shared_input(const pith_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && !pith_match_const(node->inputs[i])) return node->inputs[i];
    }
    return NULL;
}

static pith_status run(pith_opt *o, size_t *changes) {
    for (pith_node *node = o->graph->first; node; node = node->next) {
        const pith_value *input = shared_input(node);
        if (!input || node->op->flags & PITH_OP_RANDOM || node->capture_count > 0 || node->output_count != 1) continue;
        for (size_t i = 0; i < input->user_count; i++) {
            pith_node *twin = input->users[i].node;
            if (twin == node || !same_node(node, twin) || !before(node, twin)) continue;
            pith_value *old = twin->outputs[0], *kept = node->outputs[0];
            if ((old->user_count == 0 && old->output_uses == 0) || !pith_match_replaceable(old, kept)) continue;
            PITH_TRY(pith_match_replace(old, kept, o->err));
            ++*changes;
        }
    }
    return PITH_OK;
}

const pith_pass pith_pass_share = { "share", 1, false, run };
