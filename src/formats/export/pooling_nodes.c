/* pooling_nodes.c - see pooling_nodes.h. Everything is computed in f32, whatever the graph's type
 * is. The formulas are those of models/heads/pooling.c and models/heads/vector_steps.c, in
 * operators that other engines have. */
#include "formats/export/pooling_nodes.h"

#include "base/error.h"
#include "formats/export/new_nodes.h"

typedef struct pooling_input {
    pith__value *rows;    /* [batch, sequence, width] */
    pith__value *mask;    /* f32 [batch, sequence] */
    pith__value *columns; /* the same as [batch, sequence, 1] */
} pooling_input;

static pith__value *pooling_sum(pith__new_nodes *m, pith__value *x) {
    pith__value *y = PITH_NEW_NODE(m, "ReduceSum", x, pith__new_node_i64(m, 1));
    pith__new_node_set_int(m, y, "keepdims", 0);
    return y;
}

/* The row at the first or last 1 of the mask: ArgMax gives the place of the first or last largest
 * number, and GatherND with batch_dims 1 takes that row of each text. */
static pith__value *pooling_row(pith__new_nodes *m, const pooling_input *in, bool last) {
    pith__value *index = PITH_NEW_NODE(m, "ArgMax", in->mask);
    pith__new_node_set_int(m, index, "axis", 1);
    pith__new_node_set_int(m, index, "select_last_index", last);
    pith__value *row = PITH_NEW_NODE(m, "GatherND", in->rows, index);
    pith__new_node_set_int(m, row, "batch_dims", 1);
    return row;
}

static pith__value *pooling_max(pith__new_nodes *m, const pooling_input *in) {
    pith__value *seen = pith__new_node_cast(m, in->columns, PITH_BOOL);
    pith__value *x =
        PITH_NEW_NODE(m, "Where", seen, in->rows, pith__new_node_f32(m, -3.402823466e38f));
    pith__value *y = PITH_NEW_NODE(m, "ReduceMax", x, pith__new_node_i64(m, 1));
    pith__new_node_set_int(m, y, "keepdims", 0);
    return y;
}

/* sum(weights * rows) / sum(weights), or / sqrt(sum(weights)). */
static pith__value *pooling_mean(pith__new_nodes *m, const pooling_input *in, pith__value *weights,
                                 bool root) {
    pith__value *sum = pooling_sum(m, PITH_NEW_NODE(m, "Mul", in->rows, weights));
    pith__value *count =
        PITH_NEW_NODE(m, "Max", pooling_sum(m, weights), pith__new_node_f32(m, 1e-9f));
    if (root) count = PITH_NEW_NODE(m, "Sqrt", count);
    return PITH_NEW_NODE(m, "Div", sum, count);
}

static pith__value *pooling_mode(pith__new_nodes *m, const pooling_input *in, uint32_t mode) {
    switch (mode) {
    case PITH_POOL_CLS: return pooling_row(m, in, false);
    case PITH_POOL_LAST: return pooling_row(m, in, true);
    case PITH_POOL_MAX: return pooling_max(m, in);
    case PITH_POOL_MEAN_SQRT: return pooling_mean(m, in, in->columns, true);
    case PITH_POOL_WEIGHTED: {
        pith__value *places = PITH_NEW_NODE(m, "CumSum", in->columns, pith__new_node_i64(m, 1));
        return pooling_mean(m, in, PITH_NEW_NODE(m, "Mul", places, in->columns), false);
    }
    default: return pooling_mean(m, in, in->columns, false);
    }
}

/* Several modes in one number, PITH_POOL_BITS each, give vectors that are joined in that order. */
static pith__value *pooling_rows(pith__new_nodes *m, pith__value *rows, pith__value *mask,
                                 uint32_t pooling) {
    pith__value *parts[PITH_POOL_PARTS_MAX];
    int count = 0;
    pooling_input in = { rows, pith__new_node_cast(m, mask, PITH_F32), NULL };
    in.columns = PITH_NEW_NODE(m, "Unsqueeze", in.mask, pith__new_node_i64(m, -1));
    for (; pooling && count < PITH_POOL_PARTS_MAX; pooling >>= PITH_POOL_BITS)
        parts[count++] = pooling_mode(m, &in, pooling & ((1u << PITH_POOL_BITS) - 1));
    if (count == 1) return parts[0];
    pith__value *y = pith__new_node(m, "Concat", parts, count);
    pith__new_node_set_int(m, y, "axis", -1);
    return y;
}

