/* op_ms_causal_conv_with_state.c - com.microsoft's CausalConvWithState and
 * VarlenCausalConvWithState: a convolution by channel over time, with a state from call to call, of
 * a batch or of packed sequences.
 *
 * Tap k of the last one back reads the input k * dilation steps before; before the first step that
 * is the state. Everything is in double. Source: ONNX Runtime's schemas of these names. */
#include <math.h>

#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/carried_state.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct causal {
    int64_t taps, dilation, before; /* before: steps that the state holds */
    bool silu;
} causal;

/* Attributes and the number of taps, 0 if that is not known yet. before: how many inputs before its
 * own a step reads, the length of the state. */
static pith_status causal_read(causal *s, const pith__node *node, const pith__type *weight,
                               pith_error *err) {
    *s = (causal){ .dilation = pith__node_int(node, "dilation", 1),
                   .silu = !pith__str_is(pith__node_str(node, "activation", "none"), "none") };
    if (weight->rank >= 0 && weight->rank != 3)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the weight has %d dimensions, not 3",
                          weight->rank);
    s->taps = weight->rank == 3 && pith__dim_known(weight->dims[2]) ? weight->dims[2] : 0;
    if (s->taps > INT32_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "a window of %lld taps is too long",
                          (long long)s->taps);
    s->before = s->taps > 0 ? (s->taps - 1) * s->dilation : 0;
    return PITH_OK;
}

/* One channel: steps of x and y lie x_step apart, those of the state old_step. */
typedef struct causal_row {
    const double *x, *old, *weight;
    int64_t x_step, old_step, length;
    double bias;
} causal_row;

static double causal_get(const causal *s, const causal_row *row, int64_t at) {
    if (at >= 0) return row->x[at * row->x_step];
    return row->old ? row->old[(s->before + at) * row->old_step] : 0;
}

/* One channel of one sequence. Taps before the first input read the state, or zero without one. */
static void causal_output(const causal *s, const causal_row *row, double *y) {
    for (int64_t t = 0; t < row->length; t++) {
        double sum = row->bias;
        for (int64_t k = 0; k < s->taps; k++)
            sum += row->weight[k] * causal_get(s, row, t - (s->taps - 1 - k) * s->dilation);
        y[t * row->x_step] = s->silu ? sum / (1 + exp(-sum)) : sum;
    }
}

/* The state after the first `count` steps. */
static void causal_state(const causal *s, const causal_row *row, int64_t count, double *state) {
    for (int64_t k = 0; k < s->before; k++)
        state[k * row->old_step] = causal_get(s, row, count - s->before + k);
}

/* The state has the shape of the input, with the steps that a window reaches back in place of its
 * length. */
static pith_status causal_infer(pith__infer *c) {
    const pith__type *x = c->in[0], *weight = c->in[1];
    causal s;
    bool last = pith__node_int(c->node, "channels_last", 0) != 0;
    PITH_TRY(causal_read(&s, c->node, weight, c->err));
    if (x->rank >= 0 && (x->rank < 3 || (!last && x->rank != 3)))
        return pith__op_fail(c, "the input has %d dimensions, not 3", x->rank);
    pith__infer_set(c, 0, x->dtype, x->rank, x->dims);
    pith__dim dims[PITH_MAX_RANK];
    for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
    const int time_axis = last ? 1 : 2;
    if (x->rank >= 0) dims[time_axis] = s.taps > 0 ? s.before : PITH_DIM_UNKNOWN;
    pith__infer_set(c, 1, x->dtype, x->rank, dims);
    return PITH_OK;
}

/* channels_last puts the channels behind the time; the steps of row and state then are the number
 * of channels instead of 1. Nothing else differs. */
static pith_status causal_run(pith__run *r) {
    const pith_tensor *x = r->in[0];
    causal s;
    pith__type weight;
    pith__type_of_tensor(&weight, r->in[1]);
    PITH_TRY(causal_read(&s, r->node, &weight, r->err));
    bool last = pith__node_int(r->node, "channels_last", 0) != 0;
    const int time_axis = last ? 1 : 2;
    int64_t batch = x->dims[0], length = x->dims[time_axis], channels = 1;
    for (int i = 1; i < x->rank; i++) channels *= i == time_axis ? 1 : x->dims[i];
    if (s.taps < 1 || r->in[1]->dims[1] != 1)
        return pith__op_fail(r, "the weight is not of [channels, 1, taps]");
    PITH_TRY(pith__state_check(r, 1, channels * s.taps));
    PITH_TRY(pith__state_check(r, 2, channels));
    PITH_TRY(pith__state_check(r, 3, batch * channels * s.before));
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    const double *bias = pith__state_input(&w, r, 2), *old = pith__state_input(&w, r, 3);
    double *present = pith__state_output(&w, r, 1);
    for (int64_t i = 0; i < batch * channels; i++) {
        PITH_TRY(pith__run_look(r));
        int64_t b = i / channels, c = i % channels,
                at = last ? b * length * channels + c : i * length;
        int64_t state = last ? b * s.before * channels + c : i * s.before;
        causal_row row = { .x = w.in[0] + at,
                           .old = old ? old + state : NULL,
                           .weight = w.in[1] + c * s.taps,
                           .x_step = last ? channels : 1,
                           .old_step = last ? channels : 1,
                           .length = length,
                           .bias = bias ? bias[c] : 0 };
        if (w.out[0]) causal_output(&s, &row, w.out[0] + at);
        if (present) causal_state(&s, &row, length, present + state);
    }
    return pith__wide_close(&w, r);
}

