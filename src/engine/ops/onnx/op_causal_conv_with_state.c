/* op_causal_conv_with_state.c - CausalConvWithState: a convolution by channel over time, which sees
 * only the past.
 *
 * What lies before the first step comes from the past state, or is zero. The last steps are given
 * back as the state of the next call. Computed in double. Source: ONNX CausalConvWithState
 * (opset 27). */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"

static pith_status causal_conv_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *weight = c->in[1];
    if ((x->rank >= 0 && x->rank != 3) || (weight->rank >= 0 && weight->rank != 3))
        return pith__op_fail(c, "input and weight must have three dimensions");
    pith_str activation = pith__node_str(c->node, "activation", "none");
    if (!pith__str_is(activation, "none") && !pith__str_is(activation, "silu") &&
        !pith__str_is(activation, "swish"))
        return pith__op_fail(c, "activation '" PITH_STR_FMT "' is unknown",
                             PITH_STR_ARG(activation));
    pith__type_set(&c->out[0], x->dtype, x->rank, x->dims);
    if (c->out_count < 2) return PITH_OK;
    pith__dim state[3] = { PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN, PITH_DIM_UNKNOWN };
    if (x->rank == 3) state[0] = x->dims[0], state[1] = x->dims[1];
    if (weight->rank == 3) state[2] = pith__dim_apply(c->dims, PITH_DIM_SUB, weight->dims[2], 1);
    pith__type_set(&c->out[1], x->dtype, 3, state);
    return PITH_OK;
}

/* The step at a place of a row; before its first one, what the past state has, or zero. */
static double causal_conv_at(const double *now, const double *old, int64_t before, int64_t at) {
    if (at >= 0) return now[at];
    return old ? old[before + at] : 0;
}

/* Row by row of [batch, channels]: the output at t is the taps times the steps t - before … t. The
 * state given back is the last `before` steps, which may reach into the state that came in if the
 * input is short. */
static pith_status causal_conv_run(pith__run *r) {
    const pith_tensor *x = r->in[0], *past = r->in_count > 3 ? r->in[3] : NULL,
                      *bias = r->in_count > 2 ? r->in[2] : NULL;
    int64_t channels = x->dims[1], length = x->dims[2], taps = r->in[1]->dims[2], before = taps - 1;
    if (taps < 1 || r->in[1]->dims[0] != channels || r->in[1]->dims[1] != 1 ||
        (bias && pith__tensor_count(bias) != channels) ||
        (past && pith__tensor_count(past) != x->dims[0] * channels * before))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "weight, bias or past state do not fit the input");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    bool silu = !pith__str_is(pith__node_str(r->node, "activation", "none"), "none");
    for (int64_t row = 0; row < x->dims[0] * channels; row++) {
        PITH_TRY(pith__run_look(r));
        const double *now = w.in[0] + row * length, *weight = w.in[1] + row % channels * taps;
        const double *old = past ? w.in[3] + row * before : NULL;
        if (w.out[0]) {
            for (int64_t t = 0; t < length; t++) {
                double sum = bias ? w.in[2][row % channels] : 0;
                for (int64_t k = 0; k < taps; k++) {
                    int64_t at = t + k - before;
                    sum += weight[k] * causal_conv_at(now, old, before, at);
                }
                w.out[0][row * length + t] = silu ? sum / (1 + exp(-sum)) : sum;
            }
        }
        if (r->out_count > 1 && w.out[1]) {
            for (int64_t k = 0; k < before; k++) {
                int64_t at = length + k - before;
                w.out[1][row * before + k] = causal_conv_at(now, old, before, at);
            }
        }
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_CausalConvWithState = {
    .domain = "",
    .name = "CausalConvWithState",
    .since = 27,
    .newest = 27,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 2,
    .types = "h",
    .attrs = "activation string none|silu|swish = none",
    .infer = causal_conv_infer,
    .scratch = pith__wide_scratch,
    .run = causal_conv_run,
};
