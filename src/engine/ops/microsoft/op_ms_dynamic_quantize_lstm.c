/* op_ms_dynamic_quantize_lstm.c - com.microsoft's DynamicQuantizeLSTM: an LSTM with 8-bit integer
 * weights, whose inputs and hidden states are quantised on the way, as by DynamicQuantizeLinear.
 *
 * A scale is that of all rows which are multiplied together: the whole input, and at each step the
 * hidden states of all rows of the batch. Those are what the previous step wrote, so zeros for a
 * row that ended before. At load the node becomes a pith.QuantizedLSTM with the inputs of each
 * direction, whose constant weights are then matrices that can be packed. Threads take a direction
 * each. With the usual functions the gates are f32, as those of LSTM; with others, a clip or
 * peepholes they are double. Source: ONNX Runtime's ContribOperators.md and the ONNX operator
 * LSTM. */
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/cells.h"
#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/compose_ops.h"
#include "engine/ops/shared/int_matmul.h"
#include "engine/ops/shared/recurrent.h"

/* Inputs of the first direction; those of the second follow, without X and LENGTHS. */
enum { X, W, R, B, LENGTHS, H0, C0, PEEP, W_SCALE, W_ZERO, R_SCALE, R_ZERO, INPUTS };

/* ---- the weights of each direction ---- */

/* The part of an input that belongs to a direction, without its axis. */
static pith__value *lstm_part(pith__node *node, int i, int64_t direction) {
    pith__value *v = pith__node_input(node, i);
    if (v) v = pith__compose_list(node, "Gather", v, &direction, 1);
    return v ? pith__compose_list(node, "Squeeze", v, (int64_t[]){ 0 }, 1) : NULL;
}

/* The inputs of one direction. X and the lengths are shared and stand with the first one only; of
 * all others the direction's part is cut out. */
