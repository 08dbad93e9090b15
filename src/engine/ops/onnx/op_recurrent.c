/* op_recurrent.c - RNN, GRU and LSTM. What is usual goes through recurrent_f32.c. Here is the rest:
 * other functions and types, clip, peepholes, weights that are not constant; in double, one
 * direction and one batch row at a time.
 *
 * Layout 0 is time-major [seq, batch, …] and layout 1 is [batch, seq, …]; only the strides differ.
 * Gates lie in W, R and B in the order of the standard: RNN h; GRU z, r, h; LSTM i, o, f, c. Steps
 * after the end of a row give zeros. The reverse direction starts at the row's own last step.
 * Source: ONNX operators of these names. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/recurrent.h"
#include "engine/ops/shared/recurrent_f32.h"
#include "engine/ops/shared/widen_types.h"

typedef enum kind { RNN, GRU, LSTM } kind;

enum { PACKED = 1u << 1 | 1u << 2 }; /* inputs that pith__recur_run does not read */

typedef struct recurrent {
    kind kind;
    pith__directions directions;
    bool batch_first, linear_before_reset, input_forget;
    double clip;                  /* 0: none */
    pith__cell_fn activations[6]; /* three per direction at most */
    pith__recur fast;             /* if it is possible */
} recurrent;

static int64_t recurrent_gates_of(kind k) {
    static const int64_t gates[] = { [RNN] = 1, [GRU] = 3, [LSTM] = 4 };
    return gates[k];
}
static int recurrent_activations_of(kind k) {
    static const int activations[] = { [RNN] = 1, [GRU] = 2, [LSTM] = 3 };
    return activations[k];
}

/* Every shape follows from the weights: W is [directions, gates * hidden, inputs], R is
 * [directions, gates * hidden, hidden]. */
static pith_status recurrent_infer_kind(pith__infer *c, kind k) {
    const pith__type *x = c->in[0], *w = c->in[1], *r = c->in[2];
    if ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 3) ||
        (r->rank >= 0 && r->rank != 3))
        return pith__op_fail(c, "X, W and R must have three dimensions");
    bool batch_first = pith__node_int(c->node, "layout", 0) != 0;
    pith__dim directions = w->rank < 0 ? PITH_DIM_UNKNOWN : w->dims[0],
              hidden = r->rank < 0 ? PITH_DIM_UNKNOWN : r->dims[2];
    pith__dim seq = x->rank < 0 ? PITH_DIM_UNKNOWN : x->dims[batch_first],
              batch = x->rank < 0 ? PITH_DIM_UNKNOWN : x->dims[!batch_first];
    if (w->rank == 3 && r->rank == 3 && pith__dim_known(hidden) && pith__dim_known(w->dims[1]) &&
        w->dims[1] != recurrent_gates_of(k) * hidden)
        return pith__op_fail(c, "W has %lld rows, %lld are needed", (long long)w->dims[1],
                             (long long)(recurrent_gates_of(k) * hidden));
    if (pith__dim_known(hidden) && pith__node_int(c->node, "hidden_size", hidden) != hidden)
        return pith__op_fail(c, "attribute hidden_size is %lld, the weights are for %lld",
                             (long long)pith__node_int(c->node, "hidden_size", hidden),
                             (long long)hidden);
    pith__dim all[2][4] = { { seq, directions, batch, hidden },
                            { batch, seq, directions, hidden } };
    pith__dim last[2][3] = { { directions, batch, hidden }, { batch, directions, hidden } };
    pith__type_set(&c->out[0], x->dtype, 4, all[batch_first]);
    for (int i = 1; i < c->out_count; i++)
        pith__type_set(&c->out[i], x->dtype, 3, last[batch_first]);
    return PITH_OK;
}

static pith_status recurrent_infer_rnn(pith__infer *c) { return recurrent_infer_kind(c, RNN); }
static pith_status recurrent_infer_gru(pith__infer *c) { return recurrent_infer_kind(c, GRU); }
static pith_status recurrent_infer_lstm(pith__infer *c) { return recurrent_infer_kind(c, LSTM); }

/* Whether every direction has these functions. */
static bool recurrent_has(const recurrent *s, const char *const *names) {
    for (int64_t i = 0; i < s->directions.count * recurrent_activations_of(s->kind); i++)
        if (!pith__cell_fn_is(&s->activations[i], names[i % recurrent_activations_of(s->kind)]))
            return false;
    return true;
}

/* recurrent_f32.c knows the default functions, for RNN also Relu; without clip, peepholes or a
 * coupled forget gate. */
