/* name_read.c - what a name means in a graph.
 *
 * Names are resolved once, while a graph is read. A name of the outer graph becomes a capture: a
 * trailing input of the node that owns the subgraph, and a value in each of its subgraphs. */
#include "base/error.h"
#include "formats/onnx/onnx_reader.h"

pith_status pith__onnx_define(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                              const pith__value *value) {
    uint32_t old;
    if (!value || !pith__map_put(&s->names, name, value->id, &old)) return pith__onnx_no_memory(r);
    if (old == UINT32_MAX) return PITH_OK;
    return pith__fail(r->source.err, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is defined twice",
                      PITH_STR_ARG(name));
}

/* Gives the scope's graph the value that stands for owner->captures[place]. */
static pith_status add_capture(pith__onnx_reader *r, pith__onnx_scope *s, size_t place,
                               pith__value **value) {
    pith__graph *graph = s->graph;
    const pith__value *outer = s->owner->captures[place];
    *value = pith__graph_add_value(graph, outer->name, PITH_VALUE_CAPTURE);
    if (!*value) return pith__onnx_no_memory(r);
    while (graph->capture_count <= place) {
        void *items = graph->captures;
        if (!pith__arena_grow(r->source.arena, &items, graph->capture_count, &s->capture_capacity,
                              sizeof *graph->captures))
            return pith__onnx_no_memory(r);
        graph->captures = items;
        graph->captures[graph->capture_count++] = NULL;
    }
    graph->captures[place] = *value;
    return PITH_OK;
}

/* Outer graphs are asked from the inside out, as ONNX scopes names. Every graph on the way gets a
 * capture of its own, so that a value is only ever read by nodes of its own graph. Recursion is as
 * deep as subgraphs may be. */
pith_status pith__onnx_resolve(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                               pith__value **value) {
    uint32_t id = pith__map_get(&s->names, name);
    *value = NULL;
    if (id != UINT32_MAX) {
        *value = s->graph->values[id];
        return PITH_OK;
    }
    if (!s->outer) return PITH_OK;
    pith__value *outer;
    PITH_TRY(pith__onnx_resolve(r, s->outer, name, &outer));
    if (!outer) return PITH_OK;
    pith__onnx_owner *o = s->owner;
    uint32_t place = pith__map_get(&o->places, name);
    if (place == UINT32_MAX) {
        void *items = o->captures;
        place = (uint32_t)o->count;
        if (!pith__arena_grow(r->source.arena, &items, o->count, &o->capacity,
                              sizeof *o->captures) ||
            !pith__map_put(&o->places, name, place, NULL)) {
            return pith__onnx_no_memory(r);
        }
        o->captures = items;
        o->captures[o->count++] = outer;
    }
    PITH_TRY(add_capture(r, s, place, value));
    return pith__onnx_define(r, s, name, *value);
}

/* A node passes one list of captures to whichever subgraph it runs, so each subgraph needs a value
 * at every place, used or not. */
pith_status pith__onnx_complete_captures(pith__onnx_reader *r, pith__onnx_subgraphs *subs) {
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t place = 0; place < subs->owner.count; place++) {
            pith__value *unused;
            const pith__graph *graph = subs->scopes[i]->graph;
            if (place < graph->capture_count && graph->captures[place]) continue;
            PITH_TRY(add_capture(r, subs->scopes[i], place, &unused));
        }
    }
    return PITH_OK;
}