static pith_status lstm_direction(pith__node *node, int64_t direction, pith__value *inputs[INPUTS],
                                  pith_error *err) {
    for (int i = 0; i < INPUTS; i++) {
        bool shared = i == X || i == LENGTHS;
        if (shared)
            inputs[i] = direction ? NULL : pith__node_input(node, i);
        else
            inputs[i] = lstm_part(node, i, direction);
        if (!inputs[i] && !shared && pith__node_input(node, i)) return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

/* Becomes pith.QuantizedLSTM, with INPUTS inputs per direction. */
static pith_status lstm_upgrade(pith__node *node, pith_error *err) {
    pith__directions directions;
    pith__value *inputs[2 * INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        if ((i <= R || i >= W_SCALE) && !pith__node_input(node, i))
            return pith__fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->input_count > INPUTS || node->output_count > 3)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "has %d inputs and %d outputs, at most %d and 3 are known",
                          node->input_count, node->output_count, INPUTS);
    PITH_TRY(pith__directions_read(&directions, node, err));
    for (int64_t d = 0; d < directions.count; d++)
        PITH_TRY(lstm_direction(node, d, inputs + d * INPUTS, err));
    pith__value *y =
        pith__compose(node, "pith", "QuantizedLSTM", inputs, (int)directions.count * INPUTS, 3);
    if (!y || pith__node_copy_attrs(y->producer, node)) return pith__fail_memory(err, 0);
    for (int i = 0; i < node->output_count; i++) {
        if (pith__compose_wanted(node, i))
            PITH_TRY(pith__compose_give(node, i, pith__node_output(y->producer, i), err));
    }
    pith__node_remove(node);
    return PITH_OK;
}

/* ---- pith.QuantizedLSTM ---- */

typedef struct lstm_way { /* a direction */
    pith__int_product input, hidden;
    pith__cell_fn fns[3];
    bool reverse;
} lstm_way;

typedef struct lstm {
    lstm_way ways[2];
    int64_t directions;
    pith__lstm_cell_fn *cell;   /* NULL: what makes the gates double */
    pith__sums_scale_fn *worth; /* of sums, in f32 */
    pith__range_fn *range;
    pith__quantize_fn *quantize;
    float clip;
    bool input_forget;
} lstm;

/* W and R are [inputs, 4 hidden] and [hidden, 4 hidden]; hidden is bounded so that four times it
 * cannot overflow. */
static pith_status lstm_infer_weights(pith__infer *c, const pith__type *const *in) {
    const pith__type *x = c->in[X], *w = in[W], *r = in[R];
    if ((w->rank >= 0 && w->rank != 2) || (r->rank >= 0 && r->rank != 2))
        return pith__op_fail(c, "W and R of a direction must have two dimensions");
    pith__dim hidden = r->rank == 2 ? r->dims[0] : PITH_DIM_UNKNOWN;
    const pith__type *first = c->in[R], *both[2] = { w, r };
    for (int i = 0; i < 2; i++) {
        pith__dim columns = both[i]->rank == 2 ? both[i]->dims[1] : PITH_DIM_UNKNOWN;
        if (pith__dim_known(hidden) && pith__dim_known(columns) &&
            (hidden > INT32_MAX / 8 || columns != 4 * hidden))
            return pith__op_fail(c,
                                 "input %d has %lld columns, not four times the hidden size %lld",
                                 i + 1, (long long)columns, (long long)hidden);
    }
    if (pith__dim_known(hidden) && first->rank == 2 && pith__dim_known(first->dims[0]) &&
        first->dims[0] != hidden)
        return pith__op_fail(c, "the directions have hidden sizes of %lld and %lld",
                             (long long)first->dims[0], (long long)hidden);
    if (w->rank == 2 && x->rank == 3 && pith__dim_known(w->dims[0]) &&
        pith__dim_known(x->dims[2]) && w->dims[0] != x->dims[2])
        return pith__op_fail(c, "W is for rows of %lld, X has rows of %lld", (long long)w->dims[0],
                             (long long)x->dims[2]);
    return PITH_OK;
}

/* As LSTM: all hidden states, the last ones and the last cells, with an axis of directions. */
static pith_status lstm_infer(pith__infer *c) {
    const pith__type *x = c->in[X];
    pith__directions d;
    PITH_TRY(pith__directions_read(&d, c->node, c->err));
    if (x->rank >= 0 && x->rank != 3) return pith__op_fail(c, "X must have three dimensions");
    for (int64_t i = 0; i < d.count; i++) {
        const pith__type *const *in = c->in + i * INPUTS;
        if (c->in_count < i * INPUTS + B || !in[W] || !in[R])
            return pith__op_fail(c, "direction %lld has no weights", (long long)i);
        PITH_TRY(lstm_infer_weights(c, in));
    }
    pith__dim steps = PITH_DIM_UNKNOWN, batch = PITH_DIM_UNKNOWN,
              hidden = c->in[R]->rank == 2 ? c->in[R]->dims[0] : PITH_DIM_UNKNOWN;
    if (x->rank == 3) steps = x->dims[0], batch = x->dims[1];
    pith__infer_set(c, 0, x->dtype, 4, (pith__dim[]){ steps, d.count, batch, hidden });
    for (int i = 1; i < 3; i++)
        pith__infer_set(c, i, x->dtype, 3, (pith__dim[]){ d.count, batch, hidden });
    return PITH_OK;
}

/* Whether lstm_cell does what this direction asks for. */
static bool lstm_is_usual(const lstm *s, const pith__prepare *c, int64_t direction) {
    const pith__cell_fn *fns = s->ways[direction].fns;
    int64_t peep = direction * INPUTS + PEEP;
    return pith__cell_fn_is(&fns[0], "Sigmoid") && pith__cell_fn_is(&fns[1], "Tanh") &&
           pith__cell_fn_is(&fns[2], "Tanh") && !(s->clip > 0) && !s->input_forget &&
           !(c->in_count > peep && c->in[peep]);
}

/* Weights are packed for the integer matmul. The kernel of a cell serves only if every direction is
 * as in the usual LSTM. */
static pith_status lstm_prepare(pith__prepare *c) {
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    lstm *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    pith__directions d;
    pith__cell_fn fns[6];
    pith__kernel_fn *range, *quantize;
    PITH_TRY(pith__directions_read(&d, c->node, c->err));
    PITH_TRY(pith__cell_fns_read(fns, 3 * (size_t)d.count, defaults, 3, c->node, c->err));
    PITH_TRY(pith__prepare_kernel(c, "range", PITH_F32, &range));
    PITH_TRY(pith__prepare_kernel(c, "quantize", PITH_U8, &quantize));
    s->range = (pith__range_fn *)range;
    s->quantize = (pith__quantize_fn *)quantize;
    s->directions = d.count;
    s->clip = pith__node_float(c->node, "clip", 0);
    s->input_forget = pith__node_int(c->node, "input_forget", 0) != 0;
    bool usual = true;
    for (int64_t i = 0; i < d.count; i++) {
        lstm_way *way = &s->ways[i];
        memcpy(way->fns, fns + 3 * i, sizeof way->fns);
        way->reverse = i == 1 || d.first_is_reverse;
        usual &= lstm_is_usual(s, c, i);
        PITH_TRY(pith__int_product_prepare(&way->input, c, (int)i * INPUTS + W));
        PITH_TRY(pith__int_product_prepare(&way->hidden, c, (int)i * INPUTS + R));
    }
    s->worth = PITH_PREPARE_KERNEL(pith__sums_scale_fn, "sums_scale", PITH_I32, c);
    if (usual && s->worth)
        s->cell = PITH_PREPARE_KERNEL(pith__lstm_cell_fn, "lstm_cell", PITH_F32, c);
    c->state = s;
    return PITH_OK;
}

/* Where what lies in a direction's scratch: bytes of the input and of the states, sums of both,
 * gates from both of a row, states, weights' scales. */
typedef struct lstm_parts {
    size_t x_bytes, h_bytes, x_sums, h_sums, gates, states, scales, product, total;
} lstm_parts;

/* Where each part of a direction's memory lies, 64 bytes aligned. False: a size overflows. Run and
 * scratch both come here, so they agree. */
static bool lstm_layout(lstm_parts *p, const lstm *s, int64_t steps, int64_t batch, int64_t inputs,
                        int64_t hidden) {
    int64_t rows, elements, states, gates = 4 * hidden, sums;
    size_t products[2];
    if (pith__mul_overflows(steps, batch, &rows) || pith__mul_overflows(rows, inputs, &elements) ||
        pith__mul_overflows(batch, hidden, &states) ||
        pith__mul_overflows(rows, gates * 4, &sums) ||
        pith__mul_overflows(states, (int64_t)64, &(int64_t){ 0 }))
        return false;
    size_t sizes[] = { (size_t)elements,   (size_t)states,
                       (size_t)sums,       (size_t)states * 16,
                       (size_t)gates * 8,  (size_t)states * 8,
                       (size_t)gates * 16, 0 };
    size_t *at[] = { &p->x_bytes, &p->h_bytes, &p->x_sums, &p->h_sums,
                     &p->gates,   &p->states,  &p->scales, &p->product };
    for (int64_t d = 0; d < s->directions; d++) {
        if (!pith__int_product_scratch(&s->ways[d].input, rows, gates, inputs, &products[0]) ||
            !pith__int_product_scratch(&s->ways[d].hidden, batch, gates, hidden, &products[1]))
            return false;
        for (int i = 0; i < 2; i++)
            if (products[i] > sizes[7]) sizes[7] = products[i];
    }
    p->total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *at[i] = p->total;
        if (pith__add_overflows(p->total, sizes[i], &p->total) ||
            pith__add_overflows(p->total, (size_t)64, &p->total))
            return false;
        p->total &= ~(size_t)63;
    }
    return true;
}

