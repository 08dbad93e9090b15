/* relational_onnx.c - see relational_onnx.h. Cells are rows of all matrices; each kind of attention
 * has a mask over pairs of cells. */
#include "tables/onnx/relational_onnx.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/graph/graph.h"
#include "formats/onnx/model_write.h"
#include "pith/types.h"

enum { ROW_GRAPH_INPUTS = 7 + PITH_ATTEND_KINDS, ROW_GRAPH_OPSET = 17, ROW_GRAPH_IR = 8 };
#define ROW_GRAPH_HIDDEN -1e30f

typedef struct row_graph {
    const pith_relational *r;
    pith__graph *graph;
    pith__arena *arena;
    bool failed; /* memory is out */
    pith__value *texts, *name, *text, *number, *boolean, *time, *state, *asked,
        *masks[PITH_ATTEND_KINDS];
} row_graph;

/* ---- parts ---- */

static void *row_made(row_graph *g, void *made) {
    if (!made) g->failed = true;
    return made;
}

static pith__value *row_node(row_graph *g, const char *op, pith__value *const *inputs, int count) {
    if (g->failed) return NULL;
    const pith__node *node =
        row_made(g, pith__graph_add_node(g->graph, NULL, "", op, inputs, count, NULL, 1));
    return node ? node->outputs[0] : NULL;
}
#define ROW_NODE(g, op, ...)                                                                       \
    row_node(g, op, (pith__value *[]){ __VA_ARGS__ },                                              \
             (int)(sizeof((pith__value *[]){ __VA_ARGS__ }) / sizeof(pith__value *)))

static pith__value *row_scalar(row_graph *g, float x) {
    return row_made(g, pith__graph_add_f32(g->graph, PITH_STR(""), x));
}

static pith__value *row_ints(row_graph *g, const int64_t *numbers, int64_t count) {
    return row_made(g, pith__graph_add_i64s(g->graph, PITH_STR(""), numbers, count));
}

/* A constant [rows, columns], or a vector if rows is 0. The numbers must live as long as the graph.
 */
static pith__value *row_constant(row_graph *g, const float *numbers, int64_t rows,
                                 int64_t columns) {
    pith_tensor t = { .data = (void *)(uintptr_t)numbers, .dtype = PITH_F32, .rank = rows ? 2 : 1 };
    t.dims[0] = rows ? rows : columns;
    t.dims[1] = columns;
    t.bytes = (size_t)(rows ? rows : 1) * (size_t)columns * sizeof *numbers;
    return numbers ? row_made(g, pith__graph_add_const(g->graph, PITH_STR(""), &t)) : NULL;
}

/* A parameter as a vector. */
static pith__value *row_vector(row_graph *g, int parameter) {
    const pith__parameter *p = &g->r->network.parameters[parameter];
    return row_constant(g, g->r->network.weights + p->offset, 0, p->in > p->out ? p->in : p->out);
}

static pith__value *row_bias(row_graph *g, int parameter) {
    const pith__parameter *p = &g->r->network.parameters[parameter];
    return row_constant(g, g->r->network.weights + p[1].offset, 0, p->out);
}

/* x W^T for the rows [from, to) of the matrix W. */
static pith__value *row_product(row_graph *g, int parameter, int32_t from, int32_t to,
                                pith__value *x) {
    const pith__parameter *p = &g->r->network.parameters[parameter];
    const float *w = g->r->network.weights + p->offset;
    float *turned = row_made(
        g, pith__arena_alloc64(g->arena, (size_t)(to - from) * (size_t)p->in * sizeof *turned));
    if (turned) {
        for (int32_t o = from; o < to; o++)
            for (int32_t i = 0; i < p->in; i++)
                turned[(size_t)i * (size_t)(to - from) + (size_t)(o - from)] =
                    w[(size_t)o * (size_t)p->in + (size_t)i];
    }
    return ROW_NODE(g, "MatMul", x, row_constant(g, turned, p->in, to - from));
}

static pith__value *row_linear(row_graph *g, int parameter, bool bias, pith__value *x) {
    pith__value *y = row_product(g, parameter, 0, g->r->network.parameters[parameter].out, x);
    return bias ? ROW_NODE(g, "Add", y, row_bias(g, parameter)) : y;
}

static pith__value *row_norm(row_graph *g, int parameter, pith__value *x) {
    const int32_t dim = g->r->network.shape.dim;
    float *share = row_made(g, pith__arena_alloc64(g->arena, (size_t)dim * sizeof *share));
    if (share) {
        for (int32_t i = 0; i < dim; i++) share[i] = 1.0f / (float)dim;
    }
    pith__value *square =
        ROW_NODE(g, "MatMul", ROW_NODE(g, "Mul", x, x), row_constant(g, share, dim, 1));
    pith__value *size =
        ROW_NODE(g, "Sqrt", ROW_NODE(g, "Add", square, row_scalar(g, PITH_NORM_EPSILON)));
    return ROW_NODE(g, "Mul", ROW_NODE(g, "Div", x, size), row_vector(g, parameter));
}

