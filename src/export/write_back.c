/* write_back.c - see write_back.h. Each operator of the domain "pith" is a line of the table `forms`.
 *
 * Sources of the forms: ONNX's operators, and ONNX Runtime's ContribOperators.md. */
#include "export/write_back.h"

#include <float.h>
#include <string.h>

#include "base/error.h"
#include "export/made.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "ops/op.h"

typedef struct back {
    pith_maker m;
    const pith_write_back *how;
    const pith_type *type; /* of what is made: that of the node's output */
} back;

/* ---- nodes ---- */

static pith_value *back_typed(const back *b, pith_value *v) {
    if (v && v->type.dtype == PITH_UNDEFINED) v->type = *b->type;
    return v;
}
#define BACK(b, op, ...) back_typed(b, PITH_MAKE(&(b)->m, op, __VA_ARGS__))

/* A node of com.microsoft with its first output. */
static pith_value *back_contrib(back *b, const char *op, pith_value *const *inputs, int count, int outputs) {
    if (b->m.status) return NULL;
    pith_node *node = pith_graph_add_node(b->m.graph, b->m.before, "com.microsoft", op, inputs, count, NULL, outputs);
    if (!node) {
        b->m.status = pith_fail_memory(b->m.err, 0);
        return NULL;
    }
    node->name = b->m.place;
    for (int i = 0; i < outputs; i++) node->outputs[i]->type = *b->type;
    return node->outputs[0];
}

static void back_set_float(back *b, pith_value *v, const char *name, float number) {
    if (v && pith_node_set_float(v->producer, name, number)) b->m.status = pith_fail_memory(b->m.err, 0);
}

static pith_value *back_sum(back *b, pith_value *x, pith_value *bias) { return bias ? BACK(b, "Add", x, bias) : x; }

/* ---- activations ---- */

static pith_value *back_gelu(back *b, pith_value *x, pith_value *bias, bool tanh) {
    const int count = bias ? 2 : 1;
    if (!b->how->standard) {
        pith_value *inputs[] = { x, bias };
        const char *op = tanh ? "FastGelu" : bias ? "BiasGelu" : "Gelu";
        return back_contrib(b, op, inputs, count, 1);
    }
    pith_value *y = BACK(b, "Gelu", back_sum(b, x, bias));
    if (y && tanh && pith_node_set_str(y->producer, "approximate", PITH_STR("tanh")))
        b->m.status = pith_fail_memory(b->m.err, 0);
    return y;
}

/* x sigmoid(alpha x) */
static pith_value *back_quick_gelu(back *b, pith_value *x, float alpha) {
    if (!b->how->standard) {
        pith_value *y = back_contrib(b, "QuickGelu", &x, 1, 1);
        back_set_float(b, y, "alpha", alpha);
        return y;
    }
    pith_value *inner = alpha == 1.0f ? x : BACK(b, "Mul", x, pith_make_f32(&b->m, alpha));
    return BACK(b, "Mul", x, BACK(b, "Sigmoid", inner));
}

static pith_value *back_activation(back *b, pith_value *x, pith_value *bias, int64_t activation) {
    switch (activation) {
    case PITH_ACT_NONE: return back_sum(b, x, bias);
    case PITH_ACT_GELU_ERF:
    case PITH_ACT_GELU_TANH: return back_gelu(b, x, bias, activation == PITH_ACT_GELU_TANH);
    case PITH_ACT_RELU: return BACK(b, "Relu", back_sum(b, x, bias));
    case PITH_ACT_TANH: return BACK(b, "Tanh", back_sum(b, x, bias));
    case PITH_ACT_SIGMOID: return BACK(b, "Sigmoid", back_sum(b, x, bias));
    case PITH_ACT_SILU: return back_quick_gelu(b, back_sum(b, x, bias), 1.0f);
    case PITH_ACT_QUICK_GELU: return back_quick_gelu(b, back_sum(b, x, bias), 1.702f);
    default: return NULL;
    }
}

