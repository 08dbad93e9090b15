/* graph_check.c - checks the invariants of graph.h, subgraphs included.
 *
 * One walk over the nodes in their order counts the uses of each value and finds values of other
 * graphs, broken links, and nodes that read what a later one makes. One walk over the values
 * compares their lists of users with those counts. The cost is linear. Not checked: operators,
 * attributes and types, which belong to binding and inference. */
#include "base/error.h"
#include "engine/graph/graph.h"

static pith_status fail_node(const pith__node *node, pith_error *err, const char *what) {
    char place[256];
    return pith__fail(err, PITH_ERR_FORMAT, "%s: %s", pith__node_place(node, place, sizeof place),
                      what);
}

static bool owns(const pith__graph *graph, const pith__value *value) {
    return value->id < graph->value_count && graph->values[value->id] == value;
}

static pith_status graph_check_subgraph(const pith__node *node, const pith__graph *sub,
                                        pith_error *err) {
    if (sub->parent != node->graph) return fail_node(node, err, "a subgraph has another parent");
    if (sub->capture_count != (size_t)node->capture_count) {
        return fail_node(node, err, "a subgraph and its node differ in the number of captures");
    }
    for (size_t i = 0; i < sub->capture_count; i++)
        if (!sub->captures[i] || sub->captures[i]->kind != PITH_VALUE_CAPTURE) {
            return fail_node(node, err, "a capture has the wrong kind");
        }
    pith_status status = pith__graph_check(sub, err);
    char place[256];
    return status ? pith__fail_at(err, status, "%s: ", pith__node_place(node, place, sizeof place))
                  : PITH_OK;
}

/* uses[id] counts the node inputs that name a value. A node that has been visited has mark 0, so a
 * producer that still has UINT32_MAX comes later, or is the node itself. */
static pith_status graph_check_node(const pith__graph *graph, pith__node *node, uint32_t *uses,
                                    pith_error *err) {
    if (node->graph != graph) return fail_node(node, err, "belongs to another graph");
    if (node->next ? node->next->prev != node : graph->last != node)
        return fail_node(node, err, "the list of nodes is broken");
    if (node->capture_count > node->input_count)
        return fail_node(node, err, "has more captures than inputs");
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *value = node->inputs[i];
        if (!value) continue;
        if (!owns(graph, value))
            return fail_node(node, err, "an input is a value of another graph");
        if (value->kind == PITH_VALUE_NODE) {
            if (!value->producer) return fail_node(node, err, "no node makes an input");
            if (value->producer->graph != graph || value->producer->mark == UINT32_MAX) {
                return fail_node(node, err, "an input is made by a later node or by itself");
            }
        }
        uses[value->id]++;
    }
    for (int i = 0; i < node->output_count; i++) {
        const pith__value *value = node->outputs[i];
        if (!value) continue;
        if (!owns(graph, value))
            return fail_node(node, err, "an output is a value of another graph");
        if (value->producer != node || value->kind != PITH_VALUE_NODE) {
            return fail_node(node, err, "an output has another producer");
        }
    }
    for (size_t i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == PITH_ATTR_GRAPH)
            PITH_TRY(graph_check_subgraph(node, node->attrs[i].graph, err));
    node->mark = 0;
    return PITH_OK;
}

static pith_status graph_check_value(const pith__graph *graph, const pith__value *value,
                                     uint32_t uses, pith_error *err) {
    bool good = value->user_count == uses && value->graph == graph;
    for (size_t i = 0; i < value->user_count && good; i++) {
        pith__use use = value->users[i];
        good = use.node->graph == graph && use.input < use.node->input_count &&
               use.node->inputs[use.input] == value && use.node->places[use.input] == i;
    }
    if (!good) {
        return pith__fail(err, PITH_ERR_FORMAT,
                          "value '" PITH_STR_FMT "': the list of its users is wrong",
                          PITH_STR_ARG(value->name));
    }
    if (value->kind == PITH_VALUE_CONST && !value->type.data) {
        return pith__fail(err, PITH_ERR_FORMAT, "constant '" PITH_STR_FMT "' has no data",
                          PITH_STR_ARG(value->name));
    }
    return PITH_OK;
}

static pith_status graph_check_all(const pith__graph *graph, uint32_t *uses, uint32_t *outputs,
                                   pith_error *err) {
    size_t nodes = 0;
    for (pith__node *node = graph->first; node; node = node->next) node->mark = UINT32_MAX;
    for (pith__node *node = graph->first; node; node = node->next, nodes++)
        PITH_TRY(graph_check_node(graph, node, uses, err));
    if (nodes != graph->node_count)
        return pith__fail(err, PITH_ERR_FORMAT, "the number of nodes is wrong");
    for (size_t i = 0; i < graph->output_count; i++) {
        const pith__value *value = graph->outputs[i];
        if (!value || !owns(graph, value)) {
            return pith__fail(err, PITH_ERR_FORMAT, "output %zu is a value of another graph", i);
        }
        if (value->kind == PITH_VALUE_NODE && !value->producer) {
            return pith__fail(err, PITH_ERR_FORMAT, "output '" PITH_STR_FMT "': no node makes it",
                              PITH_STR_ARG(value->name));
        }
        outputs[value->id]++;
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith__value *value = graph->values[i];
        PITH_TRY(graph_check_value(graph, value, uses[i], err));
        if ((uint32_t)value->output_uses != outputs[i]) {
            return pith__fail(err, PITH_ERR_FORMAT,
                              "value '" PITH_STR_FMT "': the count of its uses as output is wrong",
                              PITH_STR_ARG(value->name));
        }
    }
    return PITH_OK;
}

pith_status pith__graph_check(const pith__graph *graph, pith_error *err) {
    pith__arena scratch;
    pith__arena_init(&scratch, graph->arena->allocator);
    uint32_t *counts = pith__arena_array(&scratch, 2 * graph->value_count, sizeof *counts);
    pith_status status = counts ? graph_check_all(graph, counts, counts + graph->value_count, err)
                                : pith__fail_memory(err, 2 * graph->value_count * sizeof *counts);
    pith__arena_free(&scratch);
    return status;
}
