/* graph.c - making and editing graphs.
 *
 * Every change goes through these functions, which keep user lists and output counts of values right. A user list has
 * no order: an entry is removed by putting the last one in its place. Each node knows the positions of its entries,
 * and each value knows which outputs name it. So an edit costs no more if a value has many users. */
#include "engine/graph/graph.h"

#include <assert.h>

#include "base/error.h"
#include "base/str.h"

pith_status pith_graph_create(pith_graph **graph, pith_arena *arena, pith_graph *parent, pith_error *err) {
    pith_graph *g = pith_arena_array(arena, 1, sizeof *g);
    if (!g) return pith_fail_memory(err, sizeof *g);
    g->arena = arena;
    g->parent = parent;
    if (parent) {
        g->dims = parent->dims;
        g->log = parent->log;
        g->ir_version = parent->ir_version;
    } else if (pith_dims_create(&g->dims, arena)) {
        return pith_fail_memory(err, 0);
    }
    *graph = g;
    return PITH_OK;
}

pith_value *pith_graph_add_value(pith_graph *graph, pith_str name, pith_value_kind kind) {
    pith_value *value = pith_arena_array(graph->arena, 1, sizeof *value);
    if (!value || graph->value_count >= UINT32_MAX - 1) return NULL;
    if (!pith_arena_grow(graph->arena, (void **)&graph->values, graph->value_count, &graph->value_capacity,
                         sizeof *graph->values)) {
        return NULL;
    }
    value->name = name;
    value->kind = kind;
    value->id = (uint32_t)graph->value_count;
    value->graph = graph;
    pith_type_init(&value->type);
    graph->values[graph->value_count++] = value;
    return value;
}

pith_value *pith_graph_add_const(pith_graph *graph, pith_str name, const pith_tensor *tensor) {
    pith_tensor *copy = pith_arena_alloc(graph->arena, sizeof *copy);
    pith_value *value = copy ? pith_graph_add_value(graph, name, PITH_VALUE_CONST) : NULL;
    if (!value) return NULL;
    *copy = *tensor;
    pith_type_of_tensor(&value->type, copy);
    return value;
}

pith_value *pith_graph_add_i64s(pith_graph *graph, pith_str name, const int64_t *items, int64_t count) {
    size_t bytes = (size_t)count * sizeof *items;
    int64_t *copy = pith_arena_alloc(graph->arena, bytes);
    if (!copy) return NULL;
    if (bytes) memcpy(copy, items, bytes);
    pith_tensor tensor = { .data = copy, .bytes = bytes, .dtype = PITH_I64, .rank = 1, .dims = { count } };
    return pith_graph_add_const(graph, name, &tensor);
}

pith_str pith_graph_output_name(const pith_graph *graph, size_t output) {
    return graph->output_names ? graph->output_names[output] : graph->outputs[output]->name;
}

int pith_graph_find_output(const pith_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->output_count; i++)
        if (pith_str_is(pith_graph_output_name(graph, i), name)) return (int)i;
    return -1;
}

pith_value *pith_graph_add_f32(pith_graph *graph, pith_str name, float item) {
    float *copy = pith_arena_alloc(graph->arena, sizeof item);
    if (!copy) return NULL;
    *copy = item;
    pith_tensor tensor = { .data = copy, .bytes = sizeof item, .dtype = PITH_F32 };
    return pith_graph_add_const(graph, name, &tensor);
}

/* ---- uses ---- */

static bool reserve_use(pith_value *value) {
    return pith_arena_grow(value->graph->arena, (void **)&value->users, value->user_count, &value->user_capacity,
                           sizeof *value->users);
}

/* Room must be there. */
static void add_use(pith_value *value, pith_node *node, int input) {
    node->places[input] = (uint32_t)value->user_count;
    value->users[value->user_count++] = (pith_use){ node, input };
}