/* ---- pith.Linear ---- */

/* Pairs of weight and bias, [k, n_i] or [n_i, k], and [n_i]. */
static int back_pairs(const pith_node *node) { return node->input_count / 2; }

static bool back_linear_fits(const pith_node *node, const char **why) {
    for (int i = 0; i < back_pairs(node); i++) {
        const pith_value *w = node->inputs[1 + 2 * i], *bias = pith_node_input(node, 2 + 2 * i);
        *why = "a weight or bias has no contents";
        if (!w || !w->type.data || (bias && !bias->type.data)) return false;
        *why = "a weight or bias is not f32";
        if (w->type.data->dtype != PITH_F32 || (bias && bias->type.data->dtype != PITH_F32)) return false;
    }
    return true;
}

static pith_value *back_constant(back *b, pith_str name, float *data, int rank, const int64_t *dims) {
    pith_value *v = pith_make_constant(&b->m, data, rank, dims);
    if (v) v->name = name;
    return v;
}

/* The columns of a weight, beside each other in rows of `width`. */
static void back_copy_weight(float *to, int64_t width, const pith_tensor *t, bool transposed) {
    const int64_t k = t->dims[transposed], n = t->dims[!transposed];
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t from = transposed ? j * k + i : i * n + j;
            memcpy(to + i * width + j, (const char *)t->data + from * (int64_t)sizeof *to, sizeof *to);
        }
}

static int64_t back_columns(const pith_node *node, int pair) {
    return node->inputs[1 + 2 * pair]->type.data->dims[!(pith_node_int(node, "transposed", 0) >> pair & 1)];
}

static int64_t back_all_columns(const pith_node *node) {
    int64_t n = 0;
    for (int i = 0; i < back_pairs(node); i++) n += back_columns(node, i);
    return n;
}

/* Zeros for a constant of many numbers; NULL: memory is out. */
static float *back_room(back *b, int64_t count) {
    float *to = pith_arena_array(b->m.graph->arena, (size_t)count, sizeof *to);
    if (!to) b->m.status = pith_fail_memory(b->m.err, (size_t)count * sizeof *to);
    return to;
}

/* The weights as one, [k, n]; the only one, if that is its layout. */
static pith_value *back_weight(back *b, const pith_node *node) {
    const int64_t transposed = pith_node_int(node, "transposed", 0);
    const pith_value *first = node->inputs[1];
    if (back_pairs(node) == 1 && !(transposed & 1)) return node->inputs[1];
    const int64_t dims[] = { first->type.data->dims[transposed & 1], back_all_columns(node) };
    float *data = back_room(b, dims[0] * dims[1]), *to = data;
    for (int i = 0; data && i < back_pairs(node); to += back_columns(node, i++))
        back_copy_weight(to, dims[1], node->inputs[1 + 2 * i]->type.data, transposed >> i & 1);
    return data ? back_constant(b, first->name, data, 2, dims) : NULL;
}

/* The biases as one; NULL: there are none. Those that are absent are 0. */
static pith_value *back_bias(back *b, const pith_node *node) {
    const int64_t n = back_all_columns(node);
    const pith_value *first = NULL;
    if (back_pairs(node) == 1) return pith_node_input(node, 2);
    for (int i = 0; i < back_pairs(node) && !first; i++) first = pith_node_input(node, 2 + 2 * i);
    float *data = first ? back_room(b, n) : NULL, *to = data;
    for (int i = 0; data && i < back_pairs(node); to += back_columns(node, i++)) {
        const pith_value *bias = pith_node_input(node, 2 + 2 * i);
        if (bias) memcpy(to, bias->type.data->data, (size_t)back_columns(node, i) * sizeof *to);
    }
    return data ? back_constant(b, first->name, data, 1, &n) : NULL;
}

