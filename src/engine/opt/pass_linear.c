/* pass_linear.c - dense layers become pith.Linear.
 *
 * A MatMul or plain Gemm by a constant matrix, with the constant bias added in either operand
 * order, and an activation after it. The matrix may come through Transpose or a widening Cast: the
 * Linear reads the weight itself, transposed or in f16 or bf16, so it is copied only into the
 * packed form. The arithmetic of the parts is kept, with its order. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

typedef struct dense {
    pith__value *x, *weight, *bias;
    pith__node *last; /* whose output is the layer's */
    bool transposed;
    pith__gemm_activation activation;
} dense;

/* The longest chain of Transpose and Cast before a weight. Exporters write up to three; the bound
 * only limits the work. */
#define CHAIN_MAX 16

/* The matrix behind Transpose and Cast, if it is a constant of a float dtype. */
static pith__value *weight_of(pith__value *v, bool *transposed) {
    for (int i = 0; i < CHAIN_MAX; i++) {
        pith__node *transpose = pith__match_maker(v, "Transpose"),
                   *cast = pith__match_maker(v, "Cast");
        if (!transpose && !cast) break;
        if (v->type.rank != 2) return NULL;
        if (transpose) *transposed = !*transposed; /* the identity permutation was cleaned away */
        v = v->producer->inputs[0];
    }
    if (!pith__match_const(v) || v->type.data->rank != 2) return NULL;
    int dtype = v->type.data->dtype;
    return dtype == PITH_F32 || dtype == PITH_F16 || dtype == PITH_BF16 ? v : NULL;
}

/* A MatMul or Gemm by a weight. A Gemm with factors, or with x transposed, stays: pith.Linear has
 * neither. */
static bool linear_match_product(pith__node *node, dense *m) {
    if (pith__match_is(node, "MatMul")) {
        m->x = node->inputs[0];
        if (m->x->type.rank < 1) return false;
    } else if (pith__match_is(node, "Gemm")) {
        if (pith__node_float(node, "alpha", 1.0f) != 1.0f ||
            pith__node_float(node, "beta", 1.0f) != 1.0f || pith__node_int(node, "transA", 0))
            return false;
        m->x = node->inputs[0];
        m->transposed = pith__node_int(node, "transB", 0) != 0;
        m->bias = pith__match_input(node, 2);
    } else {
        return false;
    }
    m->weight = pith__match_f32(m->x) && pith__match_f32(node->inputs[1])
                    ? weight_of(node->inputs[1], &m->transposed)
                    : NULL;
    if (!m->weight) return false;
    m->last = node;
    return !m->bias || pith__match_vector(m->bias, m->weight->type.dims[!m->transposed]);
}

static void match_tail(dense *m) {
    int64_t n = m->weight->type.dims[!m->transposed];
    pith__node *add = pith__match_user(m->last->outputs[0]);
    if (!m->bias && pith__match_is(add, "Add")) {
        pith__value *bias = pith__match_other(add, m->last->outputs[0]);
        if (pith__match_vector(bias, n) && bias->type.data->rank <= add->outputs[0]->type.rank &&
            m->last->outputs[0]->type.rank == add->outputs[0]->type.rank) {
            m->bias = bias;
            m->last = add;
        }
    }
    pith__node *after = pith__match_activation(m->last->outputs[0], &m->activation);
    if (after) m->last = after;
}

static pith_status pass_linear_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        dense m = { 0 };
        if (!pith__match_live(node) || !linear_match_product(node, &m)) continue;
        match_tail(&m);
        pith__value *inputs[] = { m.x, m.weight, m.bias };
        pith__node *made;
        PITH_TRY(pith__match_put(&made, m.last->outputs[0], m.last, "pith", "Linear", inputs,
                                 m.bias ? 3 : 2, o->err));
        if (pith__node_set_int(made, "activation", m.activation) ||
            pith__node_set_int(made, "transposed", m.transposed)) {
            return pith__fail_memory(o->err, 0);
        }
        made->name = node->name;
        pith__report_add(o->report, true, "linear", "linear%s%s '" PITH_STR_FMT "'",
                         m.bias ? " with bias" : "", m.activation ? " and activation" : "",
                         PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_linear = { "linear", 2, false, pass_linear_run };
