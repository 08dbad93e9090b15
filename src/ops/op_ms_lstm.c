/* op_ms_lstm.c - com.microsoft's DynamicQuantizeLSTM: an LSTM with 8-bit integer weights, whose inputs and hidden
 * states are quantised on the way, as by DynamicQuantizeLinear.
 *
 * A scale is that of all rows which are multiplied together: the whole input, and at each step the hidden states of
 * all rows of the batch. Those are what the previous step wrote, so zeros for a row that ended before. At load the
 * node becomes one pith.QuantizedLSTM per direction, whose constant weights are then matrices that can be packed.
 * Source: ONNX Runtime's ContribOperators.md and the ONNX operator LSTM. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/compose.h"
#include "ops/int_product.h"
#include "ops/recurrent.h"

enum { X, W, R, B, LENGTHS, H0, C0, PEEP, W_SCALE, W_ZERO, R_SCALE, R_ZERO, INPUTS };

/* ---- one node for each direction ---- */

/* The part of an input that belongs to a direction, without its axis. */
static pith_value *lstm_part(pith_node *node, int i, int64_t direction) {
    pith_value *v = pith_node_input(node, i);
    if (v) v = pith_compose_list(node, "Gather", v, &direction, 1);
    return v ? pith_compose_list(node, "Squeeze", v, (int64_t[]){ 0 }, 1) : NULL;
}

static pith_status lstm_direction(pith_node *node, int64_t direction, pith_value *outputs[3], pith_error *err) {
    pith_value *inputs[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = i == X || i == LENGTHS ? pith_node_input(node, i) : lstm_part(node, i, direction);
        if (!inputs[i] && pith_node_input(node, i)) return pith_fail_memory(err, 0);
    }
    pith_value *y = pith_compose(node, "pith", "QuantizedLSTM", inputs, INPUTS, 3);
    if (!y || pith_node_copy_attrs(y->producer, node) || !pith_with_int(y, "second", direction))
        return pith_fail_memory(err, 0);
    for (int i = 0; i < 3; i++) outputs[i] = pith_node_output(y->producer, i);
    return PITH_OK;
}

static pith_status lstm_upgrade(pith_node *node, pith_error *err) {
    pith_directions directions;
    pith_value *outputs[2][3];
    for (int i = 0; i < INPUTS; i++) {
        if ((i <= R || i >= W_SCALE) && !pith_node_input(node, i))
            return pith_fail(err, PITH_ERR_FORMAT, "input %d is missing", i);
    }
    if (node->input_count > INPUTS || node->output_count > 3)
        return pith_fail(err, PITH_ERR_FORMAT, "has %d inputs and %d outputs, at most %d and 3 are known",
                         node->input_count, node->output_count, INPUTS);
    PITH_TRY(pith_directions_read(&directions, node, err));
    for (int64_t d = 0; d < directions.count; d++) PITH_TRY(lstm_direction(node, d, outputs[d], err));
    for (int i = 0; i < node->output_count; i++) {
        if (!pith_compose_wanted(node, i)) continue;
        pith_value *y = outputs[0][i];
        if (directions.count == 2) /* Y is [steps, directions, …], the others [directions, …] */
            y = pith_with_int(pith_compose2(node, "Concat", y, outputs[1][i]), "axis", i == 0);
        PITH_TRY(pith_compose_give(node, i, y, err));
    }
    pith_node_remove(node);
    return PITH_OK;
}

/* ---- pith.QuantizedLSTM ---- */

typedef struct lstm {
    pith_int_product input, hidden;
    pith_cell_fn fns[6];
    float clip;
    bool reverse, input_forget;
} lstm;

static pith_status lstm_infer(pith_infer *c) {
    const pith_type *x = c->in[X], *w = c->in[W], *r = c->in[R];
    if ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 2) || (r->rank >= 0 && r->rank != 2))
        return pith_op_fail(c, "X, W and R must have three dimensions");
    pith_dim steps = PITH_DIM_UNKNOWN, batch = PITH_DIM_UNKNOWN, hidden = PITH_DIM_UNKNOWN;
    if (x->rank == 3) steps = x->dims[0], batch = x->dims[1];
    if (r->rank == 2) hidden = r->dims[0];
    const pith_type *both[2] = { w, r };
    for (int i = 0; i < 2; i++) {
        pith_dim columns = both[i]->rank == 2 ? both[i]->dims[1] : PITH_DIM_UNKNOWN;
        if (pith_dim_known(hidden) && pith_dim_known(columns) && (hidden > INT32_MAX / 8 || columns != 4 * hidden))
            return pith_op_fail(c, "input %d has %lld columns, not four times the hidden size %lld", i + 1,
                                (long long)columns, (long long)hidden);
    }
    if (w->rank == 2 && x->rank == 3 && pith_dim_known(w->dims[0]) && pith_dim_known(x->dims[2]) &&
        w->dims[0] != x->dims[2])
        return pith_op_fail(c, "W is for rows of %lld, X has rows of %lld", (long long)w->dims[0],
                            (long long)x->dims[2]);
    pith_infer_set(c, 0, x->dtype, 4, (pith_dim[]){ steps, 1, batch, hidden });
    for (int i = 1; i < 3; i++) pith_infer_set(c, i, x->dtype, 3, (pith_dim[]){ 1, batch, hidden });
    return PITH_OK;
}

