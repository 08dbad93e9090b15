/* replace_pith_ops.c - see replace_pith_ops.h. Each operator of the domain "pith" is a line of the
 * table `forms`.
 *
 * Sources of the forms: ONNX's operators, and ONNX Runtime's ContribOperators.md. */
#include "formats/export/replace_pith_ops.h"

#include <float.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"
#include "engine/ops/op.h"
#include "formats/export/pith_ops.h"

static pith__value *replace_sum(pith__replace *b, pith__value *x, pith__value *bias) {
    return bias ? PITH_REPLACE(b, "Add", x, bias) : x;
}

/* ---- activations ---- */

static pith__value *replace_gelu(pith__replace *b, pith__value *x, pith__value *bias, bool tanh) {
    const int count = bias ? 2 : 1;
    if (!b->how->standard) {
        pith__value *inputs[] = { x, bias };
        const char *op = bias ? "BiasGelu" : "Gelu";
        if (tanh) op = "FastGelu"; /* with or without a bias */
        return pith__replace_contrib(b, op, inputs, count, 1);
    }
    pith__value *y = PITH_REPLACE(b, "Gelu", replace_sum(b, x, bias));
    if (y && tanh && pith__node_set_str(y->producer, "approximate", PITH_STR("tanh")))
        b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    return y;
}

/* x sigmoid(alpha x) */
static pith__value *replace_quick_gelu(pith__replace *b, pith__value *x, float alpha) {
    if (!b->how->standard) {
        pith__value *y = pith__replace_contrib(b, "QuickGelu", &x, 1, 1);
        pith__replace_set_float(b, y, "alpha", alpha);
        return y;
    }
    pith__value *inner =
        alpha == 1.0f ? x : PITH_REPLACE(b, "Mul", x, pith__new_node_f32(&b->nodes, alpha));
    return PITH_REPLACE(b, "Mul", x, PITH_REPLACE(b, "Sigmoid", inner));
}

static pith__value *replace_activation(pith__replace *b, pith__value *x, pith__value *bias,
                                       int64_t activation) {
    switch (activation) {
    case PITH_ACT_NONE: return replace_sum(b, x, bias);
    case PITH_ACT_GELU_ERF:
    case PITH_ACT_GELU_TANH: return replace_gelu(b, x, bias, activation == PITH_ACT_GELU_TANH);
    case PITH_ACT_RELU: return PITH_REPLACE(b, "Relu", replace_sum(b, x, bias));
    case PITH_ACT_TANH: return PITH_REPLACE(b, "Tanh", replace_sum(b, x, bias));
    case PITH_ACT_SIGMOID: return PITH_REPLACE(b, "Sigmoid", replace_sum(b, x, bias));
    case PITH_ACT_SILU: return replace_quick_gelu(b, replace_sum(b, x, bias), 1.0f);
    case PITH_ACT_QUICK_GELU: return replace_quick_gelu(b, replace_sum(b, x, bias), 1.702f);
    default: return NULL;
    }
}

/* ---- pith.Linear ---- */

/* Bytes of a weight from which on it is not stored twice. */
enum { BACK_SHARED_LEAST = 4096 };

/* Pairs of weight and bias, [k, n_i] or [n_i, k], and [n_i]. */
static int replace_pairs(const pith__node *node) { return node->input_count / 2; }

static bool replace_is_float(int dtype) {
    return dtype == PITH_F32 || dtype == PITH_F16 || dtype == PITH_BF16;
}

static bool replace_linear_fits(const pith__node *node, const pith__replace_form *how,
                                const char **why) {
    (void)how;
    for (int i = 0; i < replace_pairs(node); i++) {
        const pith__value *w = node->inputs[1 + 2 * i], *bias = pith__node_input(node, 2 + 2 * i);
        *why = "a weight or bias has no contents";
        if (!w || !w->type.data || (bias && !bias->type.data)) return false;
        *why = "a weight or bias is not f32, f16 or bf16";
        if (!replace_is_float(w->type.data->dtype) ||
            (bias && !replace_is_float(bias->type.data->dtype)))
            return false;
        *why = "its weights have different types";
        if (w->type.data->dtype != node->inputs[1]->type.data->dtype) return false;
    }
    return true;
}

