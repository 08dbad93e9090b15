/* new_nodes.c - see new_nodes.h. */
#include "formats/export/new_nodes.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "engine/ops/op.h"

static void *made_or_none(pith_maker *m, void *made) {
    if (!made && !m->status) m->status = pith_fail_memory(m->err, 0);
    return made;
}

pith_value *pith_make(pith_maker *m, const char *op, pith_value *const *inputs, int count) {
    if (m->status) return NULL;
    pith_node *node = pith_graph_add_node(m->graph, m->before, "", op, inputs, count, NULL, 1);
    pith_str name = pith_arena_printf(m->graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(m->place), op);
    if (!node || !name.data) return made_or_none(m, NULL);
    node->name = name;
    m->status = pith_op_bind_node(node, m->err);
    return m->status ? NULL : node->outputs[0];
}

void pith_make_int(pith_maker *m, pith_value *value, const char *name, int64_t number) {
    if (value && pith_node_set_int(value->producer, name, number)) made_or_none(m, NULL);
}

void pith_make_float(pith_maker *m, pith_value *value, const char *name, float number) {
    if (value && pith_node_set_float(value->producer, name, number)) made_or_none(m, NULL);
}

void pith_make_ints(pith_maker *m, pith_value *value, const char *name, const int64_t *numbers, size_t count) {
    if (value && pith_node_set_ints(value->producer, name, numbers, count)) made_or_none(m, NULL);
}

pith_value *pith_make_cast(pith_maker *m, pith_value *x, int dtype) {
    pith_value *y = PITH_MAKE(m, "Cast", x);
    pith_make_int(m, y, "to", dtype);
    return y;
}

pith_value *pith_make_f32(pith_maker *m, float number) {
    return m->status ? NULL : made_or_none(m, pith_graph_add_f32(m->graph, PITH_STR(""), number));
}

pith_value *pith_make_i64(pith_maker *m, int64_t number) {
    return m->status ? NULL : made_or_none(m, pith_graph_add_i64s(m->graph, PITH_STR(""), &number, 1));
}

pith_value *pith_make_constant(pith_maker *m, const float *numbers, int rank, const int64_t *dims) {
    pith_tensor t = { .data = (void *)(uintptr_t)numbers, .dtype = PITH_F32, .rank = rank };
    if (m->status) return NULL;
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    bool fits = pith_dtype_bytes(PITH_F32, pith_dims_count(dims, rank), &t.bytes);
    return made_or_none(m, fits ? pith_graph_add_const(m->graph, PITH_STR(""), &t) : NULL);
}

pith_status pith_export_set_outputs(pith_graph *graph, pith_value *const *values, const pith_str *names, size_t count,
                                    pith_error *err) {
    pith_value **outputs = pith_arena_array(graph->arena, count + 1, sizeof *outputs);
    pith_str *kept = pith_arena_array(graph->arena, count + 1, sizeof *kept);
    if (!outputs || !kept) return pith_fail_memory(err, 0);
    for (size_t i = 0; i < count; i++) {
        outputs[i] = values[i];
        kept[i] = names[i];
        values[i]->output_uses++;
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        graph->outputs[i]->output_uses--;
        graph->outputs[i]->first_output = 0; /* the chains of outputs are made anew when they are needed */
    }
    for (size_t i = 0; i < count; i++) outputs[i]->first_output = 0;
    graph->outputs = outputs;
    graph->output_names = kept;
    graph->output_next = NULL;
    graph->output_count = count;
    pith_graph_sweep(graph);
    return PITH_OK;
}
