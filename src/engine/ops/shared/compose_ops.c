/* compose_ops.c - see compose_ops.h. */
#include "engine/ops/shared/compose_ops.h"

bool pith__compose_wanted(const pith__node *node, int i) {
    const pith__value *v = pith__node_output(node, i);
    return v && (v->user_count || v->output_uses);
}

int pith__compose_rank(const pith__value *v) {
    return v->type.rank < 0 && v->hint ? v->hint->rank : v->type.rank;
}

pith__value *pith__compose(pith__node *at, const char *domain, const char *op_type,
                           pith__value *const *inputs, int count, int outputs) {
    if (!inputs[0]) return NULL;
    while (count > 0 && !inputs[count - 1]) count--;
    pith__node *node =
        pith__graph_add_node(at->graph, at, domain, op_type, inputs, count, NULL, outputs);
    if (!node) return NULL;
    node->name = at->name;
    node->index = at->index;
    return pith__node_output(node, 0);
}

pith__value *pith__compose1(pith__node *at, const char *op_type, pith__value *a) {
    return pith__compose(at, "", op_type, &a, 1, 1);
}

pith__value *pith__compose2(pith__node *at, const char *op_type, pith__value *a, pith__value *b) {
    return b ? pith__compose(at, "", op_type, (pith__value *[]){ a, b }, 2, 1) : NULL;
}

pith__value *pith__compose3(pith__node *at, const char *op_type, pith__value *a, pith__value *b,
                            pith__value *c) {
    return b && c ? pith__compose(at, "", op_type, (pith__value *[]){ a, b, c }, 3, 1) : NULL;
}

pith__value *pith__compose_cast(pith__node *at, pith__value *x, int dtype) {
    return pith__with_int(pith__compose1(at, "Cast", x), "to", dtype);
}

pith__value *pith__compose_list(pith__node *at, const char *op_type, pith__value *x,
                                const int64_t *items, int64_t count) {
    return pith__compose2(at, op_type, x,
                          pith__graph_add_i64s(at->graph, PITH_STR(""), items, count));
}

pith__value *pith__compose_turn(pith__node *at, pith__value *x, const int64_t *perm, size_t rank) {
    pith__value *v = pith__compose1(at, "Transpose", x);
    return v && !pith__node_set_ints(v->producer, "perm", perm, rank) ? v : NULL;
}

pith__value *pith__compose_move(pith__node *at, pith__value *x, int64_t from, int64_t to) {
    pith__value *v = pith__compose(at, "pith", "MoveAxis", &x, 1, 1);
    return pith__with_int(pith__with_int(v, "from", from), "to", to);
}

pith__value *pith__compose_sizes(pith__node *at, pith__value *x, int64_t from, int64_t to) {
    pith__value *v = pith__with_int(pith__compose1(at, "Shape", x), "start", from);
    return to == INT64_MAX ? v : pith__with_int(v, "end", to);
}

pith__value *pith__compose_join(pith__node *at, pith__value *a, pith__value *b) {
    return pith__with_int(pith__compose2(at, "Concat", a, b), "axis", 0);
}

pith__value *pith__with_int(pith__value *v, const char *name, int64_t item) {
    return v && !pith__node_set_int(v->producer, name, item) ? v : NULL;
}

pith__value *pith__with_float(pith__value *v, const char *name, float item) {
    return v && !pith__node_set_float(v->producer, name, item) ? v : NULL;
}

/* Attributes of the node from that are named, as far as they are there. NULL, as v: out of memory.
 */
pith__value *pith__with_attributes(pith__value *v, const pith__node *from,
                                   const char *const *names) {
    if (!v) return NULL;
    for (; *names; names++) {
        const pith__attr *a = pith__node_attr(from, *names);
        pith_status status = PITH_OK;
        if (!a) continue;
        if (a->kind == PITH_ATTR_INT)
            status = pith__node_set_int(v->producer, *names, a->integer);
        else if (a->kind == PITH_ATTR_FLOAT)
            status = pith__node_set_float(v->producer, *names, a->real);
        else if (a->kind == PITH_ATTR_STRING)
            status = pith__node_set_str(v->producer, *names, a->string);
        else if (a->kind == PITH_ATTR_INTS)
            status = pith__node_set_ints(v->producer, *names, a->ints, a->count);
        if (status) return NULL;
    }
    return v;
}

pith_status pith__compose_require(const pith__node *node, unsigned inputs, int max_outputs,
                                  pith_error *err) {
    for (int i = 0; i < 32; i++) {
        if (inputs >> i & 1 && !pith__node_input(node, i))
            return pith__fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->output_count > max_outputs)
        return pith__fail(err, PITH_ERR_FORMAT, "has %d outputs, at most %d are known",
                          node->output_count, max_outputs);
    return PITH_OK;
}

pith_status pith__compose_refuse(const pith__node *node, int i, pith_error *err) {
    if (!pith__node_input(node, i)) return PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "input %d is not supported", i);
}

pith_status pith__compose_give(pith__node *node, int i, pith__value *v, pith_error *err) {
    if (!v) return pith__fail_memory(err, 0);
    pith__value *old = pith__node_output(node, i);
    v->name = old->name;
    v->hint = old->hint;
    if (pith__value_replace(old, v))
        return pith__fail_memory(err, 0); /* an output of the graph takes old's name, too */
    old->name = PITH_STR("");
    return PITH_OK;
}

pith_status pith__compose_become(pith__node *node, pith__value *v, pith_error *err) {
    PITH_TRY(pith__compose_give(node, 0, v, err));
    pith__node_remove(node);
    return PITH_OK;
}

pith_status pith__compose_infer(pith__infer *c) {
    return pith__op_fail(c, "its opset is impossible");
}