static pith__value *replace_constant(pith__replace *b, pith_str name, float *data, int rank,
                                     const int64_t *dims) {
    pith__value *v = pith__new_node_constant(&b->nodes, data, rank, dims);
    if (v) v->name = name;
    return v;
}

/* The columns of a weight, beside each other in rows of `width` elements. */
static void replace_copy_weight(char *to, int64_t width, const pith_tensor *t, bool transposed,
                                pith__stop *stop) {
    const int64_t k = t->dims[transposed], n = t->dims[!transposed],
                  size = pith__dtype_bits(t->dtype) / 8;
    for (int64_t i = 0; i < k; i++) {
        if (pith__stop_asked(stop)) break;
        for (int64_t j = 0; j < n; j++) {
            const int64_t from = transposed ? j * k + i : i * n + j;
            memcpy(to + (i * width + j) * size, (const char *)t->data + from * size, (size_t)size);
        }
    }
}

static int64_t replace_columns(const pith__node *node, int pair) {
    return node->inputs[1 + 2 * pair]
        ->type.data->dims[!(pith__node_int(node, "transposed", 0) >> pair & 1)];
}

static int64_t replace_all_columns(const pith__node *node) {
    int64_t n = 0;
    for (int i = 0; i < replace_pairs(node); i++) n += replace_columns(node, i);
    return n;
}

/* A weight of 16 bits stays so in the file. */
static pith__value *replace_widened(pith__replace *b, pith__value *w) {
    if (!w || w->type.dtype == PITH_F32) return w;
    const pith__type t = w->type;
    return pith__replace_shape(pith__new_node_cast(&b->nodes, w, PITH_F32), PITH_F32, t.rank,
                               t.dims);
}

/* A weight that others read too, such as a table of words, is transposed in each run: a copy would
 * be stored beside it. */
static pith__value *replace_shared_weight(pith__replace *b, pith__value *w) {
    const pith_tensor *t = w->type.data;
    pith__value *y = PITH_NEW_NODE(&b->nodes, "Transpose", w);
    pith__new_node_set_ints(&b->nodes, y, "perm", (const int64_t[]){ 1, 0 }, 2);
    return pith__replace_shape(y, t->dtype, 2, (const pith__dim[]){ t->dims[1], t->dims[0] });
}

/* The weights as one constant of their type. */
static pith__value *replace_joined_weights(pith__replace *b, const pith__node *node) {
    const int64_t transposed = pith__node_int(node, "transposed", 0),
                  width = replace_all_columns(node);
    const pith__value *first = node->inputs[1];
    const size_t size = (size_t)pith__dtype_bits(first->type.data->dtype) / 8;
    pith_tensor made = { .dtype = first->type.data->dtype, .rank = 2 };
    made.dims[0] = first->type.data->dims[transposed & 1];
    made.dims[1] = width;
    made.bytes = (size_t)(made.dims[0] * width) * size;
    char *data = pith__arena_alloc64(b->nodes.graph->arena, made.bytes), *to = data;
    if (data)
        for (int i = 0; i < replace_pairs(node); to += (size_t)replace_columns(node, i++) * size)
            replace_copy_weight(to, width, node->inputs[1 + 2 * i]->type.data, transposed >> i & 1,
                                pith__graph_stop(b->nodes.graph));
    made.data = data;
    pith__value *v = data ? pith__graph_add_const(b->nodes.graph, first->name, &made) : NULL;
    if (!v) b->nodes.status = pith__fail_memory(b->nodes.err, made.bytes);
    return v;
}

/* The weights as one, [k, n]; the only one, if that is its layout. */
static pith__value *replace_weight(pith__replace *b, const pith__node *node) {
    pith__value *first = node->inputs[1];
    const bool one = replace_pairs(node) == 1,
               transposed = pith__node_int(node, "transposed", 0) & 1;
    if (one && !transposed) return replace_widened(b, first);
    if (one && first->user_count > 1 && first->type.data->bytes >= BACK_SHARED_LEAST)
        return replace_widened(b, replace_shared_weight(b, first));
    return replace_widened(b, replace_joined_weights(b, node));
}