static pith_value *back_linear(back *b, pith_node *node) {
    pith_value *w = back_weight(b, node), *bias = back_bias(b, node);
    if (b->m.status) return NULL;
    return back_activation(b, BACK(b, "MatMul", node->inputs[0], w), bias,
                           pith_node_int(node, "activation", PITH_ACT_NONE));
}

/* ---- pith.SkipNorm ---- */

static pith_value *back_norm(back *b, pith_value *x, pith_value *gamma, pith_value *beta, float epsilon, bool rms) {
    pith_value *inputs[] = { x, gamma, beta };
    pith_value *y =
        back_typed(b, pith_make(&b->m, rms ? "RMSNormalization" : "LayerNormalization", inputs, beta ? 3 : 2));
    pith_make_int(&b->m, y, "axis", -1);
    back_set_float(b, y, "epsilon", epsilon);
    return y;
}

/* The operators of com.microsoft want rows of rank 2 or 3. */
static pith_value *back_skip_norm(back *b, pith_node *node) {
    pith_value *x = node->inputs[0], *skip = node->inputs[1], *gamma = node->inputs[2],
               *beta = pith_node_input(node, 3);
    const bool rms = pith_node_int(node, "rms", 0), sum = node->output_count > 1;
    const float epsilon = pith_node_float(node, "epsilon", 1e-5f);
    const int rank = node->outputs[0]->type.rank;
    pith_value *y, *total;
    if (b->how->standard || rank < 2 || rank > 3) {
        total = BACK(b, "Add", x, skip);
        y = back_norm(b, total, gamma, beta, epsilon, rms);
    } else {
        pith_value *inputs[] = { x, skip, gamma, beta };
        y = back_contrib(b, rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", inputs,
                         beta && !rms ? 4 : 3, sum ? 4 : 1);
        back_set_float(b, y, "epsilon", epsilon);
        total = y && sum ? y->producer->outputs[3] : NULL;
    }
    if (sum && total && pith_value_replace(node->outputs[1], total)) b->m.status = pith_fail_memory(b->m.err, 0);
    return y;
}

/* ---- pith.Attention: Attention and MultiHeadAttention of com.microsoft ---- */

/* Where the heads of input i lie: one after another in a row of rank 3, from a column on; in rank 4 by themselves; or
 * head by head. */
typedef struct back_rows {
    int64_t row, column; /* elements of all heads, and before them */
    bool head_major;
} back_rows;

static bool back_rows_of(back_rows *rows, const pith_node *node, int i) {
    const int64_t heads = pith_node_int(node, "heads", 0), size = pith_node_int(node, i < 2 ? "size" : "v_size", 0);
    const pith_type *t = &node->inputs[i]->type;
    size_t columns, pitches;
    const int64_t *column = pith_node_ints(node, "columns", &columns),
                  *pitch = pith_node_ints(node, "pitches", &pitches);
    *rows = (back_rows){ .row = heads * size, .column = columns == 3 ? column[i] : 0 };
    rows->head_major = pith_node_int(node, "head_major", 0) >> i & 1;
    if (rows->head_major) return t->rank == 4 && t->dims[1] == heads && t->dims[3] == size;
    if (pitches == 3 && pitch[i] != size) return false;
    if (t->rank == 4) return !rows->column && t->dims[2] == heads && t->dims[3] == size;
    return t->rank == 3 && (!pith_dim_known(t->dims[2]) || rows->column + rows->row <= t->dims[2]);
}

static bool back_all_rows_fit(const pith_node *node) {
    back_rows rows;
    for (int i = 0; i < 3; i++)
        if (!back_rows_of(&rows, node, i)) return false;
    return true;
}

/* One number per key, or one length per text. */
static bool back_mask_fits(const pith_node *node) {
    const pith_value *mask = pith_node_input(node, 4);
    const pith_type *q = &node->inputs[0]->type;
    return !mask || mask->type.rank == 2 || (mask->type.rank == 1 && pith_dim_equal(mask->type.dims[0], q->dims[0]));
}

