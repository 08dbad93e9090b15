/* op_counts.c - how often each operator occurs in a file. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "models/model.h"

static pith_status count_node(pith_model *m, pith_map *places, size_t *capacity, const pith_node *node,
                              pith_error *err) {
    pith_str domain = pith_str_is(node->domain, "ai.onnx") ? PITH_STR("") : node->domain;
    pith_str key =
        pith_arena_printf(&m->arena, PITH_STR_FMT ":" PITH_STR_FMT, PITH_STR_ALL(domain), PITH_STR_ALL(node->op_type));
    if (!key.data) return pith_fail_memory(err, node->op_type.size);
    uint32_t at = pith_map_get(places, key);
    if (at == UINT32_MAX) {
        at = (uint32_t)m->op_count;
        if (!pith_arena_grow(&m->arena, (void **)&m->ops, m->op_count, capacity, sizeof *m->ops) ||
            !pith_map_put(places, key, at, NULL))
            return pith_fail_memory(err, sizeof *m->ops);
        m->ops[m->op_count++] = (pith_op_count){ domain, node->op_type, 0 };
    }
    m->ops[at].count++;
    return PITH_OK;
}

static pith_status count_graph(pith_model *m, pith_map *places, size_t *capacity, const pith_graph *g,
                               pith_error *err) {
    for (const pith_node *n = g->first; n; n = n->next) {
        PITH_TRY(count_node(m, places, capacity, n, err));
        for (size_t a = 0; a < n->attr_count; a++) {
            const pith_attr *attr = &n->attrs[a];
            if (attr->reference.size) continue;
            if (attr->kind == PITH_ATTR_GRAPH) PITH_TRY(count_graph(m, places, capacity, attr->graph, err));
            for (size_t i = 0; attr->kind == PITH_ATTR_GRAPHS && i < attr->count; i++)
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
    const pith_op_count *x = a, *y = b;
    int order = compare_str(x->domain, y->domain);
    return order ? order : compare_str(x->op_type, y->op_type);
}

pith_status pith_model_count_ops(pith_model *m, const pith_graph *graph, pith_error *err) {
    pith_map places;
    size_t capacity = 0;
    if (pith_map_init(&places, &m->arena, 64)) return pith_fail_memory(err, 0);
    PITH_TRY(count_graph(m, &places, &capacity, graph, err));
    if (m->op_count) qsort(m->ops, m->op_count, sizeof *m->ops, compare_ops);
    return PITH_OK;
}