/* Numbers of a bias as f32. */
static void replace_copy_bias(float *to, const pith_tensor *t, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits = 0;
        if (t->dtype == PITH_F32)
            memcpy(to + i, (const char *)t->data + (size_t)i * sizeof *to, sizeof *to);
        else
            memcpy(&bits, (const char *)t->data + (size_t)i * sizeof bits, sizeof bits);
        if (t->dtype == PITH_F16) to[i] = pith__f32_of_f16(bits);
        if (t->dtype == PITH_BF16) to[i] = pith__f32_of_bf16(bits);
    }
}

/* The biases as one; NULL: there are none. Those that are absent are 0. */
static pith__value *replace_bias(pith__replace *b, const pith__node *node) {
    const int64_t n = replace_all_columns(node);
    const pith__value *first = NULL;
    pith__value *only = replace_pairs(node) == 1 ? pith__node_input(node, 2) : NULL;
    if (replace_pairs(node) == 1 && (!only || only->type.data->dtype == PITH_F32)) return only;
    for (int i = 0; i < replace_pairs(node) && !first; i++)
        first = pith__node_input(node, 2 + 2 * i);
    float *data = first ? pith__arena_array(b->nodes.graph->arena, (size_t)n, sizeof *data) : NULL,
          *to = data;
    if (first && !data) b->nodes.status = pith__fail_memory(b->nodes.err, (size_t)n * sizeof *data);
    if (data)
        for (int i = 0; i < replace_pairs(node); to += replace_columns(node, i++)) {
            const pith__value *bias = pith__node_input(node, 2 + 2 * i);
            if (bias) replace_copy_bias(to, bias->type.data, replace_columns(node, i));
        }
    return data ? replace_constant(b, first->name, data, 1, &n) : NULL;
}

/* MatMul, bias and activation. A node with several pairs of weight and bias stands for as many
 * matmuls of the same rows with their columns side by side, so its weights become one constant. */
static pith__value *replace_linear(pith__replace *b, pith__node *node) {
    pith__value *w = replace_weight(b, node), *bias = replace_bias(b, node);
    if (b->nodes.status) return NULL;
    return replace_activation(b, PITH_REPLACE(b, "MatMul", node->inputs[0], w), bias,
                              pith__node_int(node, "activation", PITH_ACT_NONE));
}

/* ---- pith.SkipNorm ---- */

pith__value *pith__replace_norm(pith__replace *b, pith__value *x, pith__value *gamma,
                                pith__value *beta, float epsilon, bool rms) {
    pith__value *inputs[] = { x, gamma, beta };
    pith__value *y = pith__replace_typed(
        b, pith__new_node(&b->nodes, rms ? "RMSNormalization" : "LayerNormalization", inputs,
                          beta ? 3 : 2));
    pith__new_node_set_int(&b->nodes, y, "axis", -1);
    pith__replace_set_float(b, y, "epsilon", epsilon);
    return y;
}

/* The constant vector that was added to v last, if nothing else reads the sum; *v becomes what it
 * was added to. */
static pith__value *replace_last_bias(pith__value **v) {
    const pith__node *add = (*v)->producer;
    if (!add || add->domain.size || !pith__str_is(add->op_type, "Add") || (*v)->user_count != 1 ||
        (*v)->output_uses)
        return NULL;
    pith__value *bias = add->inputs[1];
    const pith__type *t = &(*v)->type;
    if (!bias->type.data || bias->type.rank != 1 || t->rank < 1 ||
        !pith__dim_equal(bias->type.dims[0], t->dims[t->rank - 1]) ||
        add->inputs[0]->type.rank != t->rank)
        return NULL;
    *v = add->inputs[0];
    return bias;
}

/* The operators of com.microsoft want rows of rank 2 or 3. */
static pith__value *replace_skip_norm(pith__replace *b, pith__node *node) {
    pith__value *x = node->inputs[0], *skip = node->inputs[1], *gamma = node->inputs[2],
                *beta = pith__node_input(node, 3);
    const bool rms = pith__node_int(node, "rms", 0), sum = node->output_count > 1;
    const float epsilon = pith__node_float(node, "epsilon", 1e-5f);
    const int rank = node->outputs[0]->type.rank;
    pith__value *y, *total;
    if (b->how->standard || rank < 2 || rank > 3) {
        total = PITH_REPLACE(b, "Add", x, skip);
        y = pith__replace_norm(b, total, gamma, beta, epsilon, rms);
    } else {
        pith__value *bias = x == skip ? NULL : replace_last_bias(&x);
        if (!bias && x != skip) bias = replace_last_bias(&skip);
        pith__value *inputs[] = { x, skip, gamma, rms ? bias : beta, rms ? NULL : bias };
        const char *op = rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization";
        int count = inputs[3] ? 4 : 3;
        if (inputs[4]) count = 5;
        y = pith__replace_contrib(b, op, inputs, count, sum ? 4 : 1);
        pith__replace_set_float(b, y, "epsilon", epsilon);
        total = y && sum ? y->producer->outputs[3] : NULL;
    }
    if (sum && total && pith__value_replace(node->outputs[1], total))
        b->nodes.status = pith__fail_memory(b->nodes.err, 0);
    return y;
}