static void remove_use(pith_value *value, uint32_t place) {
    pith_use last = value->users[--value->user_count];
    value->users[place] = last;
    last.node->places[last.input] = place;
}

pith_status pith_node_set_input(pith_node *node, int input, pith_value *value) {
    assert(input >= 0 && input < node->input_count);
    pith_value *old = node->inputs[input];
    if (old == value) return PITH_OK;
    if (value && !reserve_use(value)) return PITH_ERR_MEMORY;
    if (old) remove_use(old, node->places[input]); /* before add_use, which takes over the input's place in the list */
    if (value) add_use(value, node, input);
    node->inputs[input] = value;
    return PITH_OK;
}

pith_status pith_node_set_input_count(pith_node *node, int count) {
    assert(count >= 0);
    if (count > node->input_count) {
        pith_value **inputs = pith_arena_array(node->graph->arena, (size_t)count, sizeof *inputs);
        uint32_t *places = pith_arena_array(node->graph->arena, (size_t)count, sizeof *places);
        if (!inputs || !places) return PITH_ERR_MEMORY;
        if (node->input_count) {
            memcpy(inputs, node->inputs, (size_t)node->input_count * sizeof *inputs);
            memcpy(places, node->places, (size_t)node->input_count * sizeof *places);
        }
        node->inputs = inputs;
        node->places = places;
    }
    for (int i = count; i < node->input_count; i++)
        if (node->inputs[i]) remove_use(node->inputs[i], node->places[i]);
    node->input_count = count;
    return PITH_OK;
}

/* Chains the outputs that name one value. */
static bool chain_outputs(pith_graph *graph) {
    if (graph->output_next) return true;
    graph->output_next = pith_arena_array(graph->arena, graph->output_count, sizeof *graph->output_next);
    for (size_t i = graph->output_count; graph->output_next && i-- > 0;) {
        graph->output_next[i] = graph->outputs[i]->first_output;
        graph->outputs[i]->first_output = (uint32_t)i + 1;
    }
    return graph->output_next;
}

pith_status pith_value_replace(pith_value *old, pith_value *by) {
    if (old == by) return PITH_OK;
    if (by->kind == PITH_VALUE_NODE && !by->name.size) by->name = old->name;
    while (old->user_count) {
        pith_use use = old->users[old->user_count - 1];
        PITH_TRY(pith_node_set_input(use.node, use.input, by));
    }
    if (old->output_uses == 0) return PITH_OK;
    pith_graph *graph = old->graph;
    if (by->kind == PITH_VALUE_NODE && by->output_uses == 0) {
        by->name = old->name;
        by->hint = old->hint;
    }
    if (!chain_outputs(graph)) return PITH_ERR_MEMORY;
    uint32_t first = old->first_output, last = first;
    for (uint32_t i = first; i; i = graph->output_next[i - 1]) {
        graph->outputs[i - 1] = by;
        last = i;
    }
    graph->output_next[last - 1] = by->first_output;
    by->first_output = first;
    by->output_uses += old->output_uses;
    old->first_output = 0;
    old->output_uses = 0;
    return PITH_OK;
}

/* ---- nodes ---- */

static void link_before(pith_node *node, pith_node *before) {
    pith_graph *graph = node->graph;
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    *(node->prev ? &node->prev->next : &graph->first) = node;
    *(before ? &before->prev : &graph->last) = node;
}

static void unlink_node(pith_node *node) {
    pith_graph *graph = node->graph;
    *(node->prev ? &node->prev->next : &graph->first) = node->next;
    *(node->next ? &node->next->prev : &graph->last) = node->prev;
    node->prev = node->next = NULL;
}

pith_node *pith_graph_add_node(pith_graph *graph, pith_node *before, const char *domain, const char *op_type,
                               pith_value *const *inputs, int input_count, pith_value *const *outputs,
                               int output_count) {
    pith_node_head head = { .name = PITH_STR(""),
                            .domain = pith_str_of(domain),
                            .op_type = pith_str_of(op_type),
                            .overload = PITH_STR(""),
                            .opset = PITH_OPSET_NEWEST,
                            .index = -1 };
    return pith_graph_add_headed(graph, before, &head, inputs, input_count, outputs, output_count);
}

