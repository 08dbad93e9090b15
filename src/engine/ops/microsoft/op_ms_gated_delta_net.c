/* op_ms_gated_delta_net.c - com.microsoft's GatedDeltaNet: a recurrence over a state [values, keys]
 * per head, over a batch or packed sequences.
 *
 * A step is that of LinearAttention, with gates computed here from their logits and with heads
 * normalised if asked for. The factors of the first steps can be captured, so that a caller may go
 * back to them. Everything is in double. Source: ONNX Runtime's schema of this name. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/carried_state.h"
#include "engine/ops/shared/infer_shapes.h"

enum { QUERY, KEY, VALUE, ENDS, DECAY, BETA, STATE, A_LOG, DT_BIAS, COUNTS, ACTIVE };

typedef struct delta {
    int64_t batch, tokens, q_heads, heads, dk, dv; /* heads: of values; tokens: of all sequences */
    int64_t capacity, decays, biases;              /* decays, biases: numbers per head, 1 or dk; 0:
                                                      none */
    bool packed, gated, retrieves, norm, softplus, sigmoid, beta_sigmoid;
    double scale, bound;
} delta;

/* The names of rule and gates as switches. qwen and kda are those of the models they come from. */
static void delta_rules(delta *s, const pith__node *node) {
    pith_str rule = pith__node_str(node, "update_rule", "gated_delta"),
             gate = pith__node_str(node, "gate_activation", "none");
    pith_str beta = pith__node_str(node, "beta_activation", "none");
    s->gated = pith__str_is(rule, "gated") || pith__str_is(rule, "gated_delta");
    s->retrieves = pith__str_is(rule, "delta") || pith__str_is(rule, "gated_delta");
    s->softplus = pith__str_is(gate, "softplus") || pith__str_is(gate, "qwen");
    s->sigmoid = pith__str_is(gate, "sigmoid") || pith__str_is(gate, "kda");
    s->beta_sigmoid = pith__str_is(beta, "sigmoid");
    s->norm = pith__node_int(node, "qk_l2_norm", 0) != 0;
    s->scale = (double)pith__node_float(node, "scale", 0);
    s->bound = (double)pith__node_float(node, "gate_lower_bound", -5);
}

static pith__dim delta_dim(const pith__infer *c, int i, int from_end) {
    const pith__type *t = pith__has_input(c, i) ? c->in[i] : NULL;
    return t && t->rank >= from_end ? t->dims[t->rank - from_end] : PITH_DIM_UNKNOWN;
}

