/* each_text.c - the parts of a graph that do not work row by row run text by text, among steps that
 * do.
 *
 * Attention that was not fused, or any other mixing of tokens, ends in values per token again.
 * Everything between translated values and such a value becomes the body of a pith.EachText. The
 * body sees one text alone and unpadded, which is how the result is defined, so it may hold any
 * operator. The dense layers around it still take all texts together. A body keeps the nodes as
 * they are: its inputs are brought from packed rows to the shapes that the nodes expect. Values
 * that depend only on pairs of positions are computed once, for the longest text, and cut for each
 * text. */
#include "base/dtype.h"
#include "engine/ragged/rule.h"

typedef struct region {
    pith__ragged *ragged;
    const pith__node *last;
    pith__ragged_form form; /* of what it gives */
    pith__graph *body;
    unsigned char *met;                     /* by value id: 0, or where it is made */
    pith__value **made;                     /* by value id: in the body */
    const pith__value **inputs, **captures; /* by token or text; constant or by pairs of
                                               positions */
    int input_count, capture_count;
    int tokens; /* the input that is by token; -1: none is */
} region;

enum { INSIDE = 1, OUTSIDE };

static bool each_text_out_of_memory(region *g) {
    g->ragged->status = pith__fail_memory(g->ragged->err, 0);
    return false;
}

/* ---- what is inside ---- */

/* Can v be computed for the longest text? What is said of that attempt is forgotten. */
static bool by_positions(region *g, const pith__value *v) {
    pith__ragged *r = g->ragged;
    const char *why = r->why;
    const pith__node *culprit = r->culprit;
    bool can = r->forms[v->id].kind == PITH_RAGGED_PAIR &&
               !pith__ragged_form_of(r, &v->type).batch && pith__ragged_pair(r, v, 0);
    r->why = why;
    r->culprit = culprit;
    return can;
}

/* Says what a value that a node of the body reads is to the body: an input that is cut per text (by
 * token or by text), a capture that is the same for all texts, or something that the body makes
 * itself. False if it can be none of these. */
static bool each_text_meet(region *g, const pith__value *v) {
    if (!v || v->kind == PITH_VALUE_CONST || g->met[v->id]) return true;
    pith__ragged_kind kind = g->ragged->forms[v->id].kind;
    bool captured = kind == PITH_RAGGED_CONST || by_positions(g, v);
    bool input = kind == PITH_RAGGED_TOKEN || kind == PITH_RAGGED_TEXT;
    g->met[v->id] = captured || input ? OUTSIDE : INSIDE;
    if (captured) g->captures[g->capture_count++] = v;
    if (kind == PITH_RAGGED_TOKEN) g->tokens = g->input_count;
    if (input) g->inputs[g->input_count++] = v;
    if (g->ragged->status || kind == PITH_RAGGED_SHARED) return false;
    return captured || (input ? pith__dtype_is_plain(v->type.dtype) : v->kind == PITH_VALUE_NODE);
}

static bool is_inside(const region *g, const pith__node *node) {
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && g->met[node->outputs[i]->id] == INSIDE) return true;
    return node == g->last;
}

static bool may_be_inside(const pith__node *node) {
    for (size_t i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == PITH_ATTR_GRAPH || node->attrs[i].kind == PITH_ATTR_GRAPHS)
            return false;
    return node->capture_count == 0 && !(node->op->flags & PITH_OP_RANDOM);
}

/* Walks from the last node back to values that have a translation, and marks what lies between as
 * inside. The list of nodes is in topological order, so each node is met after all of its readers.
 * A body needs an input by token, which gives it the length of the text; one that gives a value per
 * text may do without if it captures nothing. */
static bool each_text_collect(region *g) {
    for (const pith__node *node = g->last; node; node = node->prev) {
        if (!is_inside(g, node)) continue;
        if (!may_be_inside(node)) return false;
        for (int i = 0; i < node->input_count; i++)
            if (!each_text_meet(g, node->inputs[i])) return false;
    }
    return g->tokens >= 0 ||
           (g->input_count > 0 && !g->capture_count && g->form.kind == PITH_RAGGED_TEXT);
}

/* ---- the body ---- */

static pith__value *emit(region *g, const char *op_type, pith__value *a, pith__value *b) {
    pith__value *inputs[] = { a, b };
    pith__node *node = pith__ragged_emit(g->ragged, "", op_type, inputs, b ? 2 : 1);
    return node ? node->outputs[0] : NULL;
}

