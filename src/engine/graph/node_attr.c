/* node_attr.c - reading and setting attributes of nodes. A node has few of them, so the search is
 * linear. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engine/graph/graph.h"

static pith__attr *node_attr_find(const pith__node *node, const char *name) {
    for (size_t i = 0; i < node->attr_count; i++)
        if (pith__str_is(node->attrs[i].name, name)) return &node->attrs[i];
    return NULL;
}

static const pith__attr *find_kind(const pith__node *node, const char *name, pith__attr_kind kind) {
    const pith__attr *attr = node_attr_find(node, name);
    return attr && attr->kind == kind ? attr : NULL;
}

const pith__attr *pith__node_attr(const pith__node *node, const char *name) {
    return node_attr_find(node, name);
}

int64_t pith__node_int(const pith__node *node, const char *name, int64_t fallback) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_INT);
    return attr ? attr->integer : fallback;
}

int32_t pith__node_choice(const pith__node *node, const char *name, int32_t fallback) {
    int64_t item = pith__node_int(node, name, fallback);
    return item >= INT32_MIN && item <= INT32_MAX ? (int32_t)item : INT32_MAX;
}

float pith__node_float(const pith__node *node, const char *name, float fallback) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_FLOAT);
    return attr ? attr->real : fallback;
}

pith_str pith__node_str(const pith__node *node, const char *name, const char *fallback) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_STRING);
    return attr ? attr->string : pith__str_of(fallback);
}

const int64_t *pith__node_ints(const pith__node *node, const char *name, size_t *count) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_INTS);
    *count = attr ? attr->count : 0;
    return attr ? attr->ints : NULL;
}

const float *pith__node_floats(const pith__node *node, const char *name, size_t *count) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_FLOATS);
    *count = attr ? attr->count : 0;
    return attr ? attr->floats : NULL;
}

const pith_str *pith__node_strs(const pith__node *node, const char *name, size_t *count) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_STRINGS);
    *count = attr ? attr->count : 0;
    return attr ? attr->strings : NULL;
}

const pith_tensor *pith__node_tensor(const pith__node *node, const char *name) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_TENSOR);
    return attr ? attr->tensor : NULL;
}

pith__graph *pith__node_graph(const pith__node *node, const char *name) {
    const pith__attr *attr = find_kind(node, name, PITH_ATTR_GRAPH);
    return attr ? attr->graph : NULL;
}

/* The attribute of this name, made if need be. */
static pith__attr *node_attr_make(pith__node *node, const char *name, pith__attr_kind kind) {
    pith__attr *attr = node_attr_find(node, name);
    if (!attr) {
        pith__attr *attrs =
            pith__arena_array(node->graph->arena, node->attr_count + 1, sizeof *attrs);
        if (!attrs) return NULL;
        if (node->attr_count) memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
        node->attrs = attrs;
        attr = &attrs[node->attr_count];
        attr->name = pith__arena_str(node->graph->arena, pith__str_of(name));
        if (!attr->name.data) return NULL;
        node->attr_count++;
    }
    attr->kind = kind;
    attr->reference = PITH_STR("");
    attr->count = 0;
    return attr;
}

pith_status pith__node_copy_attrs(pith__node *node, const pith__node *from) {
    pith__attr *attrs = pith__arena_array(node->graph->arena, from->attr_count, sizeof *attrs);
    if (!attrs) return PITH_ERR_MEMORY;
    if (from->attr_count) memcpy(attrs, from->attrs, from->attr_count * sizeof *attrs);
    node->attrs = attrs;
    node->attr_count = from->attr_count;
    return PITH_OK;
}

pith_status pith__node_set_int(pith__node *node, const char *name, int64_t value) {
    pith__attr *attr = node_attr_make(node, name, PITH_ATTR_INT);
    if (!attr) return PITH_ERR_MEMORY;
    attr->integer = value;
    return PITH_OK;
}

pith_status pith__node_set_float(pith__node *node, const char *name, float value) {
    pith__attr *attr = node_attr_make(node, name, PITH_ATTR_FLOAT);
    if (!attr) return PITH_ERR_MEMORY;
    attr->real = value;
    return PITH_OK;
}

pith_status pith__node_set_str(pith__node *node, const char *name, pith_str value) {
    pith_str copy = pith__arena_str(node->graph->arena, value);
    pith__attr *attr = copy.data ? node_attr_make(node, name, PITH_ATTR_STRING) : NULL;
    if (!attr) return PITH_ERR_MEMORY;
    attr->string = copy;
    return PITH_OK;
}

/* The attribute with a copy of `count` items of `size` bytes, to be put into its union; NULL if
 * memory is out. */
static pith__attr *make_list(pith__node *node, const char *name, pith__attr_kind kind, void **copy,
                             const void *items, size_t count, size_t size) {
    *copy = pith__arena_array(node->graph->arena, count, size);
    if (!*copy) return NULL;
    if (count) memcpy(*copy, items, count * size);
    pith__attr *attr = node_attr_make(node, name, kind);
    if (attr) attr->count = count;
    return attr;
}

pith_status pith__node_set_ints(pith__node *node, const char *name, const int64_t *items,
                                size_t count) {
    void *copy;
    pith__attr *attr = make_list(node, name, PITH_ATTR_INTS, &copy, items, count, sizeof *items);
    if (!attr) return PITH_ERR_MEMORY;
    attr->ints = copy;
    return PITH_OK;
}

pith_status pith__node_set_floats(pith__node *node, const char *name, const float *items,
                                  size_t count) {
    void *copy;
    pith__attr *attr = make_list(node, name, PITH_ATTR_FLOATS, &copy, items, count, sizeof *items);
    if (!attr) return PITH_ERR_MEMORY;
    attr->floats = copy;
    return PITH_OK;
}

pith_status pith__node_set_graph(pith__node *node, const char *name, pith__graph *graph) {
    pith__attr *attr = node_attr_make(node, name, PITH_ATTR_GRAPH);
    if (!attr) return PITH_ERR_MEMORY;
    attr->graph = graph;
    return PITH_OK;
}

void pith__node_unset(pith__node *node, const char *name) {
    pith__attr *attr = node_attr_find(node, name);
    if (!attr) return;
    *attr = node->attrs[node->attr_count - 1];
    node->attr_count--;
}

const char *pith__node_place(const pith__node *node, char *buffer, size_t size) {
    char number[16] = "";
    if (node->index >= 0) snprintf(number, sizeof number, " %" PRId32, node->index);
    if (node->name.size) {
        snprintf(buffer, size, "node%s '" PITH_STR_FMT "' (" PITH_STR_FMT ")", number,
                 PITH_STR_ARG(node->name), PITH_STR_ARG(node->op_type));
    } else {
        snprintf(buffer, size, "node%s (" PITH_STR_FMT ")", number, PITH_STR_ARG(node->op_type));
    }
    return buffer;
}
