/* new_nodes.c - see new_nodes.h. */
#include "formats/export/new_nodes.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/ops/op.h"

/* Lack of memory sets the status, and all later calls return NULL: callers check once at the end.
 */
static void *new_node_or_none(pith__new_nodes *m, void *made) {
    if (!made && !m->status) m->status = pith__fail_memory(m->err, 0);
    return made;
}

/* The operator is bound at once, so that inference knows it. Its name is the place and the
 * operator, which need not be unique: writing makes names unique. */
pith__value *pith__new_node(pith__new_nodes *m, const char *op, pith__value *const *inputs,
                            int count) {
    if (m->status) return NULL;
    pith__node *node = pith__graph_add_node(m->graph, m->before, "", op, inputs, count, NULL, 1);
    pith_str name =
        pith__arena_printf(m->graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(m->place), op);
    if (!node || !name.data) return new_node_or_none(m, NULL);
    node->name = name;
    m->status = pith__op_bind_node(node, m->err);
    return m->status ? NULL : node->outputs[0];
}

void pith__new_node_set_int(pith__new_nodes *m, pith__value *value, const char *name,
                            int64_t number) {
    if (value && pith__node_set_int(value->producer, name, number)) new_node_or_none(m, NULL);
}

void pith__new_node_set_float(pith__new_nodes *m, pith__value *value, const char *name,
                              float number) {
    if (value && pith__node_set_float(value->producer, name, number)) new_node_or_none(m, NULL);
}

void pith__new_node_set_ints(pith__new_nodes *m, pith__value *value, const char *name,
                             const int64_t *numbers, size_t count) {
    if (value && pith__node_set_ints(value->producer, name, numbers, count))
        new_node_or_none(m, NULL);
}

pith__value *pith__new_node_cast(pith__new_nodes *m, pith__value *x, int dtype) {
    pith__value *y = PITH_NEW_NODE(m, "Cast", x);
    pith__new_node_set_int(m, y, "to", dtype);
    return y;
}

pith__value *pith__new_node_f32(pith__new_nodes *m, float number) {
    return m->status ? NULL
                     : new_node_or_none(m, pith__graph_add_f32(m->graph, PITH_STR(""), number));
}

pith__value *pith__new_node_i64(pith__new_nodes *m, int64_t number) {
    return m->status
               ? NULL
               : new_node_or_none(m, pith__graph_add_i64s(m->graph, PITH_STR(""), &number, 1));
}

pith__value *pith__new_node_constant(pith__new_nodes *m, const float *numbers, int rank,
                                     const int64_t *dims) {
    pith_tensor t = { .data = (void *)(uintptr_t)numbers, .dtype = PITH_F32, .rank = rank };
    if (m->status) return NULL;
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    bool fits = pith__dtype_bytes(PITH_F32, pith__dims_count(dims, rank), &t.bytes);
    return new_node_or_none(m, fits ? pith__graph_add_const(m->graph, PITH_STR(""), &t) : NULL);
}

/* New uses are counted before the old ones are taken back, so that a value that stays an output is
 * never unused in between. */
pith_status pith__new_node_outputs(pith__graph *graph, pith__value *const *values,
                                   const pith_str *names, size_t count, pith_error *err) {
    pith__value **outputs = pith__arena_array(graph->arena, count + 1, sizeof *outputs);
    pith_str *kept = pith__arena_array(graph->arena, count + 1, sizeof *kept);
    if (!outputs || !kept) return pith__fail_memory(err, 0);
    for (size_t i = 0; i < count; i++) {
        outputs[i] = values[i];
        kept[i] = names[i];
        values[i]->output_uses++;
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        graph->outputs[i]->output_uses--;
        graph->outputs[i]->first_output = 0; /* the chains of outputs are made anew when they are
                                                needed */
    }
    for (size_t i = 0; i < count; i++) outputs[i]->first_output = 0;
    graph->outputs = outputs;
    graph->output_names = kept;
    graph->output_next = NULL;
    graph->output_count = count;
    pith__graph_sweep(graph);
    return PITH_OK;
}