/* ---- what upgrades make ---- */

static bool replace_score_mask_fits(const pith__node *node, const pith__replace_form *how,
                                    const char **why) {
    (void)how;
    *why = "its mask is not one number per key";
    return node->inputs[0]->type.rank == 2 && !pith__node_input(node, 3);
}

/* 0 for keys that stay, the filter for others: [batch, 1, 1, keys]. */
static pith__value *replace_score_mask(pith__replace *b, pith__node *node) {
    pith__new_nodes *m = &b->nodes;
    const int64_t axes[] = { 1, 2 };
    pith__value *places = pith__graph_add_i64s(m->graph, PITH_STR(""), axes, 2);
    if (!places) m->status = pith__fail_memory(m->err, 0);
    pith__value *kept = pith__new_node_cast(m, node->inputs[0], PITH_BOOL);
    if (kept) pith__type_set(&kept->type, PITH_BOOL, 2, node->inputs[0]->type.dims);
    pith__value *y =
        PITH_REPLACE(b, "Where", kept, pith__new_node_f32(m, 0.0f),
                     pith__new_node_f32(m, pith__node_float(node, "filter", -10000.0f)));
    return PITH_REPLACE(b, "Unsqueeze", y, places);
}

static bool replace_move_axis_fits(const pith__node *node, const pith__replace_form *how,
                                   const char **why) {
    (void)how;
    *why = "the rank of its input is not known";
    return node->inputs[0]->type.rank > 0;
}

/* Transpose by the permutation that puts axis `from` at place `to` and leaves the others in their
 * order. */
static pith__value *replace_move_axis(pith__replace *b, pith__node *node) {
    const int rank = node->inputs[0]->type.rank;
    const int64_t from = (pith__node_int(node, "from", 0) + rank) % rank,
                  to = (pith__node_int(node, "to", 0) + rank) % rank;
    int64_t perm[PITH_MAX_RANK], next = 0;
    for (int64_t d = 0; d < rank; d++) {
        if (d == to) {
            perm[d] = from;
            continue;
        }
        next += next == from;
        perm[d] = next++;
    }
    pith__value *y = PITH_REPLACE(b, "Transpose", node->inputs[0]);
    pith__new_node_set_ints(&b->nodes, y, "perm", perm, (size_t)rank);
    return y;
}

/* ---- the table ---- */

typedef struct replace_form {
    const char *op;
    /* NULL: always */
    bool (*fits)(const pith__node *node, const pith__replace_form *how, const char **why);
    pith__value *(*write)(pith__replace *b, pith__node *node);
} replace_form;

/* Passes whose operators are not here do not run when a graph is to be written
 * (formats/export/optimize_model.c). */
static const replace_form forms[] = {
    { "Attention", pith__replace_attention_fits, pith__replace_attention },
    { "EmbedNorm", NULL, pith__replace_embed_norm }, /* EmbedLayerNormalization; or lowered */
    { "Linear", replace_linear_fits,
      replace_linear }, /* MatMul, then BiasGelu, FastGelu, QuickGelu, or
                                                     Add, Relu, … */
    { "MoveAxis", replace_move_axis_fits, replace_move_axis }, /* Transpose */
    { "QuantizedLSTM", NULL, pith__replace_quantized_lstm }, /* DynamicQuantizeLSTM, which it was */
    /* QLinearAdd, or as pass_qdq.c found it */
    { "QuantizedAdd", NULL, pith__replace_quantized_add },
    { "Rotary", pith__replace_rotary_fits, pith__replace_rotary }, /* RotaryEmbedding */
    { "ScoreMask", replace_score_mask_fits, replace_score_mask },  /* Cast, Where, Unsqueeze */
    { "SkipNorm", NULL, replace_skip_norm },                       /* SkipLayerNormalization,
                                             SkipSimplifiedLayerNormalization; or lowered */
};

