/* pass_layer_norm.c - written-out normalisations become LayerNormalization and RMSNormalization.
 *
 *   d = x - mean(x)   (x itself: RMS);   d / sqrt(mean(d^2) + epsilon) [* gamma] [+ beta]
 * in any operand order, with Pow or Mul for the square and Div, Reciprocal or Pow for the root.
 * gamma and beta are constants of the last axis. The match starts at the node that divides. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

typedef struct norm {
    pith__value *x, *gamma, *beta;
    pith__node *last; /* whose output is the normalised value */
    double epsilon;
    bool centred;
} norm;

static pith__value *square_of(const pith__value *v) {
    pith__node *pow = pith__match_maker(v, "Pow"), *mul = pith__match_maker(v, "Mul");
    if (pow && pith__match_scalar_near(pow->inputs[1], 2.0, 0.0)) return pow->inputs[0];
    return mul && mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : NULL;
}

/* v = sqrt(mean(d^2) + epsilon) → d. */
static pith__value *root_mean_square(const pith__value *v, double *epsilon) {
    pith__node *sqrt = pith__match_maker(v, "Sqrt"), *pow = pith__match_maker(v, "Pow");
    pith__value *inside = sqrt ? sqrt->inputs[0] : NULL;
    if (pow && pith__match_scalar_near(pow->inputs[1], 0.5, 0.0)) inside = pow->inputs[0];
    pith__node *add = pith__match_maker(inside, "Add");
    if (!add) return NULL;
    for (int i = 0; i < 2; i++) {
        pith__node *mean = pith__match_maker(add->inputs[1 - i], "ReduceMean");
        if (mean && pith__match_scalar(add->inputs[i], epsilon) && pith__match_reduces_last(mean)) {
            return square_of(mean->inputs[0]);
        }
    }
    return NULL;
}

/* v = 1 / sqrt(mean(d^2) + epsilon) → d. */
static pith__value *inverse_root(const pith__value *v, double *epsilon) {
    pith__node *reciprocal = pith__match_maker(v, "Reciprocal"), *div = pith__match_maker(v, "Div");
    if (reciprocal) return root_mean_square(reciprocal->inputs[0], epsilon);
    if (div && pith__match_scalar_near(div->inputs[0], 1.0, 0.0))
        return root_mean_square(div->inputs[1], epsilon);
    return NULL;
}

/* The vector operand of v's only user, if that is this operator; *last moves to the user. */
static pith__value *vector_operand(pith__node **last, const char *op_type, int64_t n) {
    pith__node *user = pith__match_user((*last)->outputs[0]);
    if (!pith__match_is(user, op_type)) return NULL;
    pith__value *vector = pith__match_other(user, (*last)->outputs[0]);
    if (!pith__match_vector(vector, n) || vector->type.data->rank != 1) return NULL;
    *last = user;
    return vector;
}

/* Matches from the node that divides by the root back to x, then forward over the factor and the
 * summand. The divided value must be the very one that was squared. Without a subtracted mean it is
 * an RMS norm, which has no beta. gamma must be there, since both operators require it. */
static bool layer_norm_match(const pith__node *node, norm *m) {
    pith__value *d = NULL;
    if (pith__match_is(node, "Div")) {
        d = root_mean_square(node->inputs[1], &m->epsilon);
        if (d != node->inputs[0]) return false;
    } else if (pith__match_is(node, "Mul")) {
        for (int i = 0; i < 2 && !d; i++) {
            d = inverse_root(node->inputs[i], &m->epsilon);
            if (d != node->inputs[1 - i]) d = NULL;
        }
    }
    if (!d || !pith__match_f32(d) || d->type.rank < 1) return false;
    pith__node *sub = pith__match_maker(d, "Sub");
    pith__node *mean = sub ? pith__match_maker(sub->inputs[1], "ReduceMean") : NULL;
    m->centred = mean && mean->inputs[0] == sub->inputs[0] && pith__match_reduces_last(mean);
    m->x = m->centred ? sub->inputs[0] : d;
    m->last = node->outputs[0]->producer;
    pith__dim n = m->x->type.dims[m->x->type.rank - 1];
    m->gamma = vector_operand(&m->last, "Mul", n);
    m->beta = m->gamma && m->centred ? vector_operand(&m->last, "Add", n) : NULL;
    return m->gamma != NULL;
}

static pith_status pass_layer_norm_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        norm m = { 0 };
        if (!pith__match_live(node) || !layer_norm_match(node, &m)) continue;
        const char *op_type = m.centred ? "LayerNormalization" : "RMSNormalization";
        if (!pith__op_find(PITH_STR(""), pith__str_of(op_type))) continue;
        pith__value *inputs[] = { m.x, m.gamma, m.beta };
        pith__node *made;
        PITH_TRY(pith__match_put(&made, m.last->outputs[0], m.last, "", op_type, inputs,
                                 m.beta ? 3 : 2, o->err));
        if (pith__node_set_float(made, "epsilon", (float)m.epsilon) ||
            pith__node_set_int(made, "axis", -1)) {
            return pith__fail_memory(o->err, 0);
        }
        pith__report_add(o->report, true, "layer_norm", "%s from its parts at '" PITH_STR_FMT "'",
                         op_type, PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_layer_norm = { "layer_norm", 2, false, pass_layer_norm_run };