/* [cells] to [cells, 1]. */
static pith__value *row_upright(row_graph *g, pith__value *x) {
    static const int64_t shape[] = { -1, 1 };
    return ROW_NODE(g, "Reshape", x, row_ints(g, shape, 2));
}

static pith__value *row_is(row_graph *g, int64_t state) {
    return row_upright(g, ROW_NODE(g, "Equal", g->state, row_ints(g, &state, 1)));
}

/* ---- the network ---- */

static pith__value *row_cells(row_graph *g) {
    const pith__network *n = &g->r->network;
    pith__value *name = row_norm(g, n->name_norm, row_linear(g, n->name, true, g->texts));
    pith__value *value = ROW_NODE(g, "Gather", row_linear(g, n->text, true, g->texts), g->text);
    pith__value *number = row_linear(g, n->number, true, row_upright(g, g->number));
    pith__value *boolean = row_linear(g, n->boolean, true, row_upright(g, g->boolean));
    pith__value *time = row_linear(g, n->time, true, g->time);
    value = ROW_NODE(g, "Where", row_is(g, PITH_CELL_OF_NUMBER), number, value);
    value = ROW_NODE(g, "Where", row_is(g, PITH_CELL_OF_BOOLEAN), boolean, value);
    value = ROW_NODE(g, "Where", row_is(g, PITH_CELL_OF_TIME), time, value);
    value = row_norm(g, n->value_norm, value);
    value = ROW_NODE(g, "Where", row_is(g, PITH_CELL_OF_MASK), row_vector(g, n->mask), value);
    value = ROW_NODE(g, "Where", row_is(g, PITH_CELL_OF_NULL), row_vector(g, n->null), value);
    return ROW_NODE(g, "Add", ROW_NODE(g, "Gather", name, g->name), value);
}

/* [cells, dim] to [heads, cells, dim / heads], or with turned to [heads, dim / heads, cells]. */
static pith__value *row_heads(row_graph *g, pith__value *x, bool turned) {
    const int64_t heads = g->r->network.shape.heads,
                  shape[] = { -1, heads, g->r->network.shape.dim / heads };
    static const int64_t straight[] = { 1, 0, 2 }, turn[] = { 1, 2, 0 };
    pith__value *y = ROW_NODE(g, "Transpose", ROW_NODE(g, "Reshape", x, row_ints(g, shape, 3)));
    if (y && pith__node_set_ints(y->producer, "perm", turned ? turn : straight, 3))
        g->failed = true;
    return y;
}

static pith__value *row_attend(row_graph *g, const pith__network_layer *layer, int kind,
                               pith__value *h) {
    static const int64_t back[] = { 1, 0, 2 };
    const int32_t dim = g->r->network.shape.dim, head = dim / g->r->network.shape.heads;
    const int64_t shape[] = { -1, dim };
    pith__value *x = row_norm(g, layer->norm, h);
    pith__value *query = row_heads(g, row_product(g, layer->in, 0, dim, x), false);
    pith__value *key = row_heads(g, row_product(g, layer->in, dim, 2 * dim, x), true);
    pith__value *value = row_heads(g, row_product(g, layer->in, 2 * dim, 3 * dim, x), false);
    pith__value *score = ROW_NODE(g, "Mul", ROW_NODE(g, "MatMul", query, key),
                                  row_scalar(g, (float)(1 / sqrt((double)head))));
    pith__value *share =
        ROW_NODE(g, "Where", g->masks[kind], score, row_scalar(g, ROW_GRAPH_HIDDEN));
    share = ROW_NODE(g, "Softmax", share);
    if (share && pith__node_set_int(share->producer, "axis", -1)) g->failed = true;
    pith__value *y = ROW_NODE(g, "Transpose", ROW_NODE(g, "MatMul", share, value));
    if (y && pith__node_set_ints(y->producer, "perm", back, 3)) g->failed = true;
    y = row_linear(g, layer->out, false, ROW_NODE(g, "Reshape", y, row_ints(g, shape, 2)));
    return ROW_NODE(g, "Add", h, y);
}

static pith__value *row_feed(row_graph *g, const pith__network_layer *layer, pith__value *h) {
    const int32_t ff = g->r->network.shape.ff;
    pith__value *x = row_norm(g, layer->norm, h);
    pith__value *gate = row_product(g, layer->in, 0, ff, x),
                *up = row_product(g, layer->in, ff, 2 * ff, x);
    pith__value *middle =
        ROW_NODE(g, "Mul", ROW_NODE(g, "Mul", gate, ROW_NODE(g, "Sigmoid", gate)), up);
    return ROW_NODE(g, "Add", h, row_linear(g, layer->out, false, middle));
}

/* What pith__target_answer and pith__target_probabilities do. */
static pith__value *row_answer(row_graph *g, pith__value *x) {
    const pith__target *t = &g->r->target;
    if (t->kind == PITH_TARGET_BOOLEAN) return ROW_NODE(g, "Sigmoid", x);
    if (t->kind == PITH_TARGET_CLASS) {
        x = ROW_NODE(g, "Softmax", x);
        if (x && pith__node_set_int(x->producer, "axis", -1)) g->failed = true;
        return x;
    }
    double factor, shift;
    pith__target_units(&factor, &shift, t);
    x = ROW_NODE(g, "Add", ROW_NODE(g, "Mul", x, row_scalar(g, (float)factor)),
                 row_scalar(g, (float)shift));
    if (t->kind == PITH_TARGET_RANK)
        return ROW_NODE(g, "Clip", x, row_scalar(g, 0), row_scalar(g, 1));
    return t->column->log ? ROW_NODE(g, "Exp", x) : x;
}

