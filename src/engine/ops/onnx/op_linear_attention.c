/* op_linear_attention.c - LinearAttention: a recurrence over a state [keys, values] per head, in
 * place of a softmax over all keys.
 *
 * At each step the state decays (gated rules), what it already knows of the key is taken off the
 * value (delta rules), and key times value is added; the output is the query times the state.
 * Everything is in double, head by head. com.microsoft's operator of this name allows more key
 * heads than query heads. Sources: ONNX LinearAttention (opset 27); ONNX Runtime's
 * ContribOperators.md. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct linear {
    int64_t q_heads, kv_heads;
    int64_t heads; /* of the output: the more of both, which the others divide */
    double scale;  /* 0: 1 / sqrt(head size) */
    bool gated, delta;
} linear;

/* The rules are combinations of two switches: decay (gated) and taking off what is known (delta).
 */
static pith_status linear_attention_read(linear *s, const pith__node *node, pith_error *err) {
    pith_str rule = pith__node_str(node, "update_rule", "gated_delta");
    *s = (linear){ .q_heads = pith__node_int(node, "q_num_heads", 0),
                   .kv_heads = pith__node_int(node, "kv_num_heads", 0),
                   .scale = pith__node_float(node, "scale", 0) };
    s->gated = pith__str_is(rule, "gated") || pith__str_is(rule, "gated_delta");
    s->delta = pith__str_is(rule, "delta") || pith__str_is(rule, "gated_delta");
    if (!s->gated && !s->delta && !pith__str_is(rule, "linear"))
        return pith__fail(err, PITH_ERR_ARGUMENT, "update_rule '" PITH_STR_FMT "' is unknown",
                          PITH_STR_ARG(rule));
    bool own = pith__str_is(node->domain, "com.microsoft");
    if (s->q_heads < 1 || s->kv_heads < 1 ||
        (s->q_heads % s->kv_heads && !(own && s->kv_heads % s->q_heads == 0)))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "q_num_heads must be a positive multiple of kv_num_heads");
    s->heads = s->q_heads > s->kv_heads ? s->q_heads : s->kv_heads;
    return PITH_OK;
}

static bool linear_attention_is_given(const pith__type *const *in, int count, int i) {
    return i < count && in[i];
}

/* ai.onnx is strict: decay and beta are given exactly if the rule uses them. com.microsoft ignores
 * the ones that are not used. */
static pith_status linear_attention_infer(pith__infer *c) {
    linear s;
    PITH_TRY(linear_attention_read(&s, c->node, c->err));
    const pith__type *q = c->in[0], *v = c->in[2];
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 3)
            return pith__op_fail(c, "input %d has %d dimensions, not 3", i, c->in[i]->rank);
    bool strict = !pith__str_is(c->node->domain, "com.microsoft");
    if (linear_attention_is_given(c->in, c->in_count, 4) != s.gated && (strict || s.gated))
        return pith__op_fail(c, "decay goes with the gated update rules, and only with them");
    if (linear_attention_is_given(c->in, c->in_count, 5) != s.delta && (strict || s.delta))
        return pith__op_fail(c, "beta goes with the delta update rules, and only with them");
    pith__dim dk = q->rank < 0
                       ? PITH_DIM_UNKNOWN
                       : pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, q->dims[2], s.q_heads);
    pith__dim dv = v->rank < 0
                       ? PITH_DIM_UNKNOWN
                       : pith__dim_apply(c->dims, PITH_DIM_FLOOR_DIV, v->dims[2], s.kv_heads);
    pith__dim batch = q->rank < 0 ? PITH_DIM_UNKNOWN : q->dims[0],
              time = q->rank < 0 ? PITH_DIM_UNKNOWN : q->dims[1];
    pith__type_set(
        &c->out[0], q->dtype, 3,
        (pith__dim[]){ batch, time, pith__dim_apply(c->dims, PITH_DIM_MUL, dv, s.heads) });
    int state = linear_attention_is_given(c->in, c->in_count, 3) ? c->in[3]->dtype : q->dtype;
    pith__infer_set(c, 1, state, 4, (pith__dim[]){ batch, s.kv_heads, dk, dv });
    return PITH_OK;
}