/* The width of what state_update has of a sequence; unknown if some size is. */
static pith__dim delta_update_width(const pith__infer *c, int64_t capacity, pith__dim q_heads,
                                    pith__dim heads, pith__dim dk, pith__dim dv) {
    const pith__type *q = c->in[QUERY], *decay = pith__has_input(c, DECAY) ? c->in[DECAY] : NULL;
    const pith__dim sizes[] = { q_heads, heads, dk, dv, q->rank, decay ? decay->rank : 0 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (!pith__dim_known(sizes[i]) || sizes[i] < 0 || sizes[i] > INT32_MAX / 64)
            return PITH_DIM_UNKNOWN;
    bool by_key = decay && decay->rank == (q->rank == 2 ? 3 : q->rank);
    return capacity * ((by_key ? heads * dk : heads) + q_heads * dk + heads * dv);
}

/* Query, key and value come apart or as one row per token. A packed row does not tell its sizes:
 * those are in the state's shape, which then must be there. One axis of tokens: packed sequences;
 * two: a batch. */
static pith_status delta_infer(pith__infer *c) {
    delta s = { 0 };
    const pith__type *q = c->in[QUERY];
    delta_rules(&s, c->node);
    PITH_TRY(pith__state_capacity(c, COUNTS, &s.capacity));
    s.packed = !pith__has_input(c, KEY);
    if (s.packed != !pith__has_input(c, VALUE))
        return pith__op_fail(c, "key and value go together");
    if ((s.packed || !pith__has_input(c, ENDS)) && !pith__has_input(c, STATE) && q->rank != 4)
        return pith__op_fail(c, "initial_state is missing, which gives the batch and the heads");
    if ((s.gated && !pith__has_input(c, DECAY)) || (s.retrieves && !pith__has_input(c, BETA)))
        return pith__op_fail(c, "decay or beta is missing, which the update rule needs");
    if ((s.softplus || s.sigmoid) && s.gated && !pith__has_input(c, A_LOG))
        return pith__op_fail(c, "a_log is missing");
    int lead = s.packed ? q->rank - 1 : q->rank - 2; /* axes of tokens */
    if (q->rank >= 0 && lead != 1 && lead != 2)
        return pith__op_fail(c, "the query has %d dimensions", q->rank);
    pith__dim heads = s.packed ? delta_dim(c, STATE, 3) : delta_dim(c, VALUE, 2);
    pith__dim dv = s.packed ? delta_dim(c, STATE, 2) : delta_dim(c, VALUE, 1);
    pith__dim dk = s.packed ? delta_dim(c, STATE, 1) : delta_dim(c, QUERY, 1),
              q_heads = delta_dim(c, QUERY, 2), dims[4];
    if (s.packed) {
        pith__dim width = delta_dim(c, QUERY, 1);
        bool known = pith__dim_known(width) && pith__dim_known(heads) && pith__dim_known(dv) &&
                     pith__dim_known(dk) && dk > 0;
        q_heads = known ? (width - heads * dv) / (2 * dk) : PITH_DIM_UNKNOWN;
    }
    pith__dim batch = lead == 2 ? q->dims[0] : PITH_DIM_UNKNOWN;
    if (pith__has_input(c, STATE)) batch = delta_dim(c, STATE, 4);
    if (!pith__has_input(c, STATE) && pith__has_input(c, ENDS))
        batch = pith__dim_apply(c->dims, PITH_DIM_SUB, delta_dim(c, ENDS, 1), 1);
    for (int i = 0; i < lead; i++) dims[i] = q->dims[i];
    if (q->rank >= 0) dims[lead] = heads, dims[lead + 1] = dv;
    pith__infer_set(c, 0, q->dtype, q->rank < 0 ? -1 : lead + 2, dims);
    pith__infer_set(c, 1, PITH_F32, 4, (pith__dim[]){ batch, heads, dv, dk });
    pith__infer_set(
        c, 2, PITH_F32, 2,
        (pith__dim[]){ batch, delta_update_width(c, s.capacity, q_heads, heads, dk, dv) });
    return PITH_OK;
}

/* Behind the wide copies: a query and a key head, decays, and what is new of the values. */
static pith_status delta_scratch(const pith__infer *c, const void *state, int threads,
                                 size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    int64_t dk = c->out[1].dims[3], dv = c->out[1].dims[2],
            states = pith__dims_count(c->out[1].dims, 4), more;
    if (states < 0 || pith__mul_overflows(states + 4 * dk + dv, (int64_t)sizeof(double), &more) ||
        pith__add_overflows(*bytes, (size_t)more + 64, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

/* The sizes of a run, with every input checked against them, so that the recurrence need not look
 * at shapes. */
static pith_status delta_sizes(delta *s, const pith__run *r) {
    const pith_tensor *q = r->in[QUERY], *decay = pith__has_input(r, DECAY) ? r->in[DECAY] : NULL;
    delta_rules(s, r->node);
    s->packed = !pith__has_input(r, KEY);
    s->capacity = pith__node_int(r->node, "state_update_capacity", 0);
    const pith_tensor *shape = pith__has_input(r, STATE) ? r->in[STATE] : NULL,
                      *v = pith__has_input(r, VALUE) ? r->in[VALUE] : NULL;
    if (shape && shape->rank != 4)
        return pith__op_fail(r, "initial_state has %d dimensions, not 4", shape->rank);
    s->heads = s->packed ? shape->dims[1] : v->dims[v->rank - 2];
    s->dv = s->packed ? shape->dims[2] : v->dims[v->rank - 1];
    s->dk = s->packed ? shape->dims[3] : q->dims[q->rank - 1];
    int64_t width = s->packed ? q->dims[q->rank - 1] : q->dims[q->rank - 2] * s->dk;
    s->tokens = width ? pith__tensor_count(q) / width : 0;
    if (!s->packed)
        s->q_heads = q->dims[q->rank - 2];
    else if (s->dk)
        s->q_heads = (width - s->heads * s->dv) / (2 * s->dk);
    if (s->q_heads < 1 || s->heads < 1 || s->heads % s->q_heads || s->dk < 1 ||
        (s->packed && width != 2 * s->q_heads * s->dk + s->heads * s->dv))
        return pith__op_fail(r, "the heads of query and value do not fit");
    s->batch = q->dims[0];
    if (pith__has_input(r, ENDS)) s->batch = pith__tensor_count(r->in[ENDS]) - 1;
    if (shape) s->batch = shape->dims[0];
    int64_t rows = s->tokens * s->heads;
    s->decays = s->gated && decay && rows ? pith__tensor_count(decay) / rows : 0;
    if (s->gated && rows && s->decays != 1 && s->decays != s->dk)
        return pith__op_fail(r, "decay does not fit the heads");
    if (!s->packed) {
        PITH_TRY(pith__state_check(r, KEY, s->tokens * s->q_heads * s->dk));
        PITH_TRY(pith__state_check(r, VALUE, rows * s->dv));
    }
    if (s->gated) PITH_TRY(pith__state_check(r, DECAY, rows * s->decays));
    if (s->retrieves) PITH_TRY(pith__state_check(r, BETA, rows));
    PITH_TRY(pith__state_check(r, STATE, s->batch * s->heads * s->dv * s->dk));
    PITH_TRY(pith__state_check(r, A_LOG, s->heads));
    PITH_TRY(pith__state_check(r, COUNTS, s->batch));
    PITH_TRY(pith__state_check(r, ENDS, s->batch + 1));
    s->biases = pith__has_input(r, DT_BIAS) ? pith__tensor_count(r->in[DT_BIAS]) / s->heads : 0;
    if (s->biases && s->biases != 1 && s->biases != s->dk)
        return pith__op_fail(r, "dt_bias does not fit the heads");
    if (!pith__has_input(r, ENDS) && (s->batch < 1 || s->tokens % s->batch))
        return pith__op_fail(r, "%lld tokens do not divide into %lld sequences",
                             (long long)s->tokens, (long long)s->batch);
    if (s->scale == 0) s->scale = 1 / sqrt((double)s->dk);
    return PITH_OK;
}

typedef struct delta_job {
    delta s;
    pith__wide w;
    const pith__run *r;
    double *q, *k, *decay, *fresh, *states;
} delta_job;

static void delta_head(double *to, const double *from, int64_t n, bool norm) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += from[i] * from[i];
    double scale = norm ? 1 / sqrt(sum + 1e-6) : 1;
    for (int64_t i = 0; i < n; i++) to[i] = from[i] * scale;
}

/* Factors of the state's columns. */
static void delta_gate(const delta_job *j, int64_t row, int64_t h) {
    const delta *s = &j->s;
    for (int64_t i = 0; i < s->dk; i++) {
        if (!s->gated) {
            j->decay[i] = 1;
            continue;
        }
        double g = j->w.in[DECAY][(row * s->heads + h) * s->decays + (s->decays == 1 ? 0 : i)];
        if (s->softplus || s->sigmoid) {
            double a = exp(j->w.in[A_LOG][h]);
            if (s->biases) g += j->w.in[DT_BIAS][h * s->biases + (s->biases == 1 ? 0 : i)];
            if (!s->softplus)
                g = s->bound / (1 + exp(-a * g));
            else
                g = -a * (g > 20 ? g : log1p(exp(g)));
        }
        j->decay[i] = exp(g);
    }
}

/* One token of one head: decay, what is new of its value, state, output. */
static void delta_step(const delta_job *j, int64_t row, int64_t h, const double *v, double *state) {
    const delta *s = &j->s;
    double beta = s->retrieves ? j->w.in[BETA][row * s->heads + h] : 1;
    if (s->retrieves && s->beta_sigmoid) beta = 1 / (1 + exp(-beta));
    for (int64_t m = 0; m < s->dv; m++) {
        double *line = state + m * s->dk, known = 0, sum = 0;
        for (int64_t i = 0; i < s->dk; i++) {
            line[i] *= j->decay[i];
            known += line[i] * j->k[i];
        }
        j->fresh[m] = s->retrieves ? beta * (v[m] - known) : v[m];
        for (int64_t i = 0; i < s->dk; i++) {
            line[i] += j->k[i] * j->fresh[m];
            sum += line[i] * j->q[i];
        }
        if (j->w.out[0]) j->w.out[0][(row * s->heads + h) * s->dv + m] = s->scale * sum;
    }
}

/* Factors of the t-th token of a sequence, in the order of the operator's documentation. */
static void delta_capture(const delta_job *j, double *update, int64_t t, int64_t h) {
    const delta *s = &j->s;
    int64_t by_key = s->decays == s->dk && s->dk > 1 ? s->dk : 1, group = s->heads / s->q_heads;
    double *decays = update + (t * s->heads + h) * by_key,
           *keys = update + s->capacity * s->heads * by_key;
    double *deltas = keys + s->capacity * s->q_heads * s->dk + (t * s->heads + h) * s->dv;
    memcpy(decays, j->decay, (size_t)by_key * sizeof *decays);
    memcpy(keys + (t * s->q_heads + h / group) * s->dk, j->k, (size_t)s->dk * sizeof *keys);
    memcpy(deltas, j->fresh, (size_t)s->dv * sizeof *deltas);
}

/* All steps of one head of one sequence, in order. Value heads that share a query head read the
 * same query and key. */
static pith_status delta_sequence(const delta_job *j, int64_t b, int64_t h, int64_t first,
                                  int64_t last, int64_t captured) {
    const delta *s = &j->s;
    int64_t size = s->dk * s->dv, q_head = h / (s->heads / s->q_heads), keys = s->q_heads * s->dk;
    double *state = j->states + (b * s->heads + h) * size,
           *update = pith__state_output(&j->w, j->r, 2);
    int64_t width = update ? j->r->out[2]->dims[1] : 0, row_width = 2 * keys + s->heads * s->dv;
    for (int64_t row = first; row < last; row++) {
        PITH_TRY(pith__run_look(j->r));
        const double *q = j->w.in[QUERY] + (s->packed ? row * row_width : row * keys);
        const double *k = s->packed ? q + keys : j->w.in[KEY] + row * keys;
        const double *v = s->packed ? k + keys : j->w.in[VALUE] + row * s->heads * s->dv;
        delta_head(j->q, q + q_head * s->dk, s->dk, s->norm);
        delta_head(j->k, k + q_head * s->dk, s->dk, s->norm);
        delta_gate(j, row, h);
        delta_step(j, row, h, v + h * s->dv, state);
        if (row - first < captured) delta_capture(j, update + b * width, row - first, h);
    }
    return PITH_OK;
}

/* All states are copied in first and given back at the end, so that a head's state is worked on in
 * place. active[0] = 0 turns capturing off without another graph. */
static pith_status delta_run(pith__run *r) {
    delta_job j = { .r = r };
    PITH_TRY(delta_sizes(&j.s, r));
    const delta *s = &j.s;
    PITH_TRY(pith__wide_open(&j.w, r));
    const double *ends = pith__state_input(&j.w, r, ENDS),
                 *counts = pith__state_input(&j.w, r, COUNTS);
    const double *active = pith__state_input(&j.w, r, ACTIVE),
                 *old = pith__state_input(&j.w, r, STATE);
    int64_t states = s->batch * s->heads * s->dv * s->dk;
    if (ends) PITH_TRY(pith__state_check_ends(r, ends, s->batch, s->tokens));
    j.states = j.w.rest, j.q = j.states + states, j.k = j.q + s->dk, j.decay = j.k + s->dk,
    j.fresh = j.decay + s->dk;
    for (int64_t i = 0; i < states; i++) j.states[i] = old ? old[i] : 0;
    for (int64_t i = 0; i < s->batch * s->heads; i++) {
        int64_t b = i / s->heads, even = ends ? 0 : s->tokens / s->batch;
        int64_t first = ends ? (int64_t)ends[b] : b * even,
                last = ends ? (int64_t)ends[b + 1] : first + even;
        bool capture = pith__state_output(&j.w, r, 2) && !(active && active[0] == 0);
        int64_t captured = capture ? pith__state_captured(counts, b, s->capacity, last - first) : 0;
        PITH_TRY(delta_sequence(&j, b, i % s->heads, first, last, captured));
    }
    if (pith__state_output(&j.w, r, 1))
        memcpy(j.w.out[1], j.states, (size_t)states * sizeof(double));
    return pith__wide_close(&j.w, r);
}

const pith__op pith__op_GatedDeltaNet_ms = {
    .domain = "com.microsoft",
    .name = "GatedDeltaNet",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 11,
    .max_outputs = 3,
    .types = "hhhwhheeeww",
    .attrs = "beta_activation string none|sigmoid = none; chunk_size int 0.. = 64; "
             "gate_activation string none|softplus|qwen|sigmoid|kda = none; "
             "gate_lower_bound float = -5; qk_l2_norm bool = 0; scale float = 0; "
             "state_update_capacity int 0..8 = 0; "
             "update_rule string linear|gated|delta|gated_delta = gated_delta",
    .infer = delta_infer,
    .scratch = delta_scratch,
    .run = delta_run
};
