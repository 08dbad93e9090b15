/* pith_ops.c - see pith_ops.h. */
#include "formats/export/pith_ops.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

struct pith__back_made {
    pith__back_key key;
    pith__value *value;
};

pith__value *pith__back_typed(const pith__back *b, pith__value *v) {
    if (v && v->type.dtype == PITH_UNDEFINED) v->type = *b->type;
    return v;
}

pith__value *pith__back_shape(pith__value *v, int dtype, int rank, const pith__dim *dims) {
    if (v) pith__type_set(&v->type, dtype, rank, dims);
    return v;
}

static pith__value *back_or_fail(pith__back *b, pith__value *v) {
    if (!v && !b->m.status) b->m.status = pith__fail_memory(b->m.err, 0);
    return v;
}

pith__value *pith__back_contrib(pith__back *b, const char *op, pith__value *const *inputs,
                                int count, int outputs) {
    if (b->m.status) return NULL;
    pith__node *node = pith__graph_add_node(b->m.graph, b->m.before, "com.microsoft", op, inputs,
                                            count, NULL, outputs);
    if (!node) return back_or_fail(b, NULL);
    node->name = b->m.place;
    for (int i = 0; i < outputs; i++) node->outputs[i]->type = *b->type;
    return node->outputs[0];
}

void pith__back_set_float(pith__back *b, pith__value *v, const char *name, float number) {
    if (v && pith__node_set_float(v->producer, name, number)) back_or_fail(b, NULL);
}

pith__value *pith__back_numbers(pith__back *b, const int64_t *numbers, int64_t count) {
    return b->m.status
               ? NULL
               : back_or_fail(b, pith__graph_add_i64s(b->m.graph, PITH_STR(""), numbers, count));
}

pith__value *pith__back_number(pith__back *b, int64_t number) {
    int64_t *data = pith__arena_array(b->m.graph->arena, 1, sizeof *data);
    if (b->m.status || !data) return back_or_fail(b, NULL);
    *data = number;
    const pith_tensor t = { .data = data, .bytes = sizeof *data, .dtype = PITH_I64 };
    return back_or_fail(b, pith__graph_add_const(b->m.graph, PITH_STR(""), &t));
}

pith__value *pith__back_slice(pith__back *b, pith__value *x, int64_t axis, int64_t begin,
                              int64_t end, int64_t step) {
    pith__type type = x ? x->type : (pith__type){ .rank = 0 };
    pith__value *y = PITH_MAKE(&b->m, "Slice", x, pith__back_numbers(b, &begin, 1),
                               pith__back_numbers(b, &end, 1), pith__back_numbers(b, &axis, 1),
                               pith__back_numbers(b, &step, 1));
    if (!y) return NULL;
    type.dims[axis] = (end - begin + step - 1) / step;
    return pith__back_shape(y, type.dtype, type.rank, type.dims);
}

pith__value *pith__back_sizes(pith__back *b, pith__value *x, int64_t begin, int64_t end) {
    const pith__dim dims[] = { end - begin };
    pith__value *y = PITH_MAKE(&b->m, "Shape", x);
    pith__make_int(&b->m, y, "start", begin);
    pith__make_int(&b->m, y, "end", end);
    return pith__back_shape(y, PITH_I64, 1, dims);
}

pith__value *pith__back_size(pith__back *b, pith__value *x, int64_t axis) {
    return pith__back_shape(PITH_MAKE(&b->m, "Squeeze", pith__back_sizes(b, x, axis, axis + 1)),
                            PITH_I64, 0, NULL);
}

pith__value *pith__back_recall(const pith__back *b, const pith__back_key *key) {
    for (size_t i = 0; i < b->memo->count; i++)
        if (!memcmp(&b->memo->items[i].key, key, sizeof *key)) return b->memo->items[i].value;
    return NULL;
}

pith__value *pith__back_remember(pith__back *b, const pith__back_key *key, pith__value *v) {
    void *items = b->memo->items;
    if (!v) return NULL;
    if (!pith__arena_grow(b->m.graph->arena, &items, b->memo->count, &b->memo->capacity,
                          sizeof *b->memo->items))
        return back_or_fail(b, NULL);
    b->memo->items = items;
    b->memo->items[b->memo->count++] = (struct pith__back_made){ *key, v };
    return v;
}