static pith_status lstm_prepare(pith_prepare *c) {
    static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
    lstm *s = pith_arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith_fail_memory(c->err, sizeof *s);
    pith_directions d;
    bool second = pith_node_int(c->node, "second", 0) != 0;
    PITH_TRY(pith_directions_read(&d, c->node, c->err));
    PITH_TRY(pith_cell_fns_read(s->fns, 3 * (size_t)d.count, defaults, 3, c->node, c->err));
    if (second) memcpy(s->fns, s->fns + 3, 3 * sizeof s->fns[0]);
    s->reverse = second || d.first_is_reverse;
    s->clip = pith_node_float(c->node, "clip", 0);
    s->input_forget = pith_node_int(c->node, "input_forget", 0) != 0;
    PITH_TRY(pith_int_product_prepare(&s->input, c, W));
    c->state = s;
    return pith_int_product_prepare(&s->hidden, c, R);
}

/* Where what lies in scratch: bytes of the input and of the states, sums of both, states, weights' scales. */
typedef struct lstm_parts {
    size_t x_bytes, h_bytes, x_sums, h_sums, states, scales, product, total;
} lstm_parts;

static bool lstm_layout(lstm_parts *p, const lstm *s, int64_t steps, int64_t batch, int64_t inputs, int64_t hidden) {
    int64_t rows, elements, states, gates = 4 * hidden, sums;
    size_t products[2];
    if (pith_mul_overflows(steps, batch, &rows) || pith_mul_overflows(rows, inputs, &elements) ||
        pith_mul_overflows(batch, hidden, &states) || pith_mul_overflows(rows, gates * 4, &sums) ||
        pith_mul_overflows(states, (int64_t)64, &(int64_t){ 0 }) ||
        !pith_int_product_scratch(&s->input, rows, gates, inputs, &products[0]) ||
        !pith_int_product_scratch(&s->hidden, batch, gates, hidden, &products[1]))
        return false;
    size_t sizes[] = { (size_t)elements,
                       (size_t)states,
                       (size_t)sums,
                       (size_t)states * 16,
                       (size_t)states * 8,
                       (size_t)gates * 32,
                       products[products[1] > products[0]] };
    size_t *at[] = { &p->x_bytes, &p->h_bytes, &p->x_sums, &p->h_sums, &p->states, &p->scales, &p->product };
    p->total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *at[i] = p->total;
        if (pith_add_overflows(p->total, sizes[i], &p->total) || pith_add_overflows(p->total, (size_t)64, &p->total))
            return false;
        p->total &= ~(size_t)63;
    }
    return true;
}

static pith_status lstm_scratch(const pith_infer *c, const void *state, int threads, size_t *bytes) {
    lstm_parts p;
    const pith_dim *x = c->in[X]->dims;
    (void)threads;
    if (!lstm_layout(&p, state, x[0], x[1], x[2], c->in[R]->dims[0])) return pith_fail_memory(c->err, SIZE_MAX);
    *bytes = p.total;
    return PITH_OK;
}

/* A matrix of the matmul: what it was quantised with, what its sums are worth. */
typedef struct lstm_side {
    pith_tensor bytes;
    uint8_t zero;
    float scale;
    int32_t *sums;
    const double *scales; /* of the weights' columns */
} lstm_side;

/* As DynamicQuantizeLinear does it. */
static void lstm_quantize(lstm_side *q, const float *x, int64_t n) {
    float low = 0, high = 0;
    uint8_t *y = q->bytes.data;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    q->scale = high == low ? 1.0f : (high - low) / 255.0f;
    q->zero = (uint8_t)rintf(fminf(255.0f, fmaxf(0.0f, 0.0f - low / q->scale)));
    for (int64_t i = 0; i < n; i++) y[i] = (uint8_t)fminf(255.0f, fmaxf(0.0f, rintf(x[i] / q->scale) + (float)q->zero));
}

typedef struct lstm_job {
    pith_run *r;
    const lstm *s;
    int64_t steps, batch, inputs, hidden, rounds; /* rounds: steps of the longest row */
    lstm_side input, state;
    float *h, *c;
    const float *bias, *peep;
    const int32_t *lengths;
    void *product;
} lstm_job;