/* Directions run at the same time, so each has its own memory. */
static pith_status lstm_scratch(const pith__infer *c, const void *state, int threads,
                                size_t *bytes) {
    const lstm *s = state;
    lstm_parts p;
    const pith__dim *x = c->in[X]->dims;
    (void)threads;
    if (!lstm_layout(&p, s, x[0], x[1], x[2], c->in[R]->dims[0]) ||
        pith__mul_overflows(p.total, (size_t)s->directions, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

/* A matrix of the matmul: what it was quantised with, what its sums are worth. */
typedef struct lstm_side {
    pith_tensor bytes;
    uint8_t zero;
    float scale;
    int32_t *sums;
    const float *scales; /* of the weights' columns */
} lstm_side;

typedef struct lstm_job { /* a direction */
    pith__run *r;
    const lstm *s;
    const lstm_way *way;
    int64_t direction, steps, batch, inputs, hidden, rounds; /* rounds: steps of the longest row */
    lstm_side input, state;
    float *x_gates, *h_gates, *h, *c;
    const float *bias, *peep;
    const int32_t *lengths;
    void *product;
} lstm_job;

static const pith_tensor *lstm_in(const pith__run *r, int64_t direction, int i) {
    int64_t at = direction * INPUTS + i;
    return at < r->in_count ? r->in[at] : NULL;
}
static const void *lstm_data(const pith__run *r, int64_t direction, int i) {
    const pith_tensor *t = lstm_in(r, direction, i);
    return t ? t->data : NULL;
}

static void lstm_quantize(const lstm *s, lstm_side *q, const float *x, int64_t n) {
    float zero;
    pith__dynamic_scale(&q->scale, &zero, x, (size_t)n, s->range);
    q->zero = (uint8_t)zero;
    s->quantize(x, q->bytes.data, (size_t)n, q->scale, 0.0f - zero, 255.0f - zero, (int32_t)zero);
}

static void lstm_multiply(const lstm_job *j, lstm_side *side, const pith__int_product *p,
                          int weights, int zeros, const float *x, int64_t rows, int64_t width) {
    const pith_tensor zero = { .data = &side->zero, .dtype = PITH_U8, .bytes = 1 };
    lstm_quantize(j->s, side, x, rows * width);
    pith__int_product_run(j->r, p, j->product, side->sums, &side->bytes, 0,
                          lstm_in(j->r, j->direction, weights), 0, &zero,
                          lstm_in(j->r, j->direction, zeros), rows, 4 * j->hidden, width);
}

/* Gate g (of i, o, f, c) of element i of a row before its function. */
static double lstm_gate(const lstm_job *j, int64_t x_row, int64_t row, int64_t g, int64_t i) {
    int64_t n = j->hidden, at = g * n + i;
    double v = (double)j->input.sums[x_row * 4 * n + at] *
                   ((double)j->input.scale * (double)j->input.scales[at]) +
               (double)j->state.sums[row * 4 * n + at] *
                   ((double)j->state.scale * (double)j->state.scales[at]);
    return j->bias ? v + (double)j->bias[at] + (double)j->bias[4 * n + at] : v;
}

/* A cell with the usual functions. */
static void lstm_usual_cell(const lstm_job *j, int64_t x_row, int64_t row, float *h, float *c) {
    const int64_t gates = 4 * j->hidden;
    j->s->worth(j->x_gates, j->input.sums + x_row * gates, gates, j->input.scale, j->input.scales,
                NULL);
    j->s->worth(j->h_gates, j->state.sums + row * gates, gates, j->state.scale, j->state.scales,
                NULL);
    if (j->bias) {
        for (int64_t i = 0; i < gates; i++) j->x_gates[i] += j->bias[i] + j->bias[gates + i];
    }
    j->s->cell(h, c, j->x_gates, j->h_gates, j->hidden);
}

/* One row of the batch in double, gates in the order i, o, f, c of the standard. Peepholes see the
 * old cell, the output gate the new one. */
static void lstm_cell(const lstm_job *j, int64_t x_row, int64_t row, float *h, float *c) {
    const pith__cell_fn *fns = j->way->fns;
    const double clip = (double)j->s->clip;
    int64_t n = j->hidden;
    for (int64_t i = 0; i < n; i++) {
        double old = (double)c[i], in = lstm_gate(j, x_row, row, 0, i),
               out = lstm_gate(j, x_row, row, 1, i);
        in = pith__cell_apply(&fns[0], clip, j->peep ? in + (double)j->peep[i] * old : in);
        double forget = 1 - in;
        if (!j->s->input_forget) {
            forget =
                lstm_gate(j, x_row, row, 2, i) + (j->peep ? (double)j->peep[2 * n + i] * old : 0);
            forget = pith__cell_apply(&fns[0], clip, forget);
        }
        double now =
            forget * old + in * pith__cell_apply(&fns[1], clip, lstm_gate(j, x_row, row, 3, i));
        out = pith__cell_apply(&fns[0], clip, j->peep ? out + (double)j->peep[n + i] * now : out);
        c[i] = (float)now;
        h[i] = (float)(out * pith__cell_apply(&fns[2], clip, now));
    }
}

/* Optional inputs and scales have the sizes they must have. */
static pith_status lstm_check(const pith__run *r, int64_t direction) {
    const int64_t steps = r->in[X]->dims[0], batch = r->in[X]->dims[1], n = r->in[R]->dims[0];
    const int64_t wanted[INPUTS] = {
        [B] = 8 * n,       [LENGTHS] = batch, [H0] = batch * n,  [C0] = batch * n, [PEEP] = 3 * n,
        [W_SCALE] = 4 * n, [W_ZERO] = 4 * n,  [R_SCALE] = 4 * n, [R_ZERO] = 4 * n
    };
    for (int i = B; i < INPUTS; i++) {
        const pith_tensor *t = lstm_in(r, direction, i);
        int64_t count = t ? pith__tensor_count(t) : wanted[i];
        if (count != wanted[i] && !(i >= W_SCALE && count == 1))
            return pith__fail(r->err, PITH_ERR_ARGUMENT,
                              "input %d has %lld elements for the direction, not %lld", i,
                              (long long)count, (long long)wanted[i]);
    }
    const int32_t *lengths = lstm_data(r, direction, LENGTHS);
    if (lengths) {
        for (int64_t b = 0; b < batch; b++) {
            if (lengths[b] < 0 || lengths[b] > steps)
                return pith__fail(r->err, PITH_ERR_RUN,
                                  "sequence length %d is outside of 0 to %lld", lengths[b],
                                  (long long)steps);
        }
    }
    return PITH_OK;
}

static const float *lstm_scales(const pith_tensor *t, float *to, int64_t n) {
    const float *from = t->data;
    for (int64_t i = 0; i < n; i++) to[i] = from[pith__tensor_count(t) == 1 ? 0 : i];
    return to;
}

/* One step of all rows that have not ended; y: the output Y, NULL if not wanted. */
static void lstm_round(const lstm_job *j, int64_t round, float *y) {
    int64_t n = j->hidden;
    for (int64_t b = 0; b < j->batch; b++) {
        int64_t length = j->lengths ? j->lengths[b] : j->steps,
                at = j->way->reverse ? length - 1 - round : round;
        float *h = j->h + b * n;
        if (round >= length) {
            memset(h, 0, (size_t)n * sizeof *h);
            continue;
        }
        (j->s->cell ? lstm_usual_cell : lstm_cell)(j, at * j->batch + b, b, h, j->c + b * n);
        if (y)
            memcpy(y + ((at * j->s->directions + j->direction) * j->batch + b) * n, h,
                   (size_t)n * sizeof *y);
    }
}

/* Rows that end with this round give their states away; a row without a step gives zeros. */
static void lstm_finish(const lstm_job *j, int64_t round) {
    int64_t n = j->hidden;
    pith_tensor *last[2] = { j->r->out_count > 1 ? j->r->out[1] : NULL,
                             j->r->out_count > 2 ? j->r->out[2] : NULL };
    for (int64_t b = 0; b < j->batch; b++) {
        if (round != (j->lengths ? j->lengths[b] : j->steps)) continue;
        const float *from[2] = { j->h + b * n, j->c + b * n };
        for (int i = 0; i < 2; i++)
            if (last[i])
                memcpy((float *)last[i]->data + (j->direction * j->batch + b) * n, from[i],
                       (size_t)n * sizeof(float));
    }
}

/* Finds a direction's inputs and its parts of the scratch. */
static lstm_job lstm_job_of(pith__run *r, int64_t direction) {
    const int64_t *x = r->in[X]->dims, hidden = r->in[R]->dims[0], gates = 4 * hidden;
    const lstm *s = r->state;
    lstm_parts p;
    lstm_job j = { .r = r, .s = s, .way = &s->ways[direction], .direction = direction };
    j.steps = x[0], j.batch = x[1], j.inputs = x[2], j.hidden = hidden;
    lstm_layout(&p, s, x[0], x[1], x[2], hidden);
    char *at = (char *)r->scratch + (size_t)direction * p.total;
    float *scales = (float *)(void *)(at + p.scales);
    j.bias = lstm_data(r, direction, B), j.peep = lstm_data(r, direction, PEEP),
    j.lengths = lstm_data(r, 0, LENGTHS);
    j.input = (lstm_side){ .bytes = { .data = at + p.x_bytes, .dtype = PITH_U8 },
                           .sums = (int32_t *)(void *)(at + p.x_sums),
                           .scales = lstm_scales(lstm_in(r, direction, W_SCALE), scales, gates) };
    j.state =
        (lstm_side){ .bytes = { .data = at + p.h_bytes, .dtype = PITH_U8 },
                     .sums = (int32_t *)(void *)(at + p.h_sums),
                     .scales = lstm_scales(lstm_in(r, direction, R_SCALE), scales + gates, gates) };
    j.x_gates = (float *)(void *)(at + p.gates), j.h_gates = j.x_gates + gates;
    j.h = (float *)(void *)(at + p.states), j.c = j.h + j.batch * hidden,
    j.product = at + p.product;
    return j;
}

/* The input's part of all gates is one matmul over all steps, with one scale; the hidden part is
 * one per step. Steps behind the longest row are not computed. */
static void lstm_run_direction(void *context, size_t direction, int worker) {
    pith__run *r = context;
    lstm_job j = lstm_job_of(r, (int64_t)direction);
    float *states[2] = { j.h, j.c }, *y = r->out[0] ? r->out[0]->data : NULL;
    (void)worker;
    for (int i = 0; i < 2; i++) {
        const void *first = lstm_data(r, j.direction, H0 + i);
        size_t bytes = (size_t)(j.batch * j.hidden) * sizeof(float);
        if (bytes && first) memcpy(states[i], first, bytes);
        if (bytes && !first) memset(states[i], 0, bytes);
    }
    for (int64_t b = 0; b < j.batch; b++) {
        int64_t length = j.lengths ? j.lengths[b] : j.steps;
        if (length > j.rounds) j.rounds = length;
    }
    if (j.rounds)
        lstm_multiply(&j, &j.input, &j.way->input, W, W_ZERO, r->in[X]->data, j.rounds * j.batch,
                      j.inputs);
    for (int64_t round = 0; round < j.rounds; round++) {
        if (pith__stop_asked(r->exec->stop)) return;
        lstm_multiply(&j, &j.state, &j.way->hidden, R, R_ZERO, j.h, j.batch, j.hidden);
        lstm_round(&j, round, y);
        lstm_finish(&j, round + 1);
    }
}

static pith_status lstm_run(pith__run *r) {
    const lstm *s = r->state;
    for (int64_t d = 0; d < s->directions; d++) PITH_TRY(lstm_check(r, d));
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i]) PITH_TRY(pith__run_bytes(r, r->out[i]->data, NULL, r->out[i]->bytes));
    pith__run_parallel(r, lstm_run_direction, r, (size_t)s->directions);
    return PITH_OK;
}

static void lstm_cost(const pith__run *r, pith__cost *cost) {
    pith__cost_product(cost, 4 * (r->in[X]->dims[2] + r->in[R]->dims[0]), "gemm i8");
}

PITH_OP_COMPOSED(
    DynamicQuantizeLSTM_ms, "com.microsoft", "DynamicQuantizeLSTM", 12, 12, 3, lstm_upgrade, NULL,
    .flags = PITH_OP_FIRST_OPTIONAL,
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; clip float; "
             "direction string forward|reverse|bidirectional = forward; hidden_size int 1..; "
             "input_forget bool = 0")
const pith__op pith__op_QuantizedLSTM_pith = {
    .domain = "pith",
    .name = "QuantizedLSTM",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 2 * INPUTS,
    .max_outputs = 3,
    .types = "eqqeweeeeqeqeqqeweeeeqeq",
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; clip float; "
             "direction string forward|reverse|bidirectional = forward; hidden_size int 1..; "
             "input_forget bool = 0",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = lstm_infer,
    .prepare = lstm_prepare,
    .scratch = lstm_scratch,
    .run = lstm_run,
    .cost = lstm_cost
};