static pith_status recurrent_prepare_fast(recurrent *s, pith__prepare *c,
                                          const char *const *defaults) {
    static const char *const relu[] = { "Relu" };
    bool usual = recurrent_has(s, defaults), rectified = s->kind == RNN && recurrent_has(s, relu);
    if ((!usual && !rectified) || s->clip > 0 || s->input_forget || (c->in_count > 7 && c->in[7]))
        return PITH_OK;
    static const pith__cell cells[] = {
        [RNN] = PITH_CELL_RNN, [GRU] = PITH_CELL_GRU, [LSTM] = PITH_CELL_LSTM
    };
    s->fast.cell = cells[s->kind];
    s->fast.first_is_reverse = s->directions.first_is_reverse;
    s->fast.batch_first = s->batch_first;
    s->fast.linear_before_reset = s->linear_before_reset;
    s->fast.directions = s->directions.count;
    return pith__recur_prepare(&s->fast, c, rectified ? "relu" : "tanh");
}

/* Functions are listed per direction; a list that is absent means the defaults for all. */
static pith_status recurrent_prepare_kind(pith__prepare *c, kind k) {
    recurrent *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    *s = (recurrent){ .kind = k,
                      .batch_first = pith__node_int(c->node, "layout", 0) != 0,
                      .linear_before_reset = pith__node_int(c->node, "linear_before_reset", 0) != 0,
                      .input_forget = pith__node_int(c->node, "input_forget", 0) != 0,
                      .clip = pith__node_float(c->node, "clip", 0) };
    static const char *const defaults[3][3] = { { "Tanh" },
                                                { "Sigmoid", "Tanh" },
                                                { "Sigmoid", "Tanh", "Tanh" } };
    PITH_TRY(pith__directions_read(&s->directions, c->node, c->err));
    size_t own = (size_t)recurrent_activations_of(k);
    PITH_TRY(pith__cell_fns_read(s->activations, own * (size_t)s->directions.count, defaults[k],
                                 own, c->node, c->err));
    c->state = s;
    return recurrent_prepare_fast(s, c, defaults[k]);
}

static pith_status recurrent_prepare_rnn(pith__prepare *c) {
    return recurrent_prepare_kind(c, RNN);
}
static pith_status recurrent_prepare_gru(pith__prepare *c) {
    return recurrent_prepare_kind(c, GRU);
}
static pith_status recurrent_prepare_lstm(pith__prepare *c) {
    return recurrent_prepare_kind(c, LSTM);
}