static void lstm_multiply(const lstm_job *j, lstm_side *side, const pith_int_product *p, int weights, int zeros,
                          const float *x, int64_t rows, int64_t width) {
    const pith_tensor zero = { .data = &side->zero, .dtype = PITH_U8, .bytes = 1 };
    lstm_quantize(side, x, rows * width);
    pith_int_product_run(j->r, p, j->product, side->sums, &side->bytes, 0, j->r->in[weights], 0, &zero, j->r->in[zeros],
                         rows, 4 * j->hidden, width);
}

/* Gate g (of i, o, f, c) of element i of a row before its function. */
static double lstm_gate(const lstm_job *j, int64_t x_row, int64_t row, int64_t g, int64_t i) {
    int64_t n = j->hidden, at = g * n + i;
    double v = (double)j->input.sums[x_row * 4 * n + at] * ((double)j->input.scale * j->input.scales[at]) +
               (double)j->state.sums[row * 4 * n + at] * ((double)j->state.scale * j->state.scales[at]);
    return j->bias ? v + (double)j->bias[at] + (double)j->bias[4 * n + at] : v;
}

static void lstm_cell(const lstm_job *j, int64_t x_row, int64_t row, float *h, float *c) {
    const lstm *s = j->s;
    int64_t n = j->hidden;
    for (int64_t i = 0; i < n; i++) {
        double old = (double)c[i], in = lstm_gate(j, x_row, row, 0, i), out = lstm_gate(j, x_row, row, 1, i);
        in = pith_cell_apply(&s->fns[0], (double)s->clip, j->peep ? in + (double)j->peep[i] * old : in);
        double forget = 1 - in;
        if (!s->input_forget) {
            forget = lstm_gate(j, x_row, row, 2, i) + (j->peep ? (double)j->peep[2 * n + i] * old : 0);
            forget = pith_cell_apply(&s->fns[0], (double)s->clip, forget);
        }
        double now = forget * old + in * pith_cell_apply(&s->fns[1], (double)s->clip, lstm_gate(j, x_row, row, 3, i));
        out = pith_cell_apply(&s->fns[0], (double)s->clip, j->peep ? out + (double)j->peep[n + i] * now : out);
        c[i] = (float)now;
        h[i] = (float)(out * pith_cell_apply(&s->fns[2], (double)s->clip, now));
    }
}

static const void *lstm_data(const pith_run *r, int i) { return pith_has_input(r, i) ? r->in[i]->data : NULL; }

/* Optional inputs and scales have the sizes they must have. */
static pith_status lstm_check(const lstm_job *j) {
    const pith_run *r = j->r;
    int64_t n = j->hidden, states = j->batch * n;
    const int64_t wanted[INPUTS] = {
        [B] = 8 * n,       [LENGTHS] = j->batch, [H0] = states,     [C0] = states,   [PEEP] = 3 * n,
        [W_SCALE] = 4 * n, [W_ZERO] = 4 * n,     [R_SCALE] = 4 * n, [R_ZERO] = 4 * n
    };
    for (int i = B; i < INPUTS; i++) {
        int64_t count = pith_has_input(r, i) ? pith_tensor_count(r->in[i]) : wanted[i];
        if (count != wanted[i] && !(i >= W_SCALE && count == 1))
            return pith_fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements for the direction, not %lld", i,
                             (long long)count, (long long)wanted[i]);
    }
    for (int64_t b = 0; j->lengths && b < j->batch; b++) {
        if (j->lengths[b] < 0 || j->lengths[b] > j->steps)
            return pith_fail(r->err, PITH_ERR_RUN, "sequence length %d is outside of 0 to %lld", j->lengths[b],
                             (long long)j->steps);
    }
    return PITH_OK;
}

static const double *lstm_scales(const pith_tensor *t, double *to, int64_t n) {
    const float *from = t->data;
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[pith_tensor_count(t) == 1 ? 0 : i];
    return to;
}

/* One step of all rows that have not ended; y: [batch, hidden] of the step of a row, NULL if not wanted. */
static void lstm_round(const lstm_job *j, int64_t round, float *y) {
    int64_t n = j->hidden;
    for (int64_t b = 0; b < j->batch; b++) {
        int64_t length = j->lengths ? j->lengths[b] : j->steps, at = j->s->reverse ? length - 1 - round : round;
        if (round >= length) {
            memset(j->h + b * n, 0, (size_t)n * sizeof *j->h);
            continue;
        }
        lstm_cell(j, at * j->batch + b, b, j->h + b * n, j->c + b * n);
        if (y) memcpy(y + (at * j->batch + b) * n, j->h + b * n, (size_t)n * sizeof *y);
    }
}

