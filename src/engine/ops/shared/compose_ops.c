/* compose_ops.c - see compose_ops.h. */
#include "engine/ops/shared/compose_ops.h"

bool pith_compose_wanted(const pith_node *node, int i) {
    const pith_value *v = pith_node_output(node, i);
    return v && (v->user_count || v->output_uses);
}

int pith_compose_rank(const pith_value *v) { return v->type.rank < 0 && v->hint ? v->hint->rank : v->type.rank; }

pith_value *pith_compose(pith_node *at, const char *domain, const char *op_type, pith_value *const *inputs, int count,
                         int outputs) {
    if (!inputs[0]) return NULL;
    while (count > 0 && !inputs[count - 1]) count--;
    pith_node *node = pith_graph_add_node(at->graph, at, domain, op_type, inputs, count, NULL, outputs);
    if (!node) return NULL;
    node->name = at->name;
    node->index = at->index;
    return pith_node_output(node, 0);
}

pith_value *pith_compose1(pith_node *at, const char *op_type, pith_value *a) {
    return pith_compose(at, "", op_type, &a, 1, 1);
}

pith_value *pith_compose2(pith_node *at, const char *op_type, pith_value *a, pith_value *b) {
    return b ? pith_compose(at, "", op_type, (pith_value *[]){ a, b }, 2, 1) : NULL;
}

pith_value *pith_compose3(pith_node *at, const char *op_type, pith_value *a, pith_value *b, pith_value *c) {
    return b && c ? pith_compose(at, "", op_type, (pith_value *[]){ a, b, c }, 3, 1) : NULL;
}

pith_value *pith_compose_cast(pith_node *at, pith_value *x, int dtype) {
    return pith_with_int(pith_compose1(at, "Cast", x), "to", dtype);
}

pith_value *pith_compose_list(pith_node *at, const char *op_type, pith_value *x, const int64_t *items, int64_t count) {
    return pith_compose2(at, op_type, x, pith_graph_add_i64s(at->graph, PITH_STR(""), items, count));
}

pith_value *pith_compose_turn(pith_node *at, pith_value *x, const int64_t *perm, size_t rank) {
    pith_value *v = pith_compose1(at, "Transpose", x);
    return v && !pith_node_set_ints(v->producer, "perm", perm, rank) ? v : NULL;
}

pith_value *pith_compose_move(pith_node *at, pith_value *x, int64_t from, int64_t to) {
    pith_value *v = pith_compose(at, "pith", "MoveAxis", &x, 1, 1);
    return pith_with_int(pith_with_int(v, "from", from), "to", to);
}

pith_value *pith_compose_sizes(pith_node *at, pith_value *x, int64_t from, int64_t to) {
    pith_value *v = pith_with_int(pith_compose1(at, "Shape", x), "start", from);
    return to == INT64_MAX ? v : pith_with_int(v, "end", to);
}

pith_value *pith_compose_join(pith_node *at, pith_value *a, pith_value *b) {
    return pith_with_int(pith_compose2(at, "Concat", a, b), "axis", 0);
}

pith_value *pith_with_int(pith_value *v, const char *name, int64_t item) {
    return v && !pith_node_set_int(v->producer, name, item) ? v : NULL;
}

pith_value *pith_with_float(pith_value *v, const char *name, float item) {
    return v && !pith_node_set_float(v->producer, name, item) ? v : NULL;
}

pith_value *pith_with_attributes(pith_value *v, const pith_node *from, const char *const *names) {
    for (; v && *names; names++) {
        const pith_attr *a = pith_node_attr(from, *names);
        pith_status status = PITH_OK;
        if (!a) continue;
        if (a->kind == PITH_ATTR_INT)
            status = pith_node_set_int(v->producer, *names, a->i);
        else if (a->kind == PITH_ATTR_FLOAT)
            status = pith_node_set_float(v->producer, *names, a->f);
        else if (a->kind == PITH_ATTR_STRING)
            status = pith_node_set_str(v->producer, *names, a->s);
        else if (a->kind == PITH_ATTR_INTS)
            status = pith_node_set_ints(v->producer, *names, a->ints, a->count);
        if (status) return NULL;
    }
    return v;
}

pith_status pith_compose_require(const pith_node *node, unsigned inputs, int max_outputs, pith_error *err) {
    for (int i = 0; i < 32; i++) {
        if (inputs >> i & 1 && !pith_node_input(node, i))
            return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->output_count > max_outputs)
        return pith_fail(err, PITH_ERR_FORMAT, "has %d outputs, at most %d are known", node->output_count, max_outputs);
    return PITH_OK;
}

pith_status pith_compose_refuse(const pith_node *node, int i, pith_error *err) {
    if (!pith_node_input(node, i)) return PITH_OK;
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "input %d is not supported", i);
}

pith_status pith_compose_give(pith_node *node, int i, pith_value *v, pith_error *err) {
    if (!v) return pith_fail_memory(err, 0);
    pith_value *old = pith_node_output(node, i);
    v->name = old->name;
    v->hint = old->hint;
    if (pith_value_replace(old, v)) return pith_fail_memory(err, 0); /* an output of the graph takes old's name, too */
    old->name = PITH_STR("");
    return PITH_OK;
}

pith_status pith_compose_become(pith_node *node, pith_value *v, pith_error *err) {
    PITH_TRY(pith_compose_give(node, 0, v, err));
    pith_node_remove(node);
    return PITH_OK;
}

pith_status pith_compose_infer(pith_infer *c) { return pith_op_fail(c, "its opset is impossible"); }