/* Besides the wide copies: gates from x and from h, h, c, a row each. */
static pith_status recurrent_scratch(const pith__infer *c, const void *state, int threads,
                                     size_t *bytes) {
    const recurrent *s = state;
    const pith__type *x = c->in[0];
    if (s->fast.possible) {
        if (!pith__recur_scratch(&s->fast, x->dims[s->batch_first], x->dims[!s->batch_first],
                                 threads, bytes))
            return pith__fail_memory(c->err, SIZE_MAX);
        return pith__widen_scratch(c, PACKED, bytes);
    }
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    size_t row;
    if (pith__mul_overflows((size_t)c->in[2]->dims[2], 10 * sizeof(double), &row) ||
        pith__add_overflows(*bytes, row, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "hidden size is too large");
    return PITH_OK;
}

/* One row's work in one direction. Pointers are at the direction's weights; absent ones are NULL.
 */
typedef struct row {
    const recurrent *s;
    const pith__cell_fn *f;
    pith__stop *stop;
    const double *w, *r, *b, *p;
    int64_t inputs, hidden;
    double *x_gates, *h_gates, *h, *c;
} row;

static double recurrent_act(const row *t, int which, double x) {
    return pith__cell_apply(&t->f[which], t->s->clip, x);
}

static double recurrent_dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* x_gates = W x + Wb, h_gates = R h + Rb, for gates [from, to). */
static void recurrent_project(const row *t, const double *x, int64_t from, int64_t to) {
    int64_t all = recurrent_gates_of(t->s->kind) * t->hidden;
    for (int64_t g = from * t->hidden; g < to * t->hidden; g++) {
        if (g % 64 == 0 && pith__stop_asked(t->stop)) return;
        if (x)
            t->x_gates[g] =
                recurrent_dot(t->w + g * t->inputs, x, t->inputs) + (t->b ? t->b[g] : 0);
        t->h_gates[g] =
            recurrent_dot(t->r + g * t->hidden, t->h, t->hidden) + (t->b ? t->b[all + g] : 0);
    }
}

static void recurrent_step_rnn(const row *t, const double *x) {
    recurrent_project(t, x, 0, 1);
    for (int64_t i = 0; i < t->hidden; i++)
        t->h[i] = recurrent_act(t, 0, t->x_gates[i] + t->h_gates[i]);
}

/* linear_before_reset decides whether the reset gate scales h before it is multiplied by R, or the
 * product afterwards; the first needs the product of the candidate anew. */
static void recurrent_step_gru(const row *t, const double *x) {
    int64_t n = t->hidden;
    recurrent_project(t, x, 0, 3);
    double *z = t->x_gates, *reset = t->x_gates + n, *candidate = t->x_gates + 2 * n, *old = t->c;
    for (int64_t i = 0; i < n; i++) {
        z[i] = recurrent_act(t, 0, z[i] + t->h_gates[i]);
        reset[i] = recurrent_act(t, 0, reset[i] + t->h_gates[n + i]);
    }
    memcpy(old, t->h, (size_t)n * sizeof *old);
    if (!t->s->linear_before_reset) { /* R (r ∘ h) + Rb instead of r ∘ (R h + Rb) */
        for (int64_t i = 0; i < n; i++) t->h[i] *= reset[i];
        recurrent_project(t, NULL, 2, 3);
    }
    for (int64_t i = 0; i < n; i++) {
        double from_h = t->h_gates[2 * n + i] * (t->s->linear_before_reset ? reset[i] : 1);
        t->h[i] = (1 - z[i]) * recurrent_act(t, 1, candidate[i] + from_h) + z[i] * old[i];
    }
}

/* Peepholes let the gates see the cell: input and forget gate the old one, the output gate the new
 * one. */
static void recurrent_step_lstm(const row *t, const double *x) {
    int64_t n = t->hidden;
    recurrent_project(t, x, 0, 4);
    for (int64_t i = 0; i < n; i++) {
        double in = t->x_gates[i] + t->h_gates[i], out = t->x_gates[n + i] + t->h_gates[n + i];
        double forget = t->x_gates[2 * n + i] + t->h_gates[2 * n + i],
               cell = t->x_gates[3 * n + i] + t->h_gates[3 * n + i];
        in = recurrent_act(t, 0, in + (t->p ? t->p[i] * t->c[i] : 0));
        if (t->s->input_forget)
            forget = 1 - in;
        else
            forget = recurrent_act(t, 0, forget + (t->p ? t->p[2 * n + i] * t->c[i] : 0));
        t->c[i] = forget * t->c[i] + in * recurrent_act(t, 1, cell);
        out = recurrent_act(t, 0, out + (t->p ? t->p[n + i] * t->c[i] : 0));
        t->h[i] = out * recurrent_act(t, 2, t->c[i]);
    }
}

static const double *recurrent_optional(const pith__wide *w, const pith__run *r, int i) {
    return i < r->in_count && r->in[i] ? w->in[i] : NULL;
}

/* Absent, or exactly this many elements. */
static pith_status recurrent_check_size(const pith__run *r, int i, int64_t wanted) {
    if (i >= r->in_count || !r->in[i] || pith__tensor_count(r->in[i]) == wanted) return PITH_OK;
    return pith__fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements, %lld are needed", i,
                      (long long)pith__tensor_count(r->in[i]), (long long)wanted);
}

static pith_status recurrent_check_sizes(const pith__run *r, int64_t directions, int64_t batch,
                                         int64_t gates, int64_t hidden) {
    PITH_TRY(recurrent_check_size(r, 1, directions * gates * r->in[0]->dims[2]));
    PITH_TRY(recurrent_check_size(r, 2, directions * gates * hidden));
    PITH_TRY(recurrent_check_size(r, 3, directions * 2 * gates));
    PITH_TRY(recurrent_check_size(r, 4, batch));
    PITH_TRY(recurrent_check_size(r, 5, directions * batch * hidden));
    PITH_TRY(recurrent_check_size(r, 6, directions * batch * hidden));
    return recurrent_check_size(r, 7, directions * 3 * hidden);
}

static pith_status recurrent_run_fast(pith__run *r) {
    const recurrent *s = r->state;
    return pith__recur_run(r, &s->fast);
}

/* In double: one row of the batch at a time through all its steps, in each direction. The states of
 * a row end at its own length. */
