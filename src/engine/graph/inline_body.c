/* inline_body.c - replaces a node by a body of nodes: model-local functions, and branches whose
 * condition is known; and copies a part of a graph.
 *
 * Values are mapped by their id in the body. An output of the node is given to the copied node that
 * makes it. If an output is an input, a constant or a second name of a value, its users are moved
 * instead. */
#include "base/error.h"
#include "engine/graph/graph.h"

typedef struct cloner {
    pith__arena *arena;
    const pith__node *call; /* whose attributes stand behind references; NULL: there are none */
    const pith__function *function;
    pith_error *err;
} cloner;

static pith_status inline_out_of_memory(cloner *c) { return pith__fail_memory(c->err, 0); }

static pith_status clone_graph(cloner *c, pith__graph **out, const pith__graph *from,
                               pith__graph *parent);

/* Copies the attribute, with what stands behind a reference; *present is false if that is left out
 * in the call. */
static pith_status clone_attr(cloner *c, pith__attr *out, bool *present, const pith__attr *attr,
                              pith__graph *parent) {
    const pith__attr *from = attr;
    *present = true;
    if (attr->reference.size && c->call) {
        from = NULL;
        for (size_t i = 0; i < c->call->attr_count && !from; i++)
            if (pith__str_eq(c->call->attrs[i].name, attr->reference)) from = &c->call->attrs[i];
        const size_t defaults = c->function ? c->function->default_count : 0;
        for (size_t i = 0; i < defaults && !from; i++)
            if (pith__str_eq(c->function->defaults[i].name, attr->reference))
                from = &c->function->defaults[i];
        if (!from) {
            *present = false;
            return PITH_OK;
        }
    }
    *out = *from;
    out->name = attr->name;
    if (from->kind == PITH_ATTR_GRAPH) return clone_graph(c, &out->graph, from->graph, parent);
    if (from->kind != PITH_ATTR_GRAPHS) return PITH_OK;
    pith__graph **graphs = pith__arena_array(c->arena, from->count, sizeof *graphs);
    if (!graphs) return inline_out_of_memory(c);
    for (size_t i = 0; i < from->count; i++)
        PITH_TRY(clone_graph(c, &graphs[i], from->graphs[i], parent));
    out->graphs = graphs;
    return PITH_OK;
}

/* map has an entry per value of the node's graph; outputs that are not mapped yet become new
 * values. */
static pith_status clone_node(cloner *c, pith__graph *to, pith__node *before,
                              const pith__node *from, pith__value **map) {
    pith__value **inputs = pith__arena_array(c->arena, (size_t)from->input_count, sizeof *inputs);
    pith__value **outputs =
        pith__arena_array(c->arena, (size_t)from->output_count, sizeof *outputs);
    pith__attr *attrs = pith__arena_array(c->arena, from->attr_count, sizeof *attrs);
    if (!inputs || !outputs || !attrs) return inline_out_of_memory(c);
    for (int i = 0; i < from->input_count; i++)
        inputs[i] = from->inputs[i] ? map[from->inputs[i]->id] : NULL;
    for (int i = 0; i < from->output_count; i++) {
        if (!from->outputs[i]) continue;
        pith__value **made = &map[from->outputs[i]->id];
        if (!*made) *made = pith__graph_add_value(to, from->outputs[i]->name, PITH_VALUE_NODE);
        if (!*made) return inline_out_of_memory(c);
        outputs[i] = *made;
    }
    pith__node_head head = pith__node_head_of(from);
    pith__node *node = pith__graph_add_headed(to, before, &head, inputs, from->input_count, outputs,
                                              from->output_count);
    if (!node) return inline_out_of_memory(c);
    node->op = from->op;
    node->capture_count = from->capture_count;
    node->packed = from->packed;
    node->packed_count = from->packed_count;
    node->attrs = attrs;
    for (size_t i = 0; i < from->attr_count; i++) {
        bool present;
        PITH_TRY(clone_attr(c, &attrs[node->attr_count], &present, &from->attrs[i], to));
        node->attr_count += present;
    }
    return PITH_OK;
}

