/* pass_channels_last.c - between 8-bit convolutions, pictures have their channels as the last axis.
 *
 * QLinearConv computes with channels last and turns its input and its result. A value that only
 * convolutions and operators without regard for places read (QuantizeLinear, an elementwise Add of
 * equal shapes) need not be turned: the pass finds the largest set of such values and makes all
 * that write or read them anew, convolutions as pith.QLinearConvLast and maximum pools as
 * pith.MaxPoolLast. The bits are the same. */
#include "engine/ops/shared/conv_int.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

typedef struct layouts {
    pith__graph *graph;
    bool *last;          /* by value id, also of the values that the pass makes */
    pith__value **taken; /* values whose marks were taken away, but whose nodes do not know it
                            yet */
    size_t taken_count;
    pith_error *err;
} layouts;

static bool is_conv(const pith__node *node) {
    const pith__value *w = pith__match_is(node, "QLinearConv") ? pith__match_input(node, 3) : NULL;
    return w && pith__match_const(w) && w->type.rank == 4 && node->inputs[0]->type.rank == 4 &&
           pith__conv_int_suits(&w->type, pith__node_int(node, "group", 1));
}

static bool is_pool(const pith__node *node) {
    return pith__match_is(node, "MaxPool") && node->inputs[0]->type.rank == 4 &&
           !pith__node_output(node, 1) &&
           (node->inputs[0]->type.dtype == PITH_U8 || node->inputs[0]->type.dtype == PITH_I8) &&
           pith__op_find(PITH_STR("pith"), PITH_STR("MaxPoolLast"));
}

/* Whether each place of the output depends on that place of the inputs alone, numbers for all
 * places aside. Random numbers depend on the order of the places. */
static bool is_placewise(const pith__node *node) {
    const bool quantizes =
        pith__match_is(node, "QuantizeLinear") || pith__match_is(node, "DequantizeLinear");
    if (!node->op || node->output_count != 1 || !node->outputs[0] || node->capture_count ||
        !(quantizes || (node->op->flags & PITH_OP_ELEMENTWISE)) ||
        (node->op->flags & PITH_OP_RANDOM) || pith__node_int(node, "block_size", 0))
        return false;
    const pith__type *y = &node->outputs[0]->type;
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *x = node->inputs[i];
        double number;
        if (x && !pith__match_scalar(x, &number) &&
            (!pith__match_same_shape(&x->type, y) || pith__match_const(x)))
            return false;
    }
    return y->rank == 4;
}

static bool is_candidate(const pith__value *v) {
    return v && v->producer && !v->output_uses && v->type.rank == 4 &&
           (is_conv(v->producer) || is_pool(v->producer) || is_placewise(v->producer));
}

static void layout_take(layouts *l, pith__value *v) {
    if (!v || !l->last[v->id]) return;
    l->last[v->id] = false;
    l->taken[l->taken_count++] = v;
}

/* Takes the marks away from a node's values that it cannot read or write so. Once it has, the
 * node's own mark is set: there is no more to take. */
static void settle(layouts *l, pith__node *node) {
    const bool conv = is_conv(node);
    bool agree = !node->mark && !conv && (is_placewise(node) || is_pool(node));
    for (int i = 0; agree && i < node->input_count; i++)
        agree =
            !node->inputs[i] || pith__match_const(node->inputs[i]) || l->last[node->inputs[i]->id];
    agree = agree && l->last[node->outputs[0]->id];
    if (agree || node->mark) return;
    node->mark = 1;
    for (int i = conv; i < node->input_count; i++) layout_take(l, node->inputs[i]);
    if (conv) return;
    for (int i = 0; i < node->output_count; i++) layout_take(l, node->outputs[i]);
}

/* Writes the node anew, with what it reads and writes turned where that is marked. */
static pith_status layout_make(const layouts *l, pith__node *node) {
    const bool conv = is_conv(node), x_last = l->last[node->inputs[0]->id],
               y_last = l->last[node->outputs[0]->id];
    pith__value *old = node->outputs[0];
    pith__node_head head = pith__node_head_of(node);
    if (conv || is_pool(node)) {
        head.domain = PITH_STR("pith");
        head.opset = PITH_OPSET_NEWEST;
    }
    if (conv) head.op_type = PITH_STR("QLinearConvLast");
    if (is_pool(node)) head.op_type = PITH_STR("MaxPoolLast");
    pith__node *made =
        pith__graph_add_headed(l->graph, node, &head, node->inputs, node->input_count, NULL, 1);
    if (!made) return pith__fail_memory(l->err, sizeof *made);
    pith_status status = pith__node_copy_attrs(made, node);
    if (!status && conv) status = pith__node_set_int(made, "x_last", x_last);
    if (!status && conv) status = pith__node_set_int(made, "y_last", y_last);
    if (status) return pith__fail_memory(l->err, sizeof *made);
    PITH_TRY(pith__op_bind_node(made, l->err));
    pith__type *type = &made->outputs[0]->type;
    *type = old->type;
    if (y_last)
        for (int i = 1; i < 4; i++) type->dims[i] = old->type.dims[i % 3 + 1];
    l->last[made->outputs[0]->id] = y_last;
    return pith__match_replace(old, made->outputs[0], l->err);
}

/* Finds the largest set of values that can have their channels last. It begins with all candidates
 * and takes marks away where a node cannot read or write one so, then looks at the neighbours
 * again, until nothing changes: the greatest fixed point, which is the same in any order. Every
 * value loses its mark once at most, so the time is that of a walk over the edges. Returns the
 * number of marks left. */
static size_t layout_mark(layouts *l) {
    size_t count = 0;
    for (size_t i = 0; i < l->graph->value_count; i++)
        l->last[i] = is_candidate(l->graph->values[i]);
    for (pith__node *node = l->graph->first; node; node = node->next) node->mark = 0;
    for (pith__node *node = l->graph->first; node; node = node->next) settle(l, node);
    while (l->taken_count) {
        const pith__value *v = l->taken[--l->taken_count];
        settle(l, v->producer);
        for (size_t i = 0; i < v->user_count; i++) settle(l, v->users[i].node);
    }
    for (size_t i = 0; i < l->graph->value_count; i++) count += l->last[i];
    return count;
}

static pith_status channels_last_run(pith__opt *o, size_t *changes) {
    pith__arena scratch;
    if (!pith__op_find(PITH_STR("pith"), PITH_STR("QLinearConvLast"))) return PITH_OK;
    pith__arena_init(&scratch, o->allocator);
    const size_t most = o->graph->value_count + o->graph->node_count;
    layouts l = { .graph = o->graph, .err = o->err };
    l.last = pith__arena_array(&scratch, most, sizeof *l.last);
    l.taken = pith__arena_array(&scratch, o->graph->value_count, sizeof *l.taken);
    pith_status status =
        l.last && l.taken ? PITH_OK : pith__fail_memory(o->err, most * sizeof *l.taken);
    const size_t marked = status ? 0 : layout_mark(&l);
    for (pith__node *node = marked ? o->graph->first : NULL, *next; node && !status; node = next) {
        next = node->next;
        const pith__value *x = pith__node_input(node, 0), *y = pith__node_output(node, 0);
        if (x && y && (l.last[x->id] || l.last[y->id])) status = layout_make(&l, node);
    }
    if (marked && !status)
        pith__report_add(o->report, true, "channels_last", "%zu values between 8-bit convolutions",
                         marked);
    *changes += marked;
    pith__arena_free(&scratch);
    return status;
}

const pith__pass pith__pass_channels_last = { "channels_last", 3, false, channels_last_run };