static pith_status linear_attention_prepare(pith__prepare *c) {
    linear *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    return linear_attention_read(s, c->node, c->err);
}

/* Behind the wide copies: the state of one head and a row of values. */
static pith_status linear_attention_scratch(const pith__infer *c, const void *state, int threads,
                                            size_t *bytes) {
    const linear *s = state;
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    size_t dk = (size_t)(c->in[0]->dims[2] / s->q_heads),
           dv = (size_t)(c->in[2]->dims[2] / s->kv_heads), more;
    if (pith__mul_overflows((dk + 1) * sizeof(double), dv, &more) ||
        pith__add_overflows(*bytes, more, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "heads are too large");
    return PITH_OK;
}

static pith_status linear_attention_check(const pith__run *r, const linear *s) {
    const pith_tensor *q = r->in[0], *k = r->in[1], *v = r->in[2];
    int64_t batch = q->dims[0], time = q->dims[1], dk = q->dims[2] / s->q_heads,
            dv = v->dims[2] / s->kv_heads;
    int64_t rows = batch * time, head_rows = rows * s->kv_heads;
    bool fits = q->dims[2] == dk * s->q_heads && v->dims[2] == dv * s->kv_heads &&
                k->dims[2] == dk * s->kv_heads && k->dims[0] == batch && v->dims[0] == batch &&
                k->dims[1] == time && v->dims[1] == time;
    if (fits && r->in_count > 3 && r->in[3])
        fits = pith__tensor_count(r->in[3]) == batch * s->kv_heads * dk * dv;
    if (fits && s->gated) {
        int64_t n = pith__tensor_count(r->in[4]), wide_rows = head_rows * dk;
        fits = n == head_rows || n == wide_rows;
    }
    if (fits && s->delta) {
        int64_t n = pith__tensor_count(r->in[5]);
        fits = n == rows || n == head_rows;
    }
    return fits ? PITH_OK
                : pith__fail(r->err, PITH_ERR_ARGUMENT,
                             "the inputs' shapes do not fit the head counts");
}

/* A run: the state of one head at a time, and the row of values that a step adds. */
typedef struct linear_job {
    const linear *s;
    pith__wide w;
    int64_t dk, dv;        /* the size of a key, of a value */
    int64_t decays, betas; /* numbers per head and token: dk or 1; heads or 1 */
    double *state, *value; /* [dk, dv], [dv] */
} linear_job;

/* The state decays, by one factor or by one per key element. row: the token's place times the key
 * heads, plus the head. */
static void linear_attention_decay(const linear_job *j, int64_t row) {
    for (int64_t d = 0; d < j->dk; d++) {
        double keep = exp(j->w.in[4][row * j->decays + (j->decays == 1 ? 0 : d)]);
        for (int64_t m = 0; m < j->dv; m++) j->state[d * j->dv + m] *= keep;
    }
}

/* Key times value is added to the state. The delta rules first take off what the state already
 * gives for this key, and weight the rest by beta. */
static void linear_attention_learn(const linear_job *j, int64_t row, double beta) {
    const double *k = j->w.in[1] + row * j->dk, *v = j->w.in[2] + row * j->dv;
    for (int64_t m = 0; m < j->dv; m++) {
        double known = 0;
        if (j->s->delta) {
            for (int64_t d = 0; d < j->dk; d++) known += j->state[d * j->dv + m] * k[d];
        }
        j->value[m] = beta * (v[m] - known);
    }
    for (int64_t d = 0; d < j->dk; d++)
        for (int64_t m = 0; m < j->dv; m++) j->state[d * j->dv + m] += k[d] * j->value[m];
}

/* One row of the output: the query times the state. */
static void linear_attention_answer(const linear_job *j, int64_t q_row, int64_t y_row,
                                    double scale) {
    for (int64_t m = 0; m < j->dv; m++) {
        double sum = 0;
        for (int64_t d = 0; d < j->dk; d++)
            sum += j->w.in[0][q_row * j->dk + d] * j->state[d * j->dv + m];
        j->w.out[0][y_row * j->dv + m] = scale * sum;
    }
}

/* Head by head, because the state of a head fits the cache and its steps are a chain. Query heads
 * that share a key head read the same state. */
static pith_status linear_attention_run(pith__run *r) {
    const linear *s = r->state;
    PITH_TRY(linear_attention_check(r, s));
    int64_t batch = r->in[0]->dims[0], time = r->in[0]->dims[1], group = s->heads / s->kv_heads,
            share = s->heads / s->q_heads, tokens = batch * time;
    linear_job j = { .s = s,
                     .dk = r->in[0]->dims[2] / s->q_heads,
                     .dv = r->in[2]->dims[2] / s->kv_heads,
                     .decays = 1,
                     .betas = 1 };
    PITH_TRY(pith__wide_open(&j.w, r));
    if (s->gated && tokens > 0) j.decays = pith__tensor_count(r->in[4]) / (tokens * s->kv_heads);
    if (s->delta && tokens > 0) j.betas = pith__tensor_count(r->in[5]) / tokens;
    double scale = s->scale != 0 ? s->scale : 1 / sqrt((double)j.dk);
    const int64_t size = j.dk * j.dv, answers = j.w.out[0] ? group : 0;
    const size_t bytes = (size_t)size * sizeof *j.state;
    j.state = j.w.rest;
    j.value = j.state + size;
    for (int64_t head = 0; head < batch * s->kv_heads; head++) {
        int64_t b = head / s->kv_heads, h = head % s->kv_heads;
        if (r->in_count > 3 && r->in[3])
            memcpy(j.state, j.w.in[3] + head * size, bytes);
        else
            memset(j.state, 0, bytes);
        for (int64_t t = 0; t < time; t++) {
            PITH_TRY(pith__run_look(r));
            int64_t token = b * time + t;
            double beta = 1;
            if (s->delta) beta = j.w.in[5][token * j.betas + (j.betas == 1 ? 0 : h)];
            if (s->gated) linear_attention_decay(&j, token * s->kv_heads + h);
            linear_attention_learn(&j, token * s->kv_heads + h, beta);
            for (int64_t y = h * group; y < h * group + answers; y++)
                linear_attention_answer(&j, token * s->q_heads + y / share, token * s->heads + y,
                                        scale);
        }
        if (r->out_count > 1 && j.w.out[1]) memcpy(j.w.out[1] + head * size, j.state, bytes);
    }
    return pith__wide_close(&j.w, r);
}

/* attrs_: what com.microsoft has besides. */
#define LINEAR_ATTENTION(symbol, domain_, since_, attrs_)                                          \
    const pith__op pith__op_##symbol = {                                                           \
        .domain = domain_,                                                                         \
        .name = "LinearAttention",                                                                 \
        .since = since_,                                                                           \
        .newest = since_,                                                                          \
        .min_inputs = 3,                                                                           \
        .max_inputs = 6,                                                                           \
        .max_outputs = 2,                                                                          \
        .types = "h",                                                                              \
        .attrs = "chunk_size int 0.. = 64; kv_num_heads int! 1..; "                                \
                 "q_num_heads int! 1..; scale float = 0; "                                         \
                 "update_rule string linear|gated|delta|gated_delta = gated_delta" attrs_,         \
        .infer = linear_attention_infer,                                                           \
        .prepare = linear_attention_prepare,                                                       \
        .scratch = linear_attention_scratch,                                                       \
        .run = linear_attention_run                                                                \
    };
LINEAR_ATTENTION(LinearAttention, "", 27, "")
LINEAR_ATTENTION(LinearAttention_ms, "com.microsoft", 1, "; state_window int 0 = 0")