/* ---- the file ---- */

static pith__value *row_input(row_graph *g, const char *name, int dtype, int rank,
                              const char *first, pith__dim second) {
    pith__value *v =
        row_made(g, pith__graph_add_value(g->graph, pith__str_of(name), PITH_VALUE_INPUT));
    const pith__dim dims[] = { pith__dim_symbol(g->graph->dims, pith__str_of(first)), second };
    if (!v) return NULL;
    if (dims[0] == PITH_DIM_UNKNOWN) g->failed = true;
    pith__type_set(&v->type, dtype, rank, dims);
    g->graph->inputs[g->graph->input_count++] = v;
    return v;
}

static void row_inputs(row_graph *g) {
    const pith__network_shape *shape = &g->r->network.shape;
    g->graph->inputs =
        row_made(g, pith__arena_array(g->arena, ROW_GRAPH_INPUTS + 1, sizeof *g->graph->inputs));
    if (g->failed) return;
    const pith__dim cells = pith__dim_symbol(g->graph->dims, PITH_STR("cells"));
    g->texts = row_input(g, "texts", PITH_F32, 2, "texts", shape->text);
    g->name = row_input(g, "name", PITH_I64, 1, "cells", 0);
    g->state = row_input(g, "state", PITH_I64, 1, "cells", 0);
    g->text = row_input(g, "text", PITH_I64, 1, "cells", 0);
    g->number = row_input(g, "number", PITH_F32, 1, "cells", 0);
    g->boolean = row_input(g, "boolean", PITH_F32, 1, "cells", 0);
    g->time = row_input(g, "time", PITH_F32, 2, "cells", PITH_TIME_FEATURES);
    for (int k = 0; k < PITH_ATTEND_KINDS; k++)
        if (shape->attend & 1u << k)
            g->masks[k] = row_input(g, pith__attend_names[k], PITH_BOOL, 2, "cells", cells);
    g->asked = row_input(g, "asked", PITH_I64, 1, "questions", 0);
}

static pith__value *row_network(row_graph *g) {
    const pith__network *n = &g->r->network;
    pith__value *h = row_cells(g);
    for (int b = 0; b < n->shape.blocks; b++) {
        for (int k = 0; k < PITH_ATTEND_KINDS; k++)
            if (n->shape.attend & 1u << k) h = row_attend(g, &n->blocks[b].attend[k], k, h);
        h = row_feed(g, &n->blocks[b].ff, h);
    }
    h = row_norm(g, n->last_norm, ROW_NODE(g, "Gather", h, g->asked));
    return row_answer(g, row_linear(g, n->head, true, h));
}

static pith_status row_write(row_graph *g, const pith_writer *writer, pith__stop *stop,
                             pith_error *err) {
    const pith__making making = { .stop = stop };
    static const pith__opset opset = { { "", 0 }, ROW_GRAPH_OPSET };
    PITH_TRY(pith__graph_create(&g->graph, g->arena, NULL, err));
    row_inputs(g);
    pith__value *answers = g->failed ? NULL : row_network(g);
    pith__value **outputs = pith__arena_array(g->arena, 1, sizeof *outputs);
    if (!answers || !outputs || g->failed)
        return pith__fail_memory(err, g->r->network.size * sizeof(float));
    const pith__dim dims[] = { pith__dim_symbol(g->graph->dims, PITH_STR("questions")),
                               g->r->network.shape.outputs };
    pith__type_set(&answers->type, PITH_F32, 2, dims);
    answers->name = PITH_STR("answers");
    answers->output_uses = 1;
    outputs[0] = answers;
    g->graph->outputs = outputs;
    g->graph->output_count = 1;
    g->graph->name = PITH_STR("rows");
    PITH_TRY(pith__graph_check(g->graph, err));
    g->graph->making = &making;
    const pith__onnx_model file = { .graph = g->graph,
                                    .ir_version = ROW_GRAPH_IR,
                                    .producer = "pith",
                                    .producer_version = pith_version(),
                                    .opsets = &opset,
                                    .opset_count = 1 };
    const pith_status status =
        pith__onnx_write_model(&file, &(pith__onnx_sinks){ .model = writer }, g->arena, err);
    g->graph->making = NULL;
    return status;
}

pith_status pith__relational_onnx_write(const pith_relational *r, const pith_writer *writer,
                                        pith__stop *stop, pith_error *err) {
    pith__arena arena;
    row_graph g = { .r = r, .arena = &arena };
    PITH_TRY(pith__writer_check(writer, err));
    pith__arena_init(&arena, &r->allocator);
    const pith_status status = row_write(&g, writer, stop, err);
    pith__arena_free(&arena);
    return status;
}