static const replace_form *replace_form_of(const pith__node *node) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (pith__str_is(node->op_type, forms[i].op)) return &forms[i];
    return NULL;
}

static pith_status replace_check_node(const pith__node *node, const pith__replace_form *how,
                                      pith_error *err) {
    char place[256];
    const char *why = "it has no form in ONNX";
    if (!pith__str_is(node->domain, "pith")) return PITH_OK;
    const replace_form *form = replace_form_of(node);
    if (form && (!form->fits || form->fits(node, how, &why))) return PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s: %s",
                      pith__node_place(node, place, sizeof place), why);
}

pith_status pith__replace_check(const pith__graph *graph, const pith__replace_form *how,
                                const pith__node **at, pith_error *err) {
    for (const pith__node *node = graph->first; node; node = node->next) {
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith__replace_check(node->attrs[a].graph, how, at, err));
        *at = node;
        PITH_TRY(replace_check_node(node, how, err));
    }
    return PITH_OK;
}

/* A Gelu that is newer than the opset is one of com.microsoft's. */
static bool replace_is_new(const pith__node *node, const char *op, const pith__replace_form *how) {
    return !how->standard && !node->domain.size && pith__str_is(node->op_type, op) &&
           node->op->since > how->opset;
}

/* RMSNormalization under the name that ONNX Runtime had for it before opset 23. */
static pith__value *replace_old_rms_norm(pith__replace *b, pith__node *node) {
    const int64_t axis = pith__node_int(node, "axis", -1);
    pith__value *y =
        PITH_REPLACE(b, "SimplifiedLayerNormalization", node->inputs[0], node->inputs[1]);
    pith__new_node_set_int(&b->nodes, y, "axis", axis);
    pith__new_node_set_int(&b->nodes, y, "stash_type", 1);
    pith__replace_set_float(b, y, "epsilon", pith__node_float(node, "epsilon", 1e-5f));
    return y;
}

/* What stands for the node's output; the node itself: it stays. */
static pith_status replace_write(pith__value **y, pith__replace *b, pith__node *node) {
    *y = node->outputs[0];
    if (replace_is_new(node, "Gelu", b->how)) {
        *y = replace_gelu(b, node->inputs[0], NULL,
                          pith__str_is(pith__node_str(node, "approximate", "none"), "tanh"));
    } else if (b->how->all && replace_is_new(node, "RMSNormalization", b->how)) {
        *y = replace_old_rms_norm(b, node);
    } else if (pith__replace_is_odd_conv(node)) {
        *y = pith__replace_odd_conv(b, node);
    } else if (pith__str_is(node->domain, "pith")) {
        PITH_TRY(replace_check_node(node, b->how, b->nodes.err));
        *y = replace_form_of(node)->write(b, node);
    }
    return b->nodes.status || *y ? b->nodes.status : pith__fail_memory(b->nodes.err, 0);
}

static pith_status replace_node(pith__node *node, const pith__replace_form *how,
                                pith__replace_memo *memo, pith_error *err) {
    pith__value *y;
    /* such as GRU that gives its last state only */
    if (!node->output_count || !node->outputs[0]) return PITH_OK;
    pith__replace b = {
        { node->graph, node, node->name, PITH_OK, err }, how, &node->outputs[0]->type, memo
    };
    PITH_TRY(replace_write(&y, &b, node));
    if (y == node->outputs[0]) return PITH_OK;
    if (pith__value_replace(node->outputs[0], y)) return pith__fail_memory(err, 0);
    pith__node_remove(node);
    return PITH_OK;
}

pith_status pith__replace_pith_ops(pith__graph *graph, const pith__replace_form *how,
                                   pith_error *err) {
    pith__replace_memo memo = { NULL, 0, 0 };
    for (pith__node *node = graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t a = 0; a < node->attr_count; a++)
            if (node->attrs[a].kind == PITH_ATTR_GRAPH)
                PITH_TRY(pith__replace_pith_ops(node->attrs[a].graph, how, err));
        PITH_TRY(replace_node(node, how, &memo, err));
    }
    pith__graph_sweep(graph);
    return PITH_OK;
}