pith_node_head pith_node_head_of(const pith_node *node) {
    return (pith_node_head){ .name = node->name,
                             .domain = node->domain,
                             .op_type = node->op_type,
                             .overload = node->overload,
                             .opset = node->opset,
                             .index = node->index };
}

pith_node *pith_graph_add_headed(pith_graph *graph, pith_node *before, const pith_node_head *head,
                                 pith_value *const *inputs, int input_count, pith_value *const *outputs,
                                 int output_count) {
    pith_node *node = pith_arena_array(graph->arena, 1, sizeof *node);
    if (!node) return NULL;
    node->name = head->name;
    node->domain = head->domain;
    node->op_type = head->op_type;
    node->overload = head->overload;
    node->opset = head->opset;
    node->index = head->index;
    node->graph = graph;
    node->inputs = pith_arena_array(graph->arena, (size_t)input_count, sizeof *node->inputs);
    node->places = pith_arena_array(graph->arena, (size_t)input_count, sizeof *node->places);
    node->outputs = pith_arena_array(graph->arena, (size_t)output_count, sizeof *node->outputs);
    if (!node->inputs || !node->places || !node->outputs) return NULL;
    node->input_count = input_count;
    for (int i = 0; i < output_count; i++) {
        pith_value *value = outputs ? outputs[i] : pith_graph_add_value(graph, PITH_STR(""), PITH_VALUE_NODE);
        if (!value && !outputs) return NULL;
        node->outputs[i] = value;
    }
    for (int i = 0; i < input_count; i++)
        if (inputs[i] && pith_node_set_input(node, i, inputs[i])) return NULL;
    node->output_count = output_count;
    for (int i = 0; i < output_count; i++) {
        if (!node->outputs[i]) continue;
        node->outputs[i]->producer = node;
        node->outputs[i]->kind = PITH_VALUE_NODE;
    }
    link_before(node, before);
    graph->node_count++;
    return node;
}

pith_node *pith_graph_add_like(pith_graph *graph, pith_node *before, const pith_node *like, pith_value *const *inputs,
                               int input_count) {
    pith_node_head head = pith_node_head_of(like);
    pith_attr *attrs = pith_arena_array(graph->arena, like->attr_count, sizeof *attrs);
    pith_value **outputs = pith_arena_array(graph->arena, (size_t)like->output_count, sizeof *outputs);
    if (!attrs || !outputs) return NULL;
    for (int i = 0; i < like->output_count; i++) {
        if (!like->outputs[i]) continue;
        outputs[i] = pith_graph_add_value(graph, PITH_STR(""), PITH_VALUE_NODE);
        if (!outputs[i]) return NULL;
    }
    pith_node *node = pith_graph_add_headed(graph, before, &head, inputs, input_count, outputs, like->output_count);
    if (!node) return NULL;
    if (like->attr_count) memcpy(attrs, like->attrs, like->attr_count * sizeof *attrs);
    node->attrs = attrs;
    node->attr_count = like->attr_count;
    node->op = like->op;
    return node;
}

void pith_node_detach(pith_node *node) {
    for (int i = node->input_count; i-- > 0;)
        if (node->inputs[i]) remove_use(node->inputs[i], node->places[i]);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && node->outputs[i]->producer == node) node->outputs[i]->producer = NULL;
    unlink_node(node);
    node->graph->node_count--;
    node->graph = NULL;
}

void pith_node_remove(pith_node *node) {
    for (int i = 0; i < node->output_count; i++)
        assert(!node->outputs[i] || (node->outputs[i]->user_count == 0 && node->outputs[i]->output_uses == 0));
    pith_node_detach(node);
}