static bool back_bias_fits(const pith_node *node) {
    const pith_value *bias = pith_node_input(node, 3);
    const int64_t heads = pith_node_int(node, "heads", 0);
    if (!bias) return true;
    const pith_type *t = &bias->type;
    return t->rank == 4 && (t->dims[1] == 1 || t->dims[1] == heads) && t->dims[2] != 1 && t->dims[3] != 1;
}

static bool back_attention_fits(const pith_node *node, const char **why) {
    const int64_t left = pith_node_int(node, "window_left", -1), right = pith_node_int(node, "window_right", -1);
    *why = "packed rows";
    if (pith_node_input(node, 5)) return false;
    *why = "heads share keys and values";
    if (pith_node_int(node, "kv_heads", 0) != pith_node_int(node, "heads", 0)) return false;
    *why = "the heads of its inputs do not lie next to each other";
    if (!back_all_rows_fit(node)) return false;
    *why = "a window of keys";
    if (left >= 0 || right > 0) return false;
    *why = "its mask is neither one number per key nor one length per text";
    if (!back_mask_fits(node)) return false;
    *why = "what is added to its scores is broadcast";
    return back_bias_fits(node);
}

static pith_value *back_numbers(back *b, const int64_t *numbers, int64_t count) {
    pith_value *v = pith_graph_add_i64s(b->m.graph, PITH_STR(""), numbers, count);
    if (!v && !b->m.status) b->m.status = pith_fail_memory(b->m.err, 0);
    return v;
}

/* The heads of input i as rows of their own: [batch, sequence, heads * size]. */
static pith_value *back_own_rows(back *b, const pith_node *node, int i) {
    pith_maker *m = &b->m;
    pith_value *x = node->inputs[i], *y = x;
    const pith_type *t = &x->type;
    back_rows rows;
    (void)back_rows_of(&rows, node, i);
    const pith_dim dims[] = { t->dims[0], t->dims[rows.head_major ? 2 : 1], rows.row };
    if (rows.head_major) {
        y = PITH_MAKE(m, "Transpose", x);
        pith_make_ints(m, y, "perm", (const int64_t[]){ 0, 2, 1, 3 }, 4);
    }
    if (t->rank == 4) {
        y = PITH_MAKE(m, "Reshape", y, back_numbers(b, (const int64_t[]){ 0, 0, rows.row }, 3));
    } else if (t->dims[2] != rows.row) {
        const int64_t end = rows.column + rows.row, axis = 2;
        y = PITH_MAKE(m, "Slice", x, back_numbers(b, &rows.column, 1), back_numbers(b, &end, 1),
                      back_numbers(b, &axis, 1));
    }
    if (y && y != x) pith_type_set(&y->type, t->dtype, 3, dims);
    return y;
}

/* A key that the mask skips gets the number that the graph added, if that is all that is known of it; else one so low
 * that it counts for nothing beside any key that is left. */
static float back_filter(const pith_node *node) {
    size_t count;
    const float *skipped = pith_node_floats(node, "skipped", &count);
    const bool scores = pith_node_int(node, "none_left", PITH_NONE_LEFT_MEAN) == PITH_NONE_LEFT_SCORES;
    return scores && count ? skipped[0] : -FLT_MAX;
}

/* Query, key and value as columns of one matmul with constants. */
typedef struct back_projection {
    pith_value *x, *weight, *bias; /* bias may be NULL */
} back_projection;

/* Are the inputs the first, second and third part of one value? */
static bool back_is_one_row(const pith_node *node) {
    back_rows first, rows;
    (void)back_rows_of(&first, node, 0);
    for (int i = 0; i < 3; i++) {
        (void)back_rows_of(&rows, node, i);
        if (node->inputs[i] != node->inputs[0] || rows.head_major || rows.column != i * first.row ||
            rows.row != first.row)
            return false;
    }
    return !node->inputs[0]->output_uses && node->inputs[0]->user_count == 3;
}

