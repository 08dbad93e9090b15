/* graph.c - making and editing graphs.
 *
 * Every change goes through these functions, which keep user lists and output counts of values
 * right. A user list has no order: an entry is removed by putting the last one in its place. Each
 * node knows the positions of its entries, and each value knows which outputs name it. So an edit
 * costs no more if a value has many users. */
#include "engine/graph/graph.h"

#include <assert.h>

#include "base/error.h"
#include "base/os/threads.h"
#include "base/str.h"

pith_status pith__graph_create(pith__graph **graph, pith__arena *arena, pith__graph *parent,
                               pith_error *err) {
    pith__graph *g = pith__arena_array(arena, 1, sizeof *g);
    if (!g) return pith__fail_memory(err, sizeof *g);
    g->arena = arena;
    g->parent = parent;
    if (parent) {
        g->dims = parent->dims;
        g->log = parent->log;
        g->ir_version = parent->ir_version;
    } else if (pith__dims_create(&g->dims, arena)) {
        return pith__fail_memory(err, 0);
    }
    *graph = g;
    return PITH_OK;
}

static const pith__making *graph_making(const pith__graph *graph) {
    while (graph->parent) graph = graph->parent;
    return graph->making;
}

pith__stop *pith__graph_stop(const pith__graph *graph) {
    const pith__making *making = graph_making(graph);
    return making ? making->stop : NULL;
}

struct pith__progress *pith__graph_told(const pith__graph *graph) {
    const pith__making *making = graph_making(graph);
    return making ? making->told : NULL;
}

int pith__graph_threads(const pith__graph *graph) {
    const pith__making *making = graph_making(graph);
    return pith__threads_count(making ? making->threads : 0);
}

pith__value *pith__graph_add_value(pith__graph *graph, pith_str name, pith__value_kind kind) {
    pith__value *value = pith__arena_array(graph->arena, 1, sizeof *value);
    if (!value || graph->value_count >= UINT32_MAX - 1) return NULL;
    if (!pith__arena_grow(graph->arena, (void **)&graph->values, graph->value_count,
                          &graph->value_capacity, sizeof *graph->values)) {
        return NULL;
    }
    value->name = name;
    value->kind = kind;
    value->id = (uint32_t)graph->value_count;
    value->graph = graph;
    pith__type_init(&value->type);
    graph->values[graph->value_count++] = value;
    return value;
}

pith__value *pith__graph_add_const(pith__graph *graph, pith_str name, const pith_tensor *tensor) {
    pith_tensor *copy = pith__arena_alloc(graph->arena, sizeof *copy);
    pith__value *value = copy ? pith__graph_add_value(graph, name, PITH_VALUE_CONST) : NULL;
    if (!value) return NULL;
    *copy = *tensor;
    pith__type_of_tensor(&value->type, copy);
    return value;
}

pith__value *pith__graph_add_i64s(pith__graph *graph, pith_str name, const int64_t *items,
                                  int64_t count) {
    size_t bytes = (size_t)count * sizeof *items;
    int64_t *copy = pith__arena_alloc(graph->arena, bytes);
    if (!copy) return NULL;
    if (bytes) memcpy(copy, items, bytes);
    pith_tensor tensor = {
        .data = copy, .bytes = bytes, .dtype = PITH_I64, .rank = 1, .dims = { count }
    };
    return pith__graph_add_const(graph, name, &tensor);
}

pith_str pith__graph_output_name(const pith__graph *graph, size_t output) {
    return graph->output_names ? graph->output_names[output] : graph->outputs[output]->name;
}

int pith__graph_find_output(const pith__graph *graph, const char *name) {
    for (size_t i = 0; i < graph->output_count; i++)
        if (pith__str_is(pith__graph_output_name(graph, i), name)) return (int)i;
    return -1;
}

pith__value *pith__graph_add_f32(pith__graph *graph, pith_str name, float item) {
    float *copy = pith__arena_alloc(graph->arena, sizeof item);
    if (!copy) return NULL;
    *copy = item;
    pith_tensor tensor = { .data = copy, .bytes = sizeof item, .dtype = PITH_F32 };
    return pith__graph_add_const(graph, name, &tensor);
}

/* ---- uses ---- */

static bool reserve_use(pith__value *value) {
    return pith__arena_grow(value->graph->arena, (void **)&value->users, value->user_count,
                            &value->user_capacity, sizeof *value->users);
}

/* Room must be there. */
static void add_use(pith__value *value, pith__node *node, int input) {
    node->places[input] = (uint32_t)value->user_count;
    value->users[value->user_count++] = (pith__use){ node, input };
}

static void remove_use(pith__value *value, uint32_t place) {
    pith__use last = value->users[--value->user_count];
    value->users[place] = last;
    last.node->places[last.input] = place;
}

