/* onnx_names.c - what a name means in a graph.
 *
 * Names are resolved once, while a graph is read. A name of the outer graph becomes a capture: a trailing input of the
 * node that owns the subgraph, and a value in each of its subgraphs. */
#include "base/error.h"
#include "formats/onnx/onnx_reader.h"

pith_status pith_onnx_define(pith_onnx_reader *r, pith_onnx_scope *s, pith_str name, const pith_value *value) {
    uint32_t old;
    if (!value || !pith_map_put(&s->names, name, value->id, &old)) return pith_onnx_no_memory(r);
    if (old == UINT32_MAX) return PITH_OK;
    return pith_fail(r->source.err, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is defined twice", PITH_STR_ARG(name));
}

/* Gives the scope's graph the value that stands for owner->captures[place]. */
static pith_status add_capture(pith_onnx_reader *r, pith_onnx_scope *s, size_t place, pith_value **value) {
    pith_graph *graph = s->graph;
    const pith_value *outer = s->owner->captures[place];
    *value = pith_graph_add_value(graph, outer->name, PITH_VALUE_CAPTURE);
    if (!*value) return pith_onnx_no_memory(r);
    while (graph->capture_count <= place) {
        void *items = graph->captures;
        if (!pith_arena_grow(r->source.arena, &items, graph->capture_count, &s->capture_capacity,
                             sizeof *graph->captures))
            return pith_onnx_no_memory(r);
        graph->captures = items;
        graph->captures[graph->capture_count++] = NULL;
    }
    graph->captures[place] = *value;
    return PITH_OK;
}

pith_status pith_onnx_resolve(pith_onnx_reader *r, pith_onnx_scope *s, pith_str name, pith_value **value) {
    uint32_t id = pith_map_get(&s->names, name);
    *value = NULL;
    if (id != UINT32_MAX) {
        *value = s->graph->values[id];
        return PITH_OK;
    }
    if (!s->outer) return PITH_OK;
    pith_value *outer;
    PITH_TRY(pith_onnx_resolve(r, s->outer, name, &outer));
    if (!outer) return PITH_OK;
    pith_onnx_owner *o = s->owner;
    uint32_t place = pith_map_get(&o->places, name);
    if (place == UINT32_MAX) {
        void *items = o->captures;
        place = (uint32_t)o->count;
        if (!pith_arena_grow(r->source.arena, &items, o->count, &o->capacity, sizeof *o->captures) ||
            !pith_map_put(&o->places, name, place, NULL)) {
            return pith_onnx_no_memory(r);
        }
        o->captures = items;
        o->captures[o->count++] = outer;
    }
    PITH_TRY(add_capture(r, s, place, value));
    return pith_onnx_define(r, s, name, *value);
}

pith_status pith_onnx_complete_captures(pith_onnx_reader *r, pith_onnx_subgraphs *subs) {
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t place = 0; place < subs->owner.count; place++) {
            pith_value *unused;
            const pith_graph *graph = subs->scopes[i]->graph;
            if (place < graph->capture_count && graph->captures[place]) continue;
            PITH_TRY(add_capture(r, subs->scopes[i], place, &unused));
        }
    }
    return PITH_OK;
}
