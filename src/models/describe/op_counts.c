/* op_counts.c - how often each operator occurs in a file. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "models/model.h"

static pith_status count_node(pith_model *m, pith__map *places, size_t *capacity,
                              const pith__node *node, pith_error *err) {
    pith_str domain = pith__str_is(node->domain, "ai.onnx") ? PITH_STR("") : node->domain;
    pith_str key = pith__arena_printf(&m->arena, PITH_STR_FMT ":" PITH_STR_FMT,
                                      PITH_STR_ALL(domain), PITH_STR_ALL(node->op_type));
    if (!key.data) return pith__fail_memory(err, node->op_type.size);
    uint32_t at = pith__map_get(places, key);
    if (at == UINT32_MAX) {
        at = (uint32_t)m->op_count;
        if (!pith__arena_grow(&m->arena, (void **)&m->ops, m->op_count, capacity, sizeof *m->ops) ||
            !pith__map_put(places, key, at, NULL))
            return pith__fail_memory(err, sizeof *m->ops);
        m->ops[m->op_count++] = (pith__op_count){ domain, node->op_type, 0 };
    }
    m->ops[at].count++;
    return PITH_OK;
}

static pith_status count_graph(pith_model *m, pith__map *places, size_t *capacity,
                               const pith__graph *g, pith_error *err) {
    for (const pith__node *n = g->first; n; n = n->next) {
        PITH_TRY(count_node(m, places, capacity, n, err));
        for (size_t a = 0; a < n->attr_count; a++) {
            const pith__attr *attr = &n->attrs[a];
            if (attr->reference.size) continue;
            if (attr->kind == PITH_ATTR_GRAPH)
                PITH_TRY(count_graph(m, places, capacity, attr->graph, err));
            if (attr->kind == PITH_ATTR_GRAPHS)
                for (size_t i = 0; i < attr->count; i++)
                    PITH_TRY(count_graph(m, places, capacity, attr->graphs[i], err));
        }
    }
    return PITH_OK;
}

static int compare_str(pith_str a, pith_str b) {
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_ops(const void *a, const void *b) {
    const pith__op_count *x = a, *y = b;
    int order = compare_str(x->domain, y->domain);
    return order ? order : compare_str(x->op_type, y->op_type);
}

pith_status pith__model_count_ops(pith_model *m, const pith__graph *graph, pith_error *err) {
    pith__map places;
    size_t capacity = 0;
    if (pith__map_init(&places, &m->arena, 64)) return pith__fail_memory(err, 0);
    PITH_TRY(count_graph(m, &places, &capacity, graph, err));
    if (m->op_count) qsort(m->ops, m->op_count, sizeof *m->ops, compare_ops);
    return PITH_OK;
}