static bool back_projection_of(back_projection *p, const pith_node *node) {
    const pith_node *made = node->inputs[0]->producer;
    *p = (back_projection){ NULL, NULL, NULL };
    if (!back_is_one_row(node)) return false;
    if (made && !made->domain.size && pith_str_is(made->op_type, "Add") && made->inputs[1]->type.data) {
        p->bias = made->inputs[1];
        made = made->inputs[0]->producer;
    }
    if (!made || made->domain.size || !pith_str_is(made->op_type, "MatMul")) return false;
    p->x = made->inputs[0];
    p->weight = made->inputs[1];
    const pith_tensor *w = p->weight->type.data, *bias = p->bias ? p->bias->type.data : NULL;
    back_rows rows;
    (void)back_rows_of(&rows, node, 0);
    return p->x->type.rank == 3 && w && w->rank == 2 && w->dims[1] == 3 * rows.row &&
           (!bias || (bias->rank == 1 && bias->dims[0] == w->dims[1]));
}

static pith_value *back_attention(back *b, pith_node *node) {
    const int64_t heads = pith_node_int(node, "heads", 0);
    back_projection p;
    pith_value *mask = pith_node_input(node, 4), *bias = pith_node_input(node, 3);
    if (mask && mask->type.dtype != PITH_I32) {
        mask = pith_make_cast(&b->m, mask, PITH_I32);
        if (mask) pith_type_set(&mask->type, PITH_I32, node->inputs[4]->type.rank, node->inputs[4]->type.dims);
    }
    pith_value *y;
    if (back_projection_of(&p, node)) {
        pith_value *inputs[] = { p.x, p.weight, p.bias, mask, NULL, bias };
        y = back_contrib(b, "Attention", inputs, bias ? 6 : mask ? 4 : p.bias ? 3 : 2, 1);
    } else {
        pith_value *inputs[] = {
            back_own_rows(b, node, 0), back_own_rows(b, node, 1), back_own_rows(b, node, 2), NULL, mask, bias
        };
        y = back_contrib(b, "MultiHeadAttention", inputs, bias ? 6 : mask ? 5 : 3, 1);
    }
    pith_make_int(&b->m, y, "num_heads", heads);
    back_set_float(b, y, "scale", pith_node_float(node, "scale", 1.0f));
    if (mask) back_set_float(b, y, "mask_filter_value", back_filter(node));
    if (pith_node_int(node, "window_right", -1) == 0) pith_make_int(&b->m, y, "unidirectional", 1);
    return y;
}

/* ---- what upgrades make ---- */

static bool back_score_mask_fits(const pith_node *node, const char **why) {
    *why = "its mask is not one number per key";
    return node->inputs[0]->type.rank == 2 && !pith_node_input(node, 3);
}

/* 0 for keys that stay, the filter for others: [batch, 1, 1, keys]. */
static pith_value *back_score_mask(back *b, pith_node *node) {
    pith_maker *m = &b->m;
    const int64_t axes[] = { 1, 2 };
    pith_value *places = pith_graph_add_i64s(m->graph, PITH_STR(""), axes, 2);
    if (!places) m->status = pith_fail_memory(m->err, 0);
    pith_value *kept = pith_make_cast(m, node->inputs[0], PITH_BOOL);
    if (kept) pith_type_set(&kept->type, PITH_BOOL, 2, node->inputs[0]->type.dims);
    pith_value *y =
        BACK(b, "Where", kept, pith_make_f32(m, 0.0f), pith_make_f32(m, pith_node_float(node, "filter", -10000.0f)));
    return BACK(b, "Unsqueeze", y, places);
}

static bool back_move_axis_fits(const pith_node *node, const char **why) {
    *why = "the rank of its input is not known";
    return node->inputs[0]->type.rank > 0;
}