/* An axis goes from one place to another, the others close up. */
static pith__value *move_axis(region *g, pith__value *v, int rank, int from, int to) {
    int64_t perm[PITH_MAX_RANK] = { 0 };
    if (!v || from == to) return v;
    for (int axis = 0, next = 0; axis < rank; axis++) {
        next += next == from;
        perm[axis] = axis == to ? from : next++;
    }
    v = emit(g, "Transpose", v, NULL);
    if (v && pith__node_set_ints(v->producer, "perm", perm, (size_t)rank))
        each_text_out_of_memory(g);
    return v;
}

/* With or without a batch axis of size 1 in front. */
static pith__value *change_batch(region *g, pith__value *v, const char *op_type) {
    static const int64_t front = 0;
    pith__value *axis = v ? pith__ragged_ints(g->ragged, &front, 1) : NULL;
    return axis ? emit(g, op_type, v, axis) : NULL;
}

/* Rows [text, rest] as the padded graph has them in a batch of 1. */
static pith__value *each_text_unpack(region *g, pith__value *rows, const pith__value *v) {
    const pith__ragged_form *form = &g->ragged->forms[v->id];
    if (form->kind != PITH_RAGGED_TOKEN) return rows;
    rows = move_axis(g, rows, v->type.rank - form->batch, 0, form->sequence - form->batch);
    return form->batch ? change_batch(g, rows, "Unsqueeze") : rows;
}

/* The part of the longest text's pairs that the text at hand has: both sequence axes are cut to its
 * length, which is the number of rows of the input by token. */
static pith__value *each_text_cut(region *g, pith__value *pairs, const pith__value *v) {
    static const int64_t zeros[2];
    int64_t axes[2] = { 0 };
    int count = 0;
    for (int axis = 0; axis < v->type.rank && count < 2; axis++)
        if (pith__dim_equal(v->type.dims[axis], g->ragged->sequence)) axes[count++] = axis;
    pith__value *length = emit(g, "Shape", g->body->inputs[g->tokens], NULL);
    if (length && pith__node_set_int(length->producer, "end", 1)) each_text_out_of_memory(g);
    pith__value *ends = length ? emit(g, "Concat", length, length) : NULL;
    if (ends && pith__node_set_int(ends->producer, "axis", 0)) each_text_out_of_memory(g);
    pith__value *inputs[] = { pairs, pith__ragged_ints(g->ragged, zeros, 2), ends,
                              pith__ragged_ints(g->ragged, axes, 2) };
    if (!inputs[1] || !ends || !inputs[3]) return NULL;
    pith__node *slice = pith__ragged_emit(g->ragged, "", "Slice", inputs, 4);
    return slice ? slice->outputs[0] : NULL;
}

static pith__value *each_text_pack(region *g, pith__value *v, int rank) {
    if (g->form.kind != PITH_RAGGED_TOKEN) return v;
    return move_axis(g, change_batch(g, v, "Squeeze"), rank - 1, g->form.sequence - 1, 0);
}

static pith__value *in_body(region *g, const pith__value *v) {
    if (v && !g->made[v->id] && v->kind == PITH_VALUE_CONST) {
        g->made[v->id] = pith__graph_add_const(g->body, v->name, v->type.data);
        if (!g->made[v->id]) each_text_out_of_memory(g);
    }
    return v ? g->made[v->id] : NULL;
}

static bool add_ports(region *g) {
    g->body->inputs =
        pith__arena_array(g->body->arena, (size_t)g->input_count, sizeof *g->body->inputs);
    g->body->captures =
        pith__arena_array(g->body->arena, (size_t)g->capture_count, sizeof *g->body->captures);
    g->body->outputs = pith__arena_array(g->body->arena, 1, sizeof *g->body->outputs);
    if (!g->body->inputs || !g->body->captures || !g->body->outputs)
        return each_text_out_of_memory(g);
    for (int i = 0; i < g->input_count; i++) {
        pith__value *port = pith__graph_add_value(g->body, g->inputs[i]->name, PITH_VALUE_INPUT);
        if (!port) return each_text_out_of_memory(g);
        g->body->inputs[g->body->input_count++] = port;
        g->made[g->inputs[i]->id] = each_text_unpack(g, port, g->inputs[i]);
        if (g->ragged->status) return false;
    }
    for (int i = 0; i < g->capture_count; i++) {
        pith__value *port =
            pith__graph_add_value(g->body, g->captures[i]->name, PITH_VALUE_CAPTURE);
        if (!port) return each_text_out_of_memory(g);
        g->body->captures[g->body->capture_count++] = port;
        bool pairs = g->ragged->forms[g->captures[i]->id].kind == PITH_RAGGED_PAIR;
        g->made[g->captures[i]->id] = pairs ? each_text_cut(g, port, g->captures[i]) : port;
        if (g->ragged->status) return false;
    }
    return true;
}