/* Constants and values without a producer; those in the map already stay. */
static pith_status clone_values(cloner *c, pith__graph *to, const pith__graph *from,
                                pith__value **map) {
    for (size_t i = 0; i < from->value_count; i++) {
        const pith__value *value = from->values[i];
        if (map[i] || value->kind == PITH_VALUE_NODE) continue;
        if (value->kind == PITH_VALUE_CONST && value->user_count == 0 && value->output_uses == 0)
            continue;
        map[i] = pith__graph_add_value(to, value->name, value->kind);
        if (!map[i]) return inline_out_of_memory(c);
        map[i]->type = value->type;
        map[i]->hint = value->hint;
        map[i]->fixed = value->fixed;
    }
    return PITH_OK;
}

static pith_status clone_list(cloner *c, pith__value ***out, pith__value *const *from, size_t count,
                              pith__value *const *map) {
    *out = pith__arena_array(c->arena, count, sizeof **out);
    if (!*out) return inline_out_of_memory(c);
    for (size_t i = 0; i < count; i++) (*out)[i] = map[from[i]->id];
    return PITH_OK;
}

static pith_status clone_graph(cloner *c, pith__graph **out, const pith__graph *from,
                               pith__graph *parent) {
    pith__graph *to;
    PITH_TRY(pith__graph_create(&to, c->arena, parent, c->err));
    pith__value **map = pith__arena_array(c->arena, from->value_count, sizeof *map);
    if (!map) return inline_out_of_memory(c);
    to->name = from->name;
    to->opsets = from->opsets;
    to->opset_count = from->opset_count;
    PITH_TRY(clone_values(c, to, from, map));
    for (const pith__node *node = from->first; node; node = node->next)
        PITH_TRY(clone_node(c, to, NULL, node, map));
    PITH_TRY(clone_list(c, &to->inputs, from->inputs, from->input_count, map));
    PITH_TRY(clone_list(c, &to->captures, from->captures, from->capture_count, map));
    PITH_TRY(clone_list(c, &to->outputs, from->outputs, from->output_count, map));
    to->input_count = from->input_count;
    to->capture_count = from->capture_count;
    to->output_count = from->output_count;
    for (size_t i = 0; i < to->output_count; i++)
        if (to->outputs[i]) to->outputs[i]->output_uses++;
    *out = to;
    return PITH_OK;
}

/* The node goes first, and its outputs are given to the copies that make them, so their users need
 * no change. What cannot be given that way (an output that is an input, a constant, or a second
 * name) has its users moved at the end. Copies stand where the node stood. The cost is that of
 * copying the body, plus a walk over the users that move. */
pith_status pith__graph_inline(pith__node *node, const pith__graph *body,
                               pith__value *const *inputs, const pith__function *function,
                               pith_error *err) {
    pith__graph *graph = node->graph;
    cloner c = { graph->arena, function ? node : NULL, function, err };
    pith__value **map = pith__arena_array(c.arena, body->value_count, sizeof *map);
    bool *absent = pith__arena_array(c.arena, body->value_count, sizeof *absent);
    if (!map || !absent) return inline_out_of_memory(&c);
    for (size_t i = 0; i < body->input_count; i++) {
        map[body->inputs[i]->id] = inputs[i];
        absent[body->inputs[i]->id] = !inputs[i];
    }
    for (size_t i = 0; i < body->capture_count; i++) {
        map[body->captures[i]->id] = node->inputs[node->input_count - node->capture_count + (int)i];
    }
    for (int i = 0; i < node->output_count && (size_t)i < body->output_count; i++) {
        const pith__value *value = body->outputs[i];
        if (!node->outputs[i]) continue;
        if (absent[value->id]) {
            return pith__fail(err, PITH_ERR_FORMAT,
                              "output %d of the body is an input that is missing", i);
        }
        if (value->kind == PITH_VALUE_NODE && !map[value->id]) map[value->id] = node->outputs[i];
    }
    pith__node *before = node->next;
    pith__node_detach(node);
    for (size_t i = 0; i < body->value_count; i++) {
        const pith__value *value = body->values[i];
        if (map[i] || value->kind != PITH_VALUE_CONST) continue;
        if (value->user_count == 0 && value->output_uses == 0) continue;
        map[i] = pith__graph_add_const(graph, value->name, value->type.data);
        if (!map[i]) return inline_out_of_memory(&c);
    }
    for (const pith__node *n = body->first; n; n = n->next)
        PITH_TRY(clone_node(&c, graph, before, n, map));
    for (int i = 0; i < node->output_count && (size_t)i < body->output_count; i++) {
        if (!node->outputs[i]) continue;
        pith__value *value = map[body->outputs[i]->id];
        if (!value)
            return pith__fail(err, PITH_ERR_FORMAT, "output %d of the body is made by no node", i);
        if (value != node->outputs[i] && pith__value_replace(node->outputs[i], value))
            return inline_out_of_memory(&c);
    }
    return PITH_OK;
}

