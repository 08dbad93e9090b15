/* op_training_optimisers.c - the optimisers of ai.onnx.preview.training: Adagrad, Adam, Momentum.
 *
 * Inputs: learning rate R, update count T, then n tensors X, n gradients G and n of each state;
 * outputs: n new X and n of each new state. Source: ONNX operators of these names. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

typedef struct optimiser {
    float alpha, beta, epsilon, norm, norm_post, decay;
    bool nesterov;
    int states; /* tensors of state per X */
} optimiser;

static pith_status optimiser_infer_states(pith__infer *c, int states) {
    int n = (c->in_count - 2) / (2 + states);
    if (c->in_count - 2 != n * (2 + states) || c->out_count != n * (1 + states) || n < 1)
        return pith__op_fail(c, "%d inputs and %d outputs do not fit", c->in_count, c->out_count);
    for (int i = 0; i < c->out_count; i++) {
        const pith__type *x = c->in[2 + (i < n ? i : i + n)];
        pith__type_set(&c->out[i], x->dtype, x->rank, x->dims);
    }
    return PITH_OK;
}

static pith_status optimiser_infer_one(pith__infer *c) { return optimiser_infer_states(c, 1); }
static pith_status optimiser_infer_two(pith__infer *c) { return optimiser_infer_states(c, 2); }

/* One reader for the attributes of all three; each has those that the others lack as zeros. */
static pith_status optimiser_prepare(pith__prepare *c, int states, optimiser defaults) {
    optimiser *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    *s = (optimiser){
        .alpha = pith__node_float(c->node, "alpha", defaults.alpha),
        .beta = pith__node_float(c->node, "beta", defaults.beta),
        .epsilon = pith__node_float(c->node, "epsilon", defaults.epsilon),
        .norm = pith__node_float(c->node, "norm_coefficient", 0),
        .norm_post = pith__node_float(c->node, "norm_coefficient_post", 0),
        .decay = pith__node_float(c->node, "decay_factor", 0),
        .nesterov = pith__str_is(pith__node_str(c->node, "mode", "standard"), "nesterov"),
        .states = states,
    };
    c->state = s;
    return PITH_OK;
}

static pith_status optimiser_prepare_adagrad(pith__prepare *c) {
    return optimiser_prepare(c, 1, (optimiser){ .epsilon = 1e-6f });
}
static pith_status optimiser_prepare_adam(pith__prepare *c) {
    return optimiser_prepare(c, 2, (optimiser){ .alpha = 0.9f, .beta = 0.999f, .epsilon = 1e-6f });
}
static pith_status optimiser_prepare_momentum(pith__prepare *c) {
    return optimiser_prepare(c, 1, (optimiser){ .alpha = 0 });
}

/* One element: x, gradient and states in; x and states out. */
typedef void update(const optimiser *s, double rate, double count, double *x, double g,
                    double *state);

static void optimiser_adagrad(const optimiser *s, double rate, double count, double *x, double g,
                              double *h) {
    double r = rate / (1 + count * s->decay), gradient = s->norm * *x + g;
    h[0] += gradient * gradient;
    *x -= r * gradient / (sqrt(h[0]) + s->epsilon);
}

static void optimiser_adam(const optimiser *s, double rate, double count, double *x, double g,
                           double *v) {
    double gradient = s->norm * *x + g;
    v[0] = s->alpha * v[0] + (1 - (double)s->alpha) * gradient;
    v[1] = s->beta * v[1] + (1 - (double)s->beta) * gradient * gradient;
    double r = count > 0 ? rate * sqrt(1 - pow(s->beta, count)) / (1 - pow(s->alpha, count)) : rate;
    *x = (1 - (double)s->norm_post) * (*x - r * v[0] / (sqrt(v[1]) + s->epsilon));
}

static void optimiser_momentum(const optimiser *s, double rate, double count, double *x, double g,
                               double *v) {
    double gradient = s->norm * *x + g, beta = count > 0 ? s->beta : 1;
    v[0] = s->alpha * v[0] + beta * gradient;
    *x -= rate * (s->nesterov ? gradient + s->alpha * v[0] : v[0]);
}

/* Element by element in double: the states are updated with the gradient, then x with the states.
 * Inputs are lists of n tensors, one list after another. */
static pith_status optimiser_run_update(pith__run *r, update *f) {
    const optimiser *s = r->state;
    if (pith__tensor_count(r->in[0]) < 1 || pith__tensor_count(r->in[1]) < 1)
        return pith__op_fail(r, "R or T is empty");
    double rate = pith__wide_get(r->in[0], 0), count = pith__wide_get(r->in[1], 0);
    int n = (r->in_count - 2) / (2 + s->states);
    for (int i = 0; i < n; i++) {
        int64_t elements = pith__tensor_count(r->in[2 + i]);
        for (int k = 1; k < 2 + s->states; k++)
            if (pith__tensor_count(r->in[2 + i + k * n]) != elements)
                return pith__op_fail(r, "tensors of X %d differ in size", i);
        for (int64_t e = 0; e < elements; e++) {
            PITH_TRY(pith__run_step(r, e));
            double x = pith__wide_get(r->in[2 + i], e), g = pith__wide_get(r->in[2 + n + i], e),
                   state[2] = { 0 };
            for (int k = 0; k < s->states; k++)
                state[k] = pith__wide_get(r->in[2 + (2 + k) * n + i], e);
            f(s, rate, count, &x, g, state);
            if (r->out[i]) pith__wide_put(r->out[i], e, x);
            for (int k = 0; k < s->states; k++) {
                pith_tensor *out = r->out[(1 + k) * n + i];
                if (out) pith__wide_put(out, e, state[k]);
            }
        }
    }
    return PITH_OK;
}

static pith_status optimiser_run_adagrad(pith__run *r) {
    return optimiser_run_update(r, optimiser_adagrad);
}
static pith_status optimiser_run_adam(pith__run *r) {
    return optimiser_run_update(r, optimiser_adam);
}
static pith_status optimiser_run_momentum(pith__run *r) {
    return optimiser_run_update(r, optimiser_momentum);
}

#define TRAINING "ai.onnx.preview.training"

const pith__op pith__op_training_Adagrad = {
    .domain = TRAINING,
    .name = "Adagrad",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = -1,
    .max_outputs = -1,
    .types = "dld",
    .attrs = "decay_factor float = 0; epsilon float = 1e-06; norm_coefficient float = 0",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = optimiser_infer_one,
    .prepare = optimiser_prepare_adagrad,
    .run = optimiser_run_adagrad,
};

const pith__op pith__op_training_Adam = {
    .domain = TRAINING,
    .name = "Adam",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = -1,
    .max_outputs = -1,
    .types = "dld",
    .attrs = "alpha float = 0.9; beta float = 0.999; epsilon float = 1e-06; "
             "norm_coefficient float = 0; norm_coefficient_post float = 0",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = optimiser_infer_two,
    .prepare = optimiser_prepare_adam,
    .run = optimiser_run_adam,
};

const pith__op pith__op_training_Momentum = {
    .domain = TRAINING,
    .name = "Momentum",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = -1,
    .max_outputs = -1,
    .types = "dld",
    .attrs = "alpha float!; beta float!; mode string! standard|nesterov; "
             "norm_coefficient float!",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = optimiser_infer_one,
    .prepare = optimiser_prepare_momentum,
    .run = optimiser_run_momentum,
};