static bool add_node(region *g, const pith__node *node) {
    pith__value **inputs =
        pith__arena_array(g->body->arena, (size_t)node->input_count, sizeof *inputs);
    if (!inputs) return each_text_out_of_memory(g);
    for (int i = 0; i < node->input_count; i++) inputs[i] = in_body(g, node->inputs[i]);
    pith__node *clone =
        g->ragged->status ? NULL : pith__ragged_clone(g->ragged, node, inputs, node->input_count);
    if (!clone) return false;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i]) g->made[node->outputs[i]->id] = clone->outputs[i];
    return true;
}

/* While it is made, the body is what r's functions add to. */
static bool make_body(region *g) {
    pith__graph *outer = g->ragged->to;
    const pith__value *out = g->last->outputs[0];
    if (pith__graph_create(&g->body, outer->arena, outer, g->ragged->err))
        return each_text_out_of_memory(g);
    g->ragged->to = g->body;
    bool good = add_ports(g);
    for (const pith__node *node = g->ragged->from->first; good && node != g->last->next;
         node = node->next)
        if (is_inside(g, node)) good = add_node(g, node);
    pith__value *result = good ? each_text_pack(g, g->made[out->id], out->type.rank) : NULL;
    g->ragged->to = outer;
    if (!result || g->ragged->status) return false;
    result->output_uses++;
    g->body->outputs[0] = result;
    g->body->output_count = 1;
    return true;
}

/* ---- the step ---- */

/* The step of the body: offsets, what it reads by token or by text, and what is the same for all
 * texts, which are its captures. */
static bool make_node(region *g, const int64_t *rest, size_t rest_count) {
    pith__ragged *r = g->ragged;
    int count = 1 + g->input_count + g->capture_count;
    pith__value **inputs = pith__arena_array(r->to->arena, (size_t)count, sizeof *inputs);
    int64_t *by_text = pith__arena_array(r->to->arena, (size_t)g->input_count + 1, sizeof *by_text);
    if (!inputs || !by_text) return each_text_out_of_memory(g);
    inputs[0] = r->offsets;
    for (int i = 0; i < g->input_count; i++) {
        inputs[1 + i] = r->values[g->inputs[i]->id];
        by_text[i] = r->forms[g->inputs[i]->id].kind == PITH_RAGGED_TEXT;
    }
    by_text[g->input_count] = g->form.kind == PITH_RAGGED_TEXT;
    for (int i = 0; i < g->capture_count; i++) {
        uint32_t id = g->captures[i]->id;
        inputs[1 + g->input_count + i] = r->pairs[id] ? r->pairs[id] : r->values[id];
    }
    pith__node *node = pith__ragged_emit(r, "pith", "EachText", inputs, count);
    if (!node) return false;
    node->capture_count = g->capture_count;
    node->name = g->last->name;
    if (pith__node_set_graph(node, "body", g->body) ||
        pith__node_set_ints(node, "by_text", by_text, (size_t)g->input_count + 1) ||
        pith__node_set_ints(node, "rest", rest, rest_count))
        return each_text_out_of_memory(g);
    return pith__ragged_set(r, g->last->outputs[0], node->outputs[0]);
}

/* Tries to make the node's only output by a body that runs text by text. The body grows backward
 * from the node until it meets values that have a translation; false if one of them cannot be given
 * to it. The cost is a walk over the graph for each node that has no translation of its own. */
bool pith__ragged_each_text(pith__ragged *r, const pith__node *node) {
    const pith__value *out = node->output_count == 1 ? node->outputs[0] : NULL;
    if (!out || !pith__dtype_is_plain(out->type.dtype)) return false;
    region g = {
        .ragged = r, .last = node, .form = pith__ragged_form_of(r, &out->type), .tokens = -1
    };
    int64_t rest[PITH_MAX_RANK];
    size_t rest_count = 0;
    if (!g.form.batch || (g.form.kind != PITH_RAGGED_TOKEN && g.form.kind != PITH_RAGGED_TEXT))
        return false;
    for (int axis = 1; axis < out->type.rank; axis++)
        if (axis != g.form.sequence) rest[rest_count++] = out->type.dims[axis];
    pith__arena scratch;
    pith__arena_init(&scratch, r->from->arena->allocator);
    size_t values = r->from->value_count;
    g.met = pith__arena_array(&scratch, values, sizeof *g.met);
    g.made = pith__arena_array(&scratch, values, sizeof *g.made);
    g.inputs = pith__arena_array(&scratch, values, sizeof *g.inputs);
    g.captures = pith__arena_array(&scratch, values, sizeof *g.captures);
    bool good = g.met && g.made && g.inputs && g.captures ? each_text_collect(&g)
                                                          : each_text_out_of_memory(&g);
    good = good && make_body(&g) && make_node(&g, rest, rest_count);
    pith__arena_free(&scratch);
    return good;
}