enum { V_X, V_WEIGHT, V_ENDS, V_BIAS, V_STATE, V_COUNTS };

/* Tokens of all sequences lie in one [tokens, channels]. Output 2 has the inputs of the first
 * `capacity` steps of each sequence, from which a caller can roll the state back. */
static pith_status causal_varlen_infer(pith__infer *c) {
    causal s;
    int64_t capacity;
    PITH_TRY(causal_read(&s, c->node, c->in[V_WEIGHT], c->err));
    if (!pith__has_input(c, V_STATE)) return pith__op_fail(c, "input %d is missing", V_STATE);
    PITH_TRY(pith__state_capacity(c, V_COUNTS, &capacity));
    if (pith__has_input(c, 6) || pith__has_input(c, 7))
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "inputs kernel_delta and previous_mask are not supported");
    const pith__type *x = c->in[V_X], *state = c->in[V_STATE];
    if ((x->rank >= 0 && x->rank != 2) || (state->rank >= 0 && state->rank != 3))
        return pith__op_fail(c, "the input must have two dimensions, the state three");
    pith__infer_set(c, 0, x->dtype, x->rank, x->dims);
    pith__infer_set(c, 1, x->dtype, state->rank, state->dims);
    pith__infer_set(c, 2, x->dtype, 3,
                    (pith__dim[]){ state->rank == 3 ? state->dims[0] : PITH_DIM_UNKNOWN, capacity,
                                   x->rank == 2 ? x->dims[1] : PITH_DIM_UNKNOWN });
    return PITH_OK;
}

/* Sequence by sequence and channel by channel. The ends of the sequences are checked first, so that
 * every place below is inside of the input. */
static pith_status causal_varlen_run(pith__run *r) {
    int64_t total = r->in[V_X]->dims[0], channels = r->in[V_X]->dims[1],
            batch = r->in[V_STATE]->dims[0];
    int64_t capacity = pith__node_int(r->node, "state_update_capacity", 0);
    causal s;
    pith__type weight;
    pith__type_of_tensor(&weight, r->in[V_WEIGHT]);
    PITH_TRY(causal_read(&s, r->node, &weight, r->err));
    if (s.taps < 1) return pith__op_fail(r, "the weight is not of [channels, 1, taps]");
    PITH_TRY(pith__state_check(r, V_WEIGHT, channels * s.taps));
    PITH_TRY(pith__state_check(r, V_ENDS, batch + 1));
    PITH_TRY(pith__state_check(r, V_BIAS, channels));
    PITH_TRY(pith__state_check(r, V_STATE, batch * channels * s.before));
    PITH_TRY(pith__state_check(r, V_COUNTS, batch));
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    const double *ends = w.in[V_ENDS], *bias = pith__state_input(&w, r, V_BIAS),
                 *counts = pith__state_input(&w, r, V_COUNTS);
    double *final = pith__state_output(&w, r, 1), *update = pith__state_output(&w, r, 2);
    PITH_TRY(pith__state_check_ends(r, ends, batch, total));
    for (int64_t i = 0; i < batch * channels; i++) {
        PITH_TRY(pith__run_look(r));
        int64_t b = i / channels, c = i % channels, first = (int64_t)ends[b];
        causal_row row = { .x = w.in[V_X] + first * channels + c,
                           .old = w.in[V_STATE] + i * s.before,
                           .weight = w.in[V_WEIGHT] + c * s.taps,
                           .x_step = channels,
                           .old_step = 1,
                           .length = (int64_t)ends[b + 1] - first,
                           .bias = bias ? bias[c] : 0 };
        if (w.out[0]) causal_output(&s, &row, w.out[0] + first * channels + c);
        if (final) causal_state(&s, &row, row.length, final + i * s.before);
        int64_t captured = update ? pith__state_captured(counts, b, capacity, row.length) : 0;
        for (int64_t t = 0; t < captured; t++)
            update[(b * capacity + t) * channels + c] = row.x[t * channels];
    }
    return pith__wide_close(&w, r);
}

#define STATEFUL(symbol, name_, min, max, outputs, types_, infer_, scratch_, run_, note_, attrs_)  \
    const pith__op pith__op_##symbol = { .domain = "com.microsoft",                                \
                                         .name = name_,                                            \
                                         .since = 1,                                               \
                                         .newest = 1,                                              \
                                         .min_inputs = min,                                        \
                                         .max_inputs = max,                                        \
                                         .max_outputs = outputs,                                   \
                                         .types = types_,                                          \
                                         .attrs = attrs_,                                          \
                                         .infer = infer_,                                          \
                                         .scratch = scratch_,                                      \
                                         .run = run_,                                              \
                                         .note = note_ };
STATEFUL(CausalConvWithState_ms, "CausalConvWithState", 2, 4, 3, "h", causal_infer,
         pith__wide_scratch, causal_run, NULL,
         "activation string none|silu|swish = none; channels_last bool = 0; dilation int 1.. = 1; "
         "input_channel_offset int 0 = 0; input_channels int 0 = 0; ndim int 1 = 1; "
         "state_channels_last int -1 = -1; "
         "state_length int 0 = 0; state_update_capacity int 0 = 0; state_window int 0 = 0")
STATEFUL(VarlenCausalConvWithState_ms, "VarlenCausalConvWithState", 3, 8, 3, "hhwhhwhh",
         causal_varlen_infer, pith__wide_scratch, causal_varlen_run,
         "no kernel_delta and previous_mask",
         "activation string none|silu|swish = none; delta_offset int = 0; dilation int 1.. = 1; "
         "group_size int = 1; "
         "state_update_capacity int 0..8 = 0")