void pith_node_move_before(pith_node *node, pith_node *before) {
    if (node == before || node->next == before) return;
    unlink_node(node);
    link_before(node, before);
}

static bool is_read(const pith_value *value) { return value->user_count || value->output_uses; }

static bool is_used(const pith_node *node) {
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && is_read(node->outputs[i])) return true;
    return false;
}

/* Whether a graph of the node reads its i-th capture; so does, for all that is known, a list of graphs. */
static bool reads_capture(const pith_node *node, int32_t i) {
    for (size_t a = 0; a < node->attr_count; a++) {
        if (node->attrs[a].kind == PITH_ATTR_GRAPHS) return true;
        if (node->attrs[a].kind == PITH_ATTR_GRAPH && is_read(node->attrs[a].graph->captures[i])) return true;
    }
    return false;
}

/* Passes may leave a node captures that its graphs no longer read. Their places stay. */
static void drop_captures(pith_node *node) {
    const int32_t first = node->input_count - node->capture_count;
    for (int32_t i = 0; i < node->capture_count; i++)
        if (node->inputs[first + i] && !reads_capture(node, i)) pith_node_set_input(node, first + i, NULL);
}

size_t pith_graph_sweep(pith_graph *graph) {
    size_t removed = 0;
    for (pith_node *node = graph->last, *prev; node; node = prev) {
        prev = node->prev;
        if (!is_used(node)) {
            pith_node_remove(node);
            removed++;
            continue;
        }
        for (size_t i = 0; i < node->attr_count; i++)
            if (node->attrs[i].kind == PITH_ATTR_GRAPH) removed += pith_graph_sweep(node->attrs[i].graph);
        drop_captures(node);
    }
    return removed;
}

/* ---- order ---- */

void pith_graph_number(pith_graph *graph) {
    uint32_t place = 0;
    for (pith_node *node = graph->first; node; node = node->next) node->mark = ++place;
}

/* Depth first along producers, in the order the nodes had; the stack is the chain of nodes being visited. */
pith_status pith_graph_sort(pith_graph *graph, pith_error *err) {
    enum { NEW, OPEN, DONE };
    typedef struct frame {
        pith_node *node;
        int input;
    } frame;
    pith_arena scratch;
    pith_arena_init(&scratch, graph->arena->allocator);
    frame *stack = pith_arena_array(&scratch, graph->node_count + 1, sizeof *stack);
    pith_node **order = pith_arena_array(&scratch, graph->node_count + 1, sizeof *order);
    pith_status status = PITH_OK;
    size_t done = 0;
    if (!stack || !order) {
        status = pith_fail_memory(err, graph->node_count * sizeof *stack);
        goto out;
    }
    for (pith_node *n = graph->first; n; n = n->next) n->mark = NEW;
    for (pith_node *root = graph->first; root; root = root->next) {
        if (root->mark != NEW) continue;
        size_t depth = 0;
        stack[depth++] = (frame){ root, 0 };
        root->mark = OPEN;
        while (depth) {
            frame *top = &stack[depth - 1];
            if (top->input == top->node->input_count) {
                top->node->mark = DONE;
                order[done++] = top->node;
                depth--;
                continue;
            }
            const pith_value *value = top->node->inputs[top->input++];
            pith_node *from = value ? value->producer : NULL;
            if (!from || from->mark == DONE) continue;
            if (from->mark == OPEN) {
                char place[256];
                status = pith_fail(err, PITH_ERR_FORMAT, "%s: is part of a cycle",
                                   pith_node_place(from, place, sizeof place));
                goto out;
            }
            from->mark = OPEN;
            stack[depth++] = (frame){ from, 0 };
        }
    }
    graph->first = graph->last = NULL;
    for (size_t i = 0; i < done; i++) link_before(order[i], NULL);
out:
    pith_arena_free(&scratch);
    return status;
}