/* Rows that end with this round give their states away; a row without a step gives zeros. */
static void lstm_finish(const lstm_job *j, int64_t round) {
    int64_t n = j->hidden;
    pith_tensor *last[2] = { j->r->out_count > 1 ? j->r->out[1] : NULL, j->r->out_count > 2 ? j->r->out[2] : NULL };
    for (int64_t b = 0; b < j->batch; b++) {
        if (round != (j->lengths ? j->lengths[b] : j->steps)) continue;
        const float *from[2] = { j->h + b * n, j->c + b * n };
        for (int i = 0; i < 2; i++)
            if (last[i]) memcpy((float *)last[i]->data + b * n, from[i], (size_t)n * sizeof(float));
    }
}

static pith_status lstm_run(pith_run *r) {
    const int64_t *x = r->in[X]->dims, hidden = r->in[R]->dims[0];
    lstm_parts p;
    lstm_job j = { .r = r, .s = r->state, .steps = x[0], .batch = x[1], .inputs = x[2], .hidden = hidden };
    lstm_layout(&p, j.s, x[0], x[1], x[2], hidden);
    char *at = r->scratch;
    double *scales = (double *)(void *)(at + p.scales);
    j.bias = lstm_data(r, B), j.peep = lstm_data(r, PEEP), j.lengths = lstm_data(r, LENGTHS);
    PITH_TRY(lstm_check(&j));
    j.input = (lstm_side){ .bytes = { .data = at + p.x_bytes, .dtype = PITH_U8 },
                           .sums = (int32_t *)(void *)(at + p.x_sums),
                           .scales = lstm_scales(r->in[W_SCALE], scales, 4 * hidden) };
    j.state = (lstm_side){ .bytes = { .data = at + p.h_bytes, .dtype = PITH_U8 },
                           .sums = (int32_t *)(void *)(at + p.h_sums),
                           .scales = lstm_scales(r->in[R_SCALE], scales + 4 * hidden, 4 * hidden) };
    j.h = (float *)(void *)(at + p.states), j.c = j.h + j.batch * hidden, j.product = at + p.product;
    float *states[2] = { j.h, j.c };
    for (int i = 0; i < 2; i++) {
        size_t bytes = (size_t)(j.batch * hidden) * sizeof(float);
        if (!bytes) continue;
        if (lstm_data(r, H0 + i))
            memcpy(states[i], lstm_data(r, H0 + i), bytes);
        else
            memset(states[i], 0, bytes);
    }
    for (int64_t b = 0; b < j.batch; b++) {
        int64_t length = j.lengths ? j.lengths[b] : j.steps;
        if (length > j.rounds) j.rounds = length;
    }
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i] && r->out[i]->bytes) memset(r->out[i]->data, 0, r->out[i]->bytes);
    float *y = r->out[0] ? r->out[0]->data : NULL;
    if (j.rounds) lstm_multiply(&j, &j.input, &j.s->input, W, W_ZERO, r->in[X]->data, j.rounds * j.batch, j.inputs);
    for (int64_t round = 0; round < j.rounds; round++) {
        lstm_multiply(&j, &j.state, &j.s->hidden, R, R_ZERO, j.h, j.batch, hidden);
        lstm_round(&j, round, y);
        lstm_finish(&j, round + 1);
    }
    return PITH_OK;
}

static void lstm_cost(const pith_run *r, pith_cost *cost) {
    pith_cost_product(cost, 4 * (r->in[X]->dims[2] + r->in[R]->dims[0]), "gemm i8");
}

PITH_OP_COMPOSED(
    DynamicQuantizeLSTM_ms, "com.microsoft", "DynamicQuantizeLSTM", 12, 12, 3, lstm_upgrade, NULL,
    .flags = PITH_OP_FIRST_OPTIONAL,
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; clip float; "
             "direction string forward|reverse|bidirectional = forward; hidden_size int 1..; input_forget bool = 0")
const pith_op pith_op_QuantizedLSTM_pith = {
    .domain = "pith",
    .name = "QuantizedLSTM",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = INPUTS,
    .max_outputs = 3,
    .types = "eqqeweeeeqeq",
    .attrs = "activation_alpha floats; activation_beta floats; activations strings; clip float; "
             "direction string forward|reverse|bidirectional = forward; hidden_size int 1..; input_forget bool = 0; "
             "second bool = 0",
    .flags = PITH_OP_FIRST_OPTIONAL,
    .infer = lstm_infer,
    .prepare = lstm_prepare,
    .scratch = lstm_scratch,
    .run = lstm_run,
    .cost = lstm_cost
};