static pith_status recurrent_run(pith__run *r) {
    const recurrent *s = r->state;
    const pith_tensor *x = r->in[0];
    int64_t seq = x->dims[s->batch_first], batch = x->dims[!s->batch_first], inputs = x->dims[2],
            hidden = r->in[2]->dims[2];
    int64_t gates = recurrent_gates_of(s->kind) * hidden, directions = s->directions.count;
    PITH_TRY(recurrent_check_sizes(r, directions, batch, gates, hidden));
    if (s->fast.possible) return pith__widen_run(r, PACKED, recurrent_run_fast);
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    const double *bias = recurrent_optional(&w, r, 3), *lengths = recurrent_optional(&w, r, 4),
                 *h0 = recurrent_optional(&w, r, 5);
    const double *c0 = recurrent_optional(&w, r, 6), *peep = recurrent_optional(&w, r, 7);
    double *y = r->out_count > 0 ? w.out[0] : NULL, *y_h = r->out_count > 1 ? w.out[1] : NULL;
    double *y_c = r->out_count > 2 ? w.out[2] : NULL, *rows = w.rest;
    static void (*const steps_of[])(const row *, const double *) = {
        [RNN] = recurrent_step_rnn, [GRU] = recurrent_step_gru, [LSTM] = recurrent_step_lstm
    };
    void (*step)(const row *, const double *) = steps_of[s->kind];
    for (int64_t d = 0; d < directions; d++) {
        bool reverse = s->directions.first_is_reverse || d == 1;
        row t = { .s = s,
                  .f = s->activations + d * recurrent_activations_of(s->kind),
                  .stop = r->exec->stop,
                  .w = w.in[1] + d * gates * inputs,
                  .r = w.in[2] + d * gates * hidden,
                  .b = bias ? bias + d * 2 * gates : NULL,
                  .p = peep ? peep + d * 3 * hidden : NULL,
                  .inputs = inputs,
                  .hidden = hidden,
                  .x_gates = rows,
                  .h_gates = rows + 4 * hidden,
                  .h = rows + 8 * hidden,
                  .c = rows + 9 * hidden };
        for (int64_t n = 0; n < batch; n++) {
            int64_t steps = lengths ? (int64_t)lengths[n] : seq;
            if (steps < 0 || steps > seq)
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "sequence length %lld is outside of 0 to %lld", (long long)steps,
                                  (long long)seq);
            int64_t last = (s->batch_first ? n * directions + d : d * batch + n) * hidden;
            for (int64_t i = 0; i < hidden; i++) {
                t.h[i] = h0 ? h0[last + i] : 0;
                t.c[i] = c0 ? c0[last + i] : 0;
            }
            for (int64_t k = 0; k < steps; k++) {
                PITH_TRY(pith__run_look(r));
                int64_t at = reverse ? steps - 1 - k : k;
                step(&t, w.in[0] + (s->batch_first ? n * seq + at : at * batch + n) * inputs);
                int64_t place = (s->batch_first ? (n * seq + at) * directions + d
                                                : (at * directions + d) * batch + n) *
                                hidden;
                if (y) memcpy(y + place, t.h, (size_t)hidden * sizeof *y);
            }
            if (y_h) memcpy(y_h + last, t.h, (size_t)hidden * sizeof *y_h);
            if (y_c) memcpy(y_c + last, t.c, (size_t)hidden * sizeof *y_c);
        }
    }
    return pith__wide_close(&w, r);
}

/* Every round of every text multiplies by all weights. */
static void recurrent_cost(const pith__run *r, pith__cost *cost) {
    const double rounds = (double)(r->in[0]->dims[0] * r->in[0]->dims[1]);
    cost->operations =
        2 * rounds * (double)(pith__tensor_count(r->in[1]) + pith__tensor_count(r->in[2]));
    cost->serial = r->in[1]->dims[0] == 1; /* one direction, round after round */
}

const pith__op pith__op_GRU = {
    .domain = "",
    .name = "GRU",
    .since = 7,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 6,
    .max_outputs = 2,
    .types = "ffffwf",
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; "
             "clip float; direction string forward|reverse|bidirectional = forward; "
             "hidden_size int 1..; layout bool = 0 @14; linear_before_reset bool = 0 @3; "
             "output_sequence bool = 0 @-6",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = recurrent_infer_gru,
    .prepare = recurrent_prepare_gru,
    .scratch = recurrent_scratch,
    .run = recurrent_run,
    .cost = recurrent_cost,
};

const pith__op pith__op_LSTM = {
    .domain = "",
    .name = "LSTM",
    .since = 7,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 8,
    .max_outputs = 3,
    .types = "ffffwf",
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; "
             "clip float; direction string forward|reverse|bidirectional = forward; "
             "hidden_size int 1..; input_forget bool = 0; layout bool = 0 @14; "
             "output_sequence bool = 0 @-6",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = recurrent_infer_lstm,
    .prepare = recurrent_prepare_lstm,
    .scratch = recurrent_scratch,
    .run = recurrent_run,
    .cost = recurrent_cost,
};

const pith__op pith__op_RNN = {
    .domain = "",
    .name = "RNN",
    .since = 7,
    .newest = 22,
    .min_inputs = 3,
    .max_inputs = 6,
    .max_outputs = 2,
    .types = "ffffwf",
    .attrs = "activation_alpha floats; activation_beta floats; "
             "activations strings = Tanh,Tanh; clip float; "
             "direction string forward|reverse|bidirectional = forward; "
             "hidden_size int 1..; layout bool = 0 @14; output_sequence bool = 0 @-6",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = recurrent_infer_rnn,
    .prepare = recurrent_prepare_rnn,
    .scratch = recurrent_scratch,
    .run = recurrent_run,
    .cost = recurrent_cost,
};
