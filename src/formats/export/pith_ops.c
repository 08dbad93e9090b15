/* pith_ops.c - see pith_ops.h. */
#include "formats/export/pith_ops.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

struct pith_back_made {
    pith_back_key key;
    pith_value *value;
};

pith_value *pith_back_typed(const pith_back *b, pith_value *v) {
    if (v && v->type.dtype == PITH_UNDEFINED) v->type = *b->type;
    return v;
}

pith_value *pith_back_shape(pith_value *v, int dtype, int rank, const pith_dim *dims) {
    if (v) pith_type_set(&v->type, dtype, rank, dims);
    return v;
}

static pith_value *back_or_fail(pith_back *b, pith_value *v) {
    if (!v && !b->m.status) b->m.status = pith_fail_memory(b->m.err, 0);
    return v;
}

pith_value *pith_back_contrib(pith_back *b, const char *op, pith_value *const *inputs, int count, int outputs) {
    if (b->m.status) return NULL;
    pith_node *node = pith_graph_add_node(b->m.graph, b->m.before, "com.microsoft", op, inputs, count, NULL, outputs);
    if (!node) return back_or_fail(b, NULL);
    node->name = b->m.place;
    for (int i = 0; i < outputs; i++) node->outputs[i]->type = *b->type;
    return node->outputs[0];
}

void pith_back_set_float(pith_back *b, pith_value *v, const char *name, float number) {
    if (v && pith_node_set_float(v->producer, name, number)) back_or_fail(b, NULL);
}

pith_value *pith_back_numbers(pith_back *b, const int64_t *numbers, int64_t count) {
    return b->m.status ? NULL : back_or_fail(b, pith_graph_add_i64s(b->m.graph, PITH_STR(""), numbers, count));
}

pith_value *pith_back_number(pith_back *b, int64_t number) {
    int64_t *data = pith_arena_array(b->m.graph->arena, 1, sizeof *data);
    if (b->m.status || !data) return back_or_fail(b, NULL);
    *data = number;
    const pith_tensor t = { .data = data, .bytes = sizeof *data, .dtype = PITH_I64 };
    return back_or_fail(b, pith_graph_add_const(b->m.graph, PITH_STR(""), &t));
}

pith_value *pith_back_slice(pith_back *b, pith_value *x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
    pith_type type = x ? x->type : (pith_type){ .rank = 0 };
    pith_value *y = PITH_MAKE(&b->m, "Slice", x, pith_back_numbers(b, &begin, 1), pith_back_numbers(b, &end, 1),
                              pith_back_numbers(b, &axis, 1), pith_back_numbers(b, &step, 1));
    if (!y) return NULL;
    type.dims[axis] = (end - begin + step - 1) / step;
    return pith_back_shape(y, type.dtype, type.rank, type.dims);
}

pith_value *pith_back_sizes(pith_back *b, pith_value *x, int64_t begin, int64_t end) {
    const pith_dim dims[] = { end - begin };
    pith_value *y = PITH_MAKE(&b->m, "Shape", x);
    pith_make_int(&b->m, y, "start", begin);
    pith_make_int(&b->m, y, "end", end);
    return pith_back_shape(y, PITH_I64, 1, dims);
}

pith_value *pith_back_size(pith_back *b, pith_value *x, int64_t axis) {
    return pith_back_shape(PITH_MAKE(&b->m, "Squeeze", pith_back_sizes(b, x, axis, axis + 1)), PITH_I64, 0, NULL);
}

pith_value *pith_back_recall(const pith_back *b, const pith_back_key *key) {
    for (size_t i = 0; i < b->memo->count; i++)
        if (!memcmp(&b->memo->items[i].key, key, sizeof *key)) return b->memo->items[i].value;
    return NULL;
}

pith_value *pith_back_remember(pith_back *b, const pith_back_key *key, pith_value *v) {
    void *items = b->memo->items;
    if (!v) return NULL;
    if (!pith_arena_grow(b->m.graph->arena, &items, b->memo->count, &b->memo->capacity, sizeof *b->memo->items))
        return back_or_fail(b, NULL);
    b->memo->items = items;
    b->memo->items[b->memo->count++] = (struct pith_back_made){ *key, v };
    return v;
}
