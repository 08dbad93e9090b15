/* pith_ops.c - see pith_ops.h. */
#include "formats/export/pith_ops.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

struct pith__replace_made {
    pith__replace_key key;
    pith__value *value;
};

pith__value *pith__replace_typed(const pith__replace *b, pith__value *v) {
    if (v && v->type.dtype == PITH_UNDEFINED) v->type = *b->type;
    return v;
}

pith__value *pith__replace_shape(pith__value *v, int dtype, int rank, const pith__dim *dims) {
    if (v) pith__type_set(&v->type, dtype, rank, dims);
    return v;
}

static pith__value *replace_or_fail(pith__replace *b, pith__value *v) {
    if (!v && !b->nodes.status) b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    return v;
}

pith__value *pith__replace_contrib(pith__replace *b, const char *op, pith__value *const *inputs,
                                   int count, int outputs) {
    if (b->nodes.status) return NULL;
    pith__node *node = pith__graph_add_node(b->nodes.graph, b->nodes.before, "com.microsoft", op,
                                            inputs, count, NULL, outputs);
    if (!node) return replace_or_fail(b, NULL);
    node->name = b->nodes.place;
    for (int i = 0; i < outputs; i++) node->outputs[i]->type = *b->type;
    return node->outputs[0];
}

void pith__replace_set_float(pith__replace *b, pith__value *v, const char *name, float number) {
    if (v && pith__node_set_float(v->producer, name, number)) replace_or_fail(b, NULL);
}

pith__value *pith__replace_numbers(pith__replace *b, const int64_t *numbers, int64_t count) {
    return b->nodes.status ? NULL
                           : replace_or_fail(b, pith__graph_add_i64s(b->nodes.graph, PITH_STR(""),
                                                                     numbers, count));
}

pith__value *pith__replace_number(pith__replace *b, int64_t number) {
    int64_t *data = pith__arena_array(b->nodes.graph->arena, 1, sizeof *data);
    if (b->nodes.status || !data) return replace_or_fail(b, NULL);
    *data = number;
    const pith_tensor t = { .data = data, .bytes = sizeof *data, .dtype = PITH_I64 };
    return replace_or_fail(b, pith__graph_add_const(b->nodes.graph, PITH_STR(""), &t));
}

pith__value *pith__replace_slice(pith__replace *b, pith__value *x, int64_t axis, int64_t begin,
                                 int64_t end, int64_t step) {
    pith__type type = x ? x->type : (pith__type){ .rank = 0 };
    pith__value *y =
        PITH_NEW_NODE(&b->nodes, "Slice", x, pith__replace_numbers(b, &begin, 1),
                      pith__replace_numbers(b, &end, 1), pith__replace_numbers(b, &axis, 1),
                      pith__replace_numbers(b, &step, 1));
    if (!y) return NULL;
    type.dims[axis] = (end - begin + step - 1) / step;
    return pith__replace_shape(y, type.dtype, type.rank, type.dims);
}

pith__value *pith__replace_sizes(pith__replace *b, pith__value *x, int64_t begin, int64_t end) {
    const pith__dim dims[] = { end - begin };
    pith__value *y = PITH_NEW_NODE(&b->nodes, "Shape", x);
    pith__new_node_set_int(&b->nodes, y, "start", begin);
    pith__new_node_set_int(&b->nodes, y, "end", end);
    return pith__replace_shape(y, PITH_I64, 1, dims);
}

pith__value *pith__replace_size(pith__replace *b, pith__value *x, int64_t axis) {
    return pith__replace_shape(
        PITH_NEW_NODE(&b->nodes, "Squeeze", pith__replace_sizes(b, x, axis, axis + 1)), PITH_I64, 0,
        NULL);
}

pith__value *pith__replace_recall(const pith__replace *b, const pith__replace_key *key) {
    for (size_t i = 0; i < b->memo->count; i++)
        if (!memcmp(&b->memo->items[i].key, key, sizeof *key)) return b->memo->items[i].value;
    return NULL;
}

pith__value *pith__replace_remember(pith__replace *b, const pith__replace_key *key,
                                    pith__value *v) {
    void *items = b->memo->items;
    if (!v) return NULL;
    if (!pith__arena_grow(b->nodes.graph->arena, &items, b->memo->count, &b->memo->capacity,
                          sizeof *b->memo->items))
        return replace_or_fail(b, NULL);
    b->memo->items = items;
    b->memo->items[b->memo->count++] = (struct pith__replace_made){ *key, v };
    return v;
}