/* ---- a part ---- */

/* A type of an input, with sizes as numbers and symbols of the copy's own. */
static pith_status extract_type(pith__type *type, pith__graph *to, const pith__graph *from,
                                const pith__value *value, pith_error *err) {
    pith__dim dims[PITH_MAX_RANK];
    const pith__type old = *type;
    for (int axis = 0; axis < old.rank; axis++) {
        pith__dim d = old.dims[axis];
        int32_t symbol = pith__dim_symbol_index(from->dims, d);
        if (pith__dim_known(d)) {
            dims[axis] = d;
            continue;
        }
        pith_str name = symbol >= 0 ? pith__dims_symbol_name(from->dims, symbol)
                                    : pith__arena_printf(to->arena, PITH_STR_FMT ".%d",
                                                         PITH_STR_ALL(value->name), axis);
        dims[axis] = name.data ? pith__dim_symbol(to->dims, name) : PITH_DIM_UNKNOWN;
        if (dims[axis] == PITH_DIM_UNKNOWN) return pith__fail_memory(err, name.size);
    }
    pith__type_set(type, old.dtype, old.rank, dims);
    type->item_dtype = old.item_dtype;
    type->data = old.data;
    return PITH_OK;
}

static pith_status extract_types(pith__graph *to, const pith__graph *from, pith_error *err) {
    for (size_t i = 0; i < to->input_count; i++) {
        pith__value *value = to->inputs[i];
        PITH_TRY(extract_type(&value->type, to, from, value, err));
        if (!value->hint) continue;
        pith__type *hint = pith__arena_alloc(to->arena, sizeof *hint);
        if (!hint) return pith__fail_memory(err, sizeof *hint);
        *hint = *value->hint;
        PITH_TRY(extract_type(hint, to, from, value, err));
        value->hint = hint;
    }
    return PITH_OK;
}

/* What a main graph has beside its nodes and values, and what any copy of it needs. */
static void clone_surroundings(pith__graph *to, const pith__graph *from) {
    to->log = from->log;
    to->making = from->making;
    to->operators = from->operators;
    to->producer = from->producer;
    to->ir_version = from->ir_version;
    to->compiled = from->compiled;
}

/* Copies everything and sweeps what only other outputs needed: simpler than finding it beforehand,
 * and the copy of a node is cheap next to what is done with a part. Sizes become symbols of the
 * copy, since the part has a table of sizes of its own. */
pith_status pith__graph_extract(pith__graph **part, const pith__graph *graph, size_t output,
                                pith__arena *arena, pith_error *err) {
    cloner c = { arena, NULL, NULL, err };
    pith__graph *to;
    PITH_TRY(clone_graph(&c, &to, graph, NULL));
    for (size_t i = 0; i < to->output_count; i++) to->outputs[i]->output_uses--;
    to->outputs[0] = to->outputs[output];
    to->output_count = 1;
    to->outputs[0]->output_uses++;
    clone_surroundings(to, graph);
    pith__graph_sweep(to);
    size_t kept = 0;
    for (size_t i = 0; i < to->input_count; i++)
        if (to->inputs[i]->user_count || to->inputs[i]->output_uses)
            to->inputs[kept++] = to->inputs[i];
    to->input_count = kept;
    *part = to;
    return extract_types(to, graph, err);
}

pith_status pith__graph_copy(pith__graph **copy, const pith__graph *graph, pith__arena *arena,
                             pith_error *err) {
    cloner c = { arena, NULL, NULL, err };
    pith__graph *to;
    PITH_TRY(clone_graph(&c, &to, graph, NULL));
    clone_surroundings(to, graph);
    to->devices = graph->devices;
    to->apart = graph->apart;
    to->contradictory = graph->contradictory;
    to->output_names = graph->output_names;
    *copy = to;
    return extract_types(to, graph, err);
}