static pith_value *back_move_axis(back *b, pith_node *node) {
    const int rank = node->inputs[0]->type.rank;
    const int64_t from = (pith_node_int(node, "from", 0) + rank) % rank,
                  to = (pith_node_int(node, "to", 0) + rank) % rank;
    int64_t perm[PITH_MAX_RANK], next = 0;
    for (int64_t d = 0; d < rank; d++) {
        if (d == to) {
            perm[d] = from;
            continue;
        }
        next += next == from;
        perm[d] = next++;
    }
    pith_value *y = BACK(b, "Transpose", node->inputs[0]);
    pith_make_ints(&b->m, y, "perm", perm, (size_t)rank);
    return y;
}

/* ---- the table ---- */

typedef struct back_form {
    const char *op;
    bool (*fits)(const pith_node *node, const char **why); /* NULL: always */
    pith_value *(*write)(back *b, pith_node *node);
} back_form;

/* Passes whose operators are not here do not run when a graph is to be written (model/optimized_model.c). */
static const back_form forms[] = {
    { "Attention", back_attention_fits, back_attention }, /* Attention with its projections; MultiHeadAttention */
    { "Linear", back_linear_fits, back_linear }, /* MatMul, then BiasGelu, FastGelu, QuickGelu, or Add, Relu, … */
    { "MoveAxis", back_move_axis_fits, back_move_axis },    /* Transpose */
    { "ScoreMask", back_score_mask_fits, back_score_mask }, /* Cast, Where, Unsqueeze */
    { "SkipNorm", NULL, back_skip_norm }, /* SkipLayerNormalization, SkipSimplifiedLayerNormalization; or lowered */
};

static const back_form *back_form_of(const pith_node *node) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (pith_str_is(node->op_type, forms[i].op)) return &forms[i];
    return NULL;
}

static pith_status back_check_node(const pith_node *node, pith_error *err) {
    char place[256];
    const char *why = "it has no form in ONNX";
    if (!pith_str_is(node->domain, "pith")) return PITH_OK;
    const back_form *form = back_form_of(node);
    if (form && (!form->fits || form->fits(node, &why))) return PITH_OK;
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "%s: %s", pith_node_place(node, place, sizeof place), why);
}

pith_status pith_export_check_write_back(const pith_graph *graph, pith_error *err) {
    for (const pith_node *node = graph->first; node; node = node->next) {
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith_export_check_write_back(node->attrs[a].graph, err));
        PITH_TRY(back_check_node(node, err));
    }
    return PITH_OK;
}

/* A Gelu that is newer than the opset is one of com.microsoft's. */
static bool back_is_new_gelu(const pith_node *node, const pith_write_back *how) {
    return !how->standard && !node->domain.size && pith_str_is(node->op_type, "Gelu") && node->op->since > how->opset;
}

static pith_status back_node(pith_node *node, const pith_write_back *how, pith_error *err) {
    const bool gelu = back_is_new_gelu(node, how);
    if (!gelu && !pith_str_is(node->domain, "pith")) return PITH_OK;
    PITH_TRY(back_check_node(node, err));
    back b = { { node->graph, node, node->name, PITH_OK, err }, how, &node->outputs[0]->type };
    pith_value *y =
        gelu ? back_gelu(&b, node->inputs[0], NULL, pith_str_is(pith_node_str(node, "approximate", "none"), "tanh"))
             : back_form_of(node)->write(&b, node);
    if (b.m.status || !y) return b.m.status ? b.m.status : pith_fail_memory(err, 0);
    if (pith_value_replace(node->outputs[0], y)) return pith_fail_memory(err, 0);
    pith_node_remove(node);
    return PITH_OK;
}

pith_status pith_export_write_back(pith_graph *graph, const pith_write_back *how, pith_error *err) {
    for (pith_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith_export_write_back(node->attrs[a].graph, how, err));
        PITH_TRY(back_node(node, how, err));
    }
    pith_graph_sweep(graph);
    return PITH_OK;
}
