/* match_nodes.c - see match_nodes.h. */
#include "engine/opt/match_nodes.h"

#include <math.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "engine/ops/op.h"

static bool is(const pith__node *node, const char *domain, const char *op_type) {
    return node && node->output_count > 0 && node->outputs[0] &&
           pith__str_is(node->domain, domain) && pith__str_is(node->op_type, op_type);
}

bool pith__match_is(const pith__node *node, const char *op_type) { return is(node, "", op_type); }
bool pith__match_is_own(const pith__node *node, const char *op_type) {
    return is(node, "pith", op_type);
}

bool pith__match_live(const pith__node *node) {
    return node->output_count > 0 && node->outputs[0] &&
           (node->outputs[0]->user_count > 0 || node->outputs[0]->output_uses > 0);
}

pith__node *pith__match_maker(const pith__value *v, const char *op_type) {
    return v && pith__match_is(v->producer, op_type) && v == v->producer->outputs[0] ? v->producer
                                                                                     : NULL;
}

pith__value *pith__match_input(const pith__node *node, int i) {
    return i < node->input_count ? node->inputs[i] : NULL;
}

pith__value *pith__match_other(const pith__node *node, const pith__value *v) {
    return node->inputs[0] == v ? node->inputs[1] : node->inputs[0];
}

pith__node *pith__match_user(const pith__value *v) {
    return v && v->user_count == 1 && v->output_uses == 0 ? v->users[0].node : NULL;
}

/* Is x * sigmoid(factor * x) an activation? The factor may have been rounded to f16. */
static bool sigmoid_factor(double factor, pith__gemm_activation *activation) {
    if (factor != 1.0 && fabs(factor - 1.702) > 1e-3) return false;
    *activation = factor == 1.0 ? PITH_ACT_SILU : PITH_ACT_QUICK_GELU;
    return true;
}

pith__node *pith__match_activation(const pith__value *v, pith__gemm_activation *activation) {
    static const struct {
        const char *op_type;
        pith__gemm_activation activation;
    } plain[] = {
        { "Relu", PITH_ACT_RELU },
        { "Tanh", PITH_ACT_TANH },
        { "Sigmoid", PITH_ACT_SIGMOID },
    };
    pith__node *user = pith__match_user(v);
    if (pith__match_is(user, "Gelu")) {
        bool tanh = pith__str_is(pith__node_str(user, "approximate", "none"), "tanh");
        *activation = tanh ? PITH_ACT_GELU_TANH : PITH_ACT_GELU_ERF;
        return user;
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (pith__match_is(user, plain[i].op_type)) {
            *activation = plain[i].activation;
            return user;
        }
    }
    bool quick = is(user, "com.microsoft", "QuickGelu");
    if (quick || pith__match_is(user, "Swish")) {
        const float alpha = pith__node_float(user, "alpha", quick ? 1.702f : 1.0f);
        return sigmoid_factor((double)alpha, activation) ? user : NULL;
    }
    /* v * sigmoid(factor * v) reads v twice. */
    if (v->user_count != 2 || v->output_uses) return NULL;
    for (size_t i = 0; i < 2; i++) {
        pith__node *sigmoid = v->users[i].node, *last = v->users[1 - i].node;
        double factor = 1.0;
        if (pith__match_is(sigmoid, "Mul") &&
            pith__match_scalar(pith__match_other(sigmoid, v), &factor))
            sigmoid = pith__match_user(sigmoid->outputs[0]);
        if (pith__match_is(sigmoid, "Sigmoid") && pith__match_is(last, "Mul") &&
            pith__match_user(sigmoid->outputs[0]) == last &&
            pith__match_other(last, v) == sigmoid->outputs[0] && sigmoid_factor(factor, activation))
            return last;
    }
    return NULL;
}

bool pith__match_const(const pith__value *v) {
    return v && v->kind == PITH_VALUE_CONST && v->type.data;
}

bool pith__match_scalar(const pith__value *v, double *x) {
    if (!pith__match_const(v) || pith__type_count(&v->type) != 1) return false;
    const void *p = v->type.data->data;
    switch (v->type.data->dtype) {
    case PITH_F32: {
        float f;
        memcpy(&f, p, sizeof f);
        *x = (double)f;
        return true;
    }
    case PITH_F64: memcpy(x, p, sizeof *x); return true;
    case PITH_F16: {
        uint16_t h;
        memcpy(&h, p, sizeof h);
        *x = (double)pith__f32_of_f16(h);
        return true;
    }
    case PITH_BF16: {
        uint16_t h;
        memcpy(&h, p, sizeof h);
        *x = (double)pith__f32_of_bf16(h);
        return true;
    }
    default: break;
    }
    pith__dim d;
    if (!pith__type_elem(&v->type, 0, &d) || !pith__dim_known(d)) return false;
    *x = (double)d;
    return true;
}

bool pith__match_scalar_near(const pith__value *v, double x, double tolerance) {
    double y;
    return pith__match_scalar(v, &y) && fabs(y - x) <= tolerance;
}

bool pith__match_ints(const pith__value *v, int64_t *items, int64_t max, int64_t *count) {
    if (!v) return false;
    int64_t n = pith__type_count(&v->type);
    if (n < 0 || n > max) return false;
    for (int64_t i = 0; i < n; i++) {
        if (!pith__type_elem(&v->type, i, &items[i]) || !pith__dim_known(items[i])) return false;
    }
    *count = n;
    return true;
}

bool pith__match_vector(const pith__value *v, int64_t n) {
    if (!pith__match_const(v) || v->type.data->dtype != PITH_F32) return false;
    const pith_tensor *t = v->type.data;
    return t->rank >= 1 && t->dims[t->rank - 1] == n && pith__type_count(&v->type) == n;
}

bool pith__match_reduces_last(const pith__node *node) {
    int64_t axes[PITH_MAX_RANK], count;
    int rank = node->inputs[0]->type.rank;
    return rank > 0 && pith__match_ints(pith__match_input(node, 1), axes, PITH_MAX_RANK, &count) &&
           count == 1 && (axes[0] == -1 || axes[0] == rank - 1) &&
           pith__node_int(node, "keepdims", 1) != 0;
}

bool pith__match_same_shape(const pith__type *a, const pith__type *b) {
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) {
        if (!pith__dim_equal(a->dims[i], b->dims[i])) return false;
    }
    return true;
}

bool pith__match_f32(const pith__value *v) { return v && v->type.dtype == PITH_F32; }

bool pith__match_replaceable(const pith__value *old, const pith__value *by) {
    return old->output_uses == 0 || (by->kind == PITH_VALUE_NODE && by->output_uses == 0);
}

pith_status pith__match_replace(pith__value *old, pith__value *by, pith_error *err) {
    if (by->type.rank < 0 && by->type.dtype == PITH_UNDEFINED) by->type = old->type;
    return pith__value_replace(old, by) ? pith__fail_memory(err, 0) : PITH_OK;
}

pith_status pith__match_put(pith__node **made, pith__value *old, pith__node *before,
                            const char *domain, const char *op_type, pith__value *const *inputs,
                            int input_count, pith_error *err) {
    pith__node *node =
        pith__graph_add_node(before->graph, before, domain, op_type, inputs, input_count, NULL, 1);
    if (!node) return pith__fail_memory(err, 0);
    if (old->producer) node->name = old->producer->name;
    PITH_TRY(pith__op_bind_node(node, err));
    *made = node;
    return pith__match_replace(old, node->outputs[0], err);
}