pith_status pith__node_set_input(pith__node *node, int input, pith__value *value) {
    assert(input >= 0 && input < node->input_count);
    pith__value *old = node->inputs[input];
    if (old == value) return PITH_OK;
    if (value && !reserve_use(value)) return PITH_ERR_MEMORY;
    if (old)
        remove_use(old, node->places[input]); /* before add_use, which takes over the input's
                                                      place in the list */
    if (value) add_use(value, node, input);
    node->inputs[input] = value;
    return PITH_OK;
}

pith_status pith__node_set_input_count(pith__node *node, int count) {
    assert(count >= 0);
    if (count > node->input_count) {
        pith__value **inputs = pith__arena_array(node->graph->arena, (size_t)count, sizeof *inputs);
        uint32_t *places = pith__arena_array(node->graph->arena, (size_t)count, sizeof *places);
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
static bool chain_outputs(pith__graph *graph) {
    if (graph->output_next) return true;
    graph->output_next =
        pith__arena_array(graph->arena, graph->output_count, sizeof *graph->output_next);
    if (!graph->output_next) return false;
    for (size_t i = graph->output_count; i-- > 0;) {
        graph->output_next[i] = graph->outputs[i]->first_output;
        graph->outputs[i]->first_output = (uint32_t)i + 1;
    }
    return true;
}

pith_status pith__value_replace(pith__value *old, pith__value *by) {
    if (old == by) return PITH_OK;
    if (by->kind == PITH_VALUE_NODE && !by->name.size) by->name = old->name;
    while (old->user_count) {
        pith__use use = old->users[old->user_count - 1];
        PITH_TRY(pith__node_set_input(use.node, use.input, by));
    }
    if (old->output_uses == 0) return PITH_OK;
    pith__graph *graph = old->graph;
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

static void link_before(pith__node *node, pith__node *before) {
    pith__graph *graph = node->graph;
    node->next = before;
    node->prev = before ? before->prev : graph->last;
    *(node->prev ? &node->prev->next : &graph->first) = node;
    *(before ? &before->prev : &graph->last) = node;
}

static void unlink_node(pith__node *node) {
    pith__graph *graph = node->graph;
    *(node->prev ? &node->prev->next : &graph->first) = node->next;
    *(node->next ? &node->next->prev : &graph->last) = node->prev;
    node->prev = node->next = NULL;
}

pith__node *pith__graph_add_node(pith__graph *graph, pith__node *before, const char *domain,
                                 const char *op_type, pith__value *const *inputs, int input_count,
                                 pith__value *const *outputs, int output_count) {
    pith__node_head head = { .name = PITH_STR(""),
                             .domain = pith__str_of(domain),
                             .op_type = pith__str_of(op_type),
                             .overload = PITH_STR(""),
                             .opset = PITH_OPSET_NEWEST,
                             .index = -1 };
    return pith__graph_add_headed(graph, before, &head, inputs, input_count, outputs, output_count);
}

pith__node_head pith__node_head_of(const pith__node *node) {
    return (pith__node_head){ .name = node->name,
                              .domain = node->domain,
                              .op_type = node->op_type,
                              .overload = node->overload,
                              .opset = node->opset,
                              .index = node->index };
}

/* After a failure the node is in no list, but inputs that were set may count it as a user: a graph
 * that ran out of memory is only good for being freed. */
pith__node *pith__graph_add_headed(pith__graph *graph, pith__node *before,
                                   const pith__node_head *head, pith__value *const *inputs,
                                   int input_count, pith__value *const *outputs, int output_count) {
    pith__node *node = pith__arena_array(graph->arena, 1, sizeof *node);
    if (!node) return NULL;
    node->name = head->name;
    node->domain = head->domain;
    node->op_type = head->op_type;
    node->overload = head->overload;
    node->opset = head->opset;
    node->index = head->index;
    node->graph = graph;
    node->inputs = pith__arena_array(graph->arena, (size_t)input_count, sizeof *node->inputs);
    node->places = pith__arena_array(graph->arena, (size_t)input_count, sizeof *node->places);
    node->outputs = pith__arena_array(graph->arena, (size_t)output_count, sizeof *node->outputs);
    if (!node->inputs || !node->places || !node->outputs) return NULL;
    node->input_count = input_count;
    for (int i = 0; i < output_count; i++) {
        pith__value *value =
            outputs ? outputs[i] : pith__graph_add_value(graph, PITH_STR(""), PITH_VALUE_NODE);
        if (!value && !outputs) return NULL;
        node->outputs[i] = value;
    }
    for (int i = 0; i < input_count; i++)
        if (inputs[i] && pith__node_set_input(node, i, inputs[i])) return NULL;
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

pith__node *pith__graph_add_like(pith__graph *graph, pith__node *before, const pith__node *like,
                                 pith__value *const *inputs, int input_count) {
    pith__node_head head = pith__node_head_of(like);
    pith__attr *attrs = pith__arena_array(graph->arena, like->attr_count, sizeof *attrs);
    pith__value **outputs =
        pith__arena_array(graph->arena, (size_t)like->output_count, sizeof *outputs);
    if (!attrs || !outputs) return NULL;
    for (int i = 0; i < like->output_count; i++) {
        if (!like->outputs[i]) continue;
        outputs[i] = pith__graph_add_value(graph, PITH_STR(""), PITH_VALUE_NODE);
        if (!outputs[i]) return NULL;
    }
    pith__node *node = pith__graph_add_headed(graph, before, &head, inputs, input_count, outputs,
                                              like->output_count);
    if (!node) return NULL;
    if (like->attr_count) memcpy(attrs, like->attrs, like->attr_count * sizeof *attrs);
    node->attrs = attrs;
    node->attr_count = like->attr_count;
    node->op = like->op;
    return node;
}

void pith__node_detach(pith__node *node) {
    for (int i = node->input_count; i-- > 0;)
        if (node->inputs[i]) remove_use(node->inputs[i], node->places[i]);
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && node->outputs[i]->producer == node)
            node->outputs[i]->producer = NULL;
    unlink_node(node);
    node->graph->node_count--;
    node->graph = NULL;
}

void pith__node_remove(pith__node *node) {
    for (int i = 0; i < node->output_count; i++)
        assert(!node->outputs[i] ||
               (node->outputs[i]->user_count == 0 && node->outputs[i]->output_uses == 0));
    pith__node_detach(node);
}

void pith__node_move_before(pith__node *node, pith__node *before) {
    if (node == before || node->next == before) return;
    unlink_node(node);
    link_before(node, before);
}

static bool is_read(const pith__value *value) { return value->user_count || value->output_uses; }

static bool is_used(const pith__node *node) {
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && is_read(node->outputs[i])) return true;
    return false;
}

/* Whether a graph of the node reads its i-th capture; so does, for all that is known, a list of
 * graphs. */
static bool reads_capture(const pith__node *node, int32_t i) {
    for (size_t a = 0; a < node->attr_count; a++) {
        if (node->attrs[a].kind == PITH_ATTR_GRAPHS) return true;
        if (node->attrs[a].kind == PITH_ATTR_GRAPH && is_read(node->attrs[a].graph->captures[i]))
            return true;
    }
    return false;
}

/* Passes may leave a node captures that its graphs no longer read. Their places stay. */
static void drop_captures(pith__node *node) {
    const int32_t first = node->input_count - node->capture_count;
    for (int32_t i = 0; i < node->capture_count; i++)
        if (node->inputs[first + i] && !reads_capture(node, i))
            pith__node_set_input(node, first + i, NULL);
}

size_t pith__graph_sweep(pith__graph *graph) {
    size_t removed = 0;
    for (pith__node *node = graph->last, *prev; node; node = prev) {
        prev = node->prev;
        if (!is_used(node)) {
            pith__node_remove(node);
            removed++;
            continue;
        }
        for (size_t i = 0; i < node->attr_count; i++)
            if (node->attrs[i].kind == PITH_ATTR_GRAPH)
                removed += pith__graph_sweep(node->attrs[i].graph);
        drop_captures(node);
    }
    return removed;
}

/* ---- order ---- */

void pith__graph_number(pith__graph *graph) {
    uint32_t place = 0;
    for (pith__node *node = graph->first; node; node = node->next) node->mark = ++place;
}

/* Depth first along producers, in the order the nodes had; the stack is the chain of nodes being
 * visited. */
pith_status pith__graph_sort(pith__graph *graph, pith_error *err) {
    enum { NEW, OPEN, DONE };
    typedef struct frame {
        pith__node *node;
        int input;
    } frame;
    pith__arena scratch;
    pith__arena_init(&scratch, graph->arena->allocator);
    frame *stack = pith__arena_array(&scratch, graph->node_count + 1, sizeof *stack);
    pith__node **order = pith__arena_array(&scratch, graph->node_count + 1, sizeof *order);
    pith_status status = PITH_OK;
    size_t done = 0;
    if (!stack || !order) {
        status = pith__fail_memory(err, graph->node_count * sizeof *stack);
        goto out;
    }
    for (pith__node *n = graph->first; n; n = n->next) n->mark = NEW;
    for (pith__node *root = graph->first; root; root = root->next) {
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
            const pith__value *value = top->node->inputs[top->input++];
            pith__node *from = value ? value->producer : NULL;
            if (!from || from->mark == DONE) continue;
            if (from->mark == OPEN) {
                char place[256];
                status = pith__fail(err, PITH_ERR_FORMAT, "%s: is part of a cycle",
                                    pith__node_place(from, place, sizeof place));
                goto out;
            }
            from->mark = OPEN;
            stack[depth++] = (frame){ from, 0 };
        }
    }
    graph->first = graph->last = NULL;
    for (size_t i = 0; i < done; i++) link_before(order[i], NULL);
out:
    pith__arena_free(&scratch);
    return status;
}