/* ---- the modules behind it ---- */

static pith__value *pooling_activation(pith__new_nodes *m, pith__value *x,
                                       pith__step_activation activation) {
    static const char *const ops[PITH_STEP_ACTIVATIONS] = { [PITH_STEP_TANH] = "Tanh",
                                                            [PITH_STEP_GELU] = "Gelu",
                                                            [PITH_STEP_RELU] = "Relu",
                                                            [PITH_STEP_SIGMOID] = "Sigmoid" };
    if (activation == PITH_STEP_IDENTITY) return x;
    if (activation == PITH_STEP_SILU)
        return PITH_NEW_NODE(m, "Mul", x, PITH_NEW_NODE(m, "Sigmoid", x));
    return PITH_NEW_NODE(m, ops[activation], x);
}

/* weight: [out, in] */
static pith__value *pooling_matmul(pith__new_nodes *m, pith__value *x, const float *weight,
                                   const pith__vector_step *step) {
    pith__value *y = PITH_NEW_NODE(
        m, "Gemm", x, pith__new_node_constant(m, weight, 2, (int64_t[]){ step->out, step->in }));
    pith__new_node_set_int(m, y, "transB", 1);
    return y;
}

static pith__value *pooling_dense(pith__new_nodes *m, pith__value *x,
                                  const pith__vector_step *step) {
    pith__value *y = pooling_matmul(m, x, step->weight, step);
    if (step->bias)
        y = PITH_NEW_NODE(m, "Add", y, pith__new_node_constant(m, step->bias, 1, &step->out));
    y = pooling_activation(m, y, step->activation);
    if (!step->residual) return y;
    return PITH_NEW_NODE(m, "Add", y,
                         step->shortcut ? pooling_matmul(m, x, step->shortcut, step) : x);
}

/* Divides by max(length, 1e-12). */
static pith__value *pooling_normalize(pith__new_nodes *m, pith__value *x) {
    pith__value *length = PITH_NEW_NODE(m, "ReduceL2", x, pith__new_node_i64(m, -1));
    return PITH_NEW_NODE(m, "Div", x,
                         PITH_NEW_NODE(m, "Max", length, pith__new_node_f32(m, 1e-12f)));
}

static pith__value *pooling_step(pith__new_nodes *m, pith__value *x,
                                 const pith__vector_step *step) {
    if (step->kind == PITH_STEP_DENSE) return pooling_dense(m, x, step);
    if (step->kind == PITH_STEP_NORMALIZE) return pooling_normalize(m, x);
    pith__value *y = PITH_NEW_NODE(m, "LayerNormalization", x,
                                   pith__new_node_constant(m, step->weight, 1, &step->in),
                                   pith__new_node_constant(m, step->bias, 1, &step->in));
    pith__new_node_set_int(m, y, "axis", -1);
    return y;
}

pith_status pith__pooling_nodes_append(pith__graph *graph, int output, pith__value *mask,
                                       const pith__pooling_nodes *pool, pith_error *err) {
    pith__new_nodes m = { graph, NULL, PITH_STR("/pooling"), PITH_OK, err };
    pith__value *x = graph->outputs[output];
    const bool per_text = x->type.rank == 2;
    if (x->type.dtype != PITH_F32) x = pith__new_node_cast(&m, x, PITH_F32);
    if (!per_text) {
        x = pooling_rows(&m, x, mask, pool->pooling);
        for (size_t i = 0; i < pool->modules->step_count; i++)
            x = pooling_step(&m, x, &pool->modules->steps[i]);
    }
    if (pool->dim)
        x = PITH_NEW_NODE(&m, "Slice", x, pith__new_node_i64(&m, 0),
                          pith__new_node_i64(&m, pool->dim), pith__new_node_i64(&m, -1));
    if (pool->normalize) x = pooling_normalize(&m, x);
    if (m.status) return m.status;
    return pith__new_node_outputs(graph, &x, (const pith_str[]){ PITH_STR("sentence_embedding") },
                                  1, err);
}
