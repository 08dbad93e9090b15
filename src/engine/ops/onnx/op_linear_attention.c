/* op_linear_attention.c - LinearAttention, CausalConvWithState and FlexAttention: operators for
 * newer decoders. Sources: ONNX operators of these names (opset 27; FlexAttention:
 * ai.onnx.preview). */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

/* ---- LinearAttention: a recurrence over a state [keys, values] per head ---- */

typedef struct linear {
    int64_t q_heads, kv_heads;
    int64_t heads; /* of the output: the more of both, which the others divide */
    double scale;  /* 0: 1 / sqrt(head size) */
    bool gated, delta;
} linear;

static pith_status linear_attention_read_linear(linear *s, const pith__node *node,
                                                pith_error *err) {
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

static bool is_given(const pith__type *const *in, int count, int i) { return i < count && in[i]; }

static pith_status infer_linear(pith__infer *c) {
    linear s;
    PITH_TRY(linear_attention_read_linear(&s, c->node, c->err));
    const pith__type *q = c->in[0], *v = c->in[2];
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 3)
            return pith__op_fail(c, "input %d has %d dimensions, not 3", i, c->in[i]->rank);
    bool strict = !pith__str_is(c->node->domain, "com.microsoft");
    if (is_given(c->in, c->in_count, 4) != s.gated && (strict || s.gated))
        return pith__op_fail(c, "decay goes with the gated update rules, and only with them");
    if (is_given(c->in, c->in_count, 5) != s.delta && (strict || s.delta))
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
    int state = is_given(c->in, c->in_count, 3) ? c->in[3]->dtype : q->dtype;
    pith__infer_set(c, 1, state, 4, (pith__dim[]){ batch, s.kv_heads, dk, dv });
    return PITH_OK;
}

static pith_status prepare_linear(pith__prepare *c) {
    linear *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    c->state = s;
    return linear_attention_read_linear(s, c->node, c->err);
}

/* Behind the wide copies: the state of one head and a row of values. */
static pith_status scratch_linear(const pith__infer *c, const void *state, int threads,
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

static pith_status check_linear(const pith__run *r, const linear *s) {
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

static pith_status linear_attention_run_linear(pith__run *r) {
    const linear *s = r->state;
    PITH_TRY(check_linear(r, s));
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t batch = r->in[0]->dims[0], time = r->in[0]->dims[1], group = s->heads / s->kv_heads,
            share = s->heads / s->q_heads;
    int64_t dk = r->in[0]->dims[2] / s->q_heads, dv = r->in[2]->dims[2] / s->kv_heads;
    int64_t decays = s->gated && batch > 0 && time > 0
                         ? pith__tensor_count(r->in[4]) / (batch * time * s->kv_heads)
                         : 1;
    int64_t betas =
        s->delta && batch > 0 && time > 0 ? pith__tensor_count(r->in[5]) / (batch * time) : 1;
    double scale = s->scale != 0 ? s->scale : 1 / sqrt((double)dk), *state = w.rest,
           *value = state + dk * dv;
    for (int64_t head = 0; head < batch * s->kv_heads; head++) {
        int64_t b = head / s->kv_heads, h = head % s->kv_heads;
        size_t bytes = (size_t)(dk * dv) * sizeof *state;
        if (r->in_count > 3 && r->in[3])
            memcpy(state, w.in[3] + head * dk * dv, bytes);
        else
            memset(state, 0, bytes);
        for (int64_t t = 0; t < time; t++) {
            int64_t row = b * time + t;
            const double *k = w.in[1] + (row * s->kv_heads + h) * dk,
                         *v = w.in[2] + (row * s->kv_heads + h) * dv;
            for (int64_t d = 0; s->gated && d < dk; d++) {
                double keep =
                    exp(w.in[4][(row * s->kv_heads + h) * decays + (decays == 1 ? 0 : d)]);
                for (int64_t m = 0; m < dv; m++) state[d * dv + m] *= keep;
            }
            double beta = s->delta ? w.in[5][row * betas + (betas == 1 ? 0 : h)] : 1;
            for (int64_t m = 0; m < dv; m++) {
                double known = 0;
                for (int64_t d = 0; s->delta && d < dk; d++) known += state[d * dv + m] * k[d];
                value[m] = beta * (v[m] - known);
            }
            for (int64_t d = 0; d < dk; d++)
                for (int64_t m = 0; m < dv; m++) state[d * dv + m] += k[d] * value[m];
            for (int64_t g = 0; w.out[0] && g < group; g++) {
                int64_t y_row = row * s->heads + h * group + g,
                        q_row = row * s->q_heads + (h * group + g) / share;
                for (int64_t m = 0; m < dv; m++) {
                    double sum = 0;
                    for (int64_t d = 0; d < dk; d++)
                        sum += w.in[0][q_row * dk + d] * state[d * dv + m];
                    w.out[0][y_row * dv + m] = scale * sum;
                }
            }
        }
        if (r->out_count > 1 && w.out[1]) memcpy(w.out[1] + head * dk * dv, state, bytes);
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
        .infer = infer_linear,                                                                     \
        .prepare = prepare_linear,                                                                 \
        .scratch = scratch_linear,                                                                 \
        .run = linear_attention_run_linear                                                         \
    };
LINEAR_ATTENTION(LinearAttention, "", 27, "")
LINEAR_ATTENTION(LinearAttention_ms, "com.microsoft", 1, "; state_window int 0 = 0")

/* ---- CausalConvWithState: depthwise, over the past state and the input ---- */

static pith_status infer_conv(pith__infer *c) {
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

static pith_status run_conv(pith__run *r) {
    const pith_tensor *x = r->in[0], *past = r->in_count > 3 ? r->in[3] : NULL,
                      *bias = r->in_count > 2 ? r->in[2] : NULL;
    int64_t channels = x->dims[1], length = x->dims[2], taps = r->in[1]->dims[2], before = taps - 1;
    if (taps < 1 || r->in[1]->dims[0] != channels || r->in[1]->dims[1] != 1 ||
        (bias && pith__tensor_count(bias) != channels) ||
        (past && pith__tensor_count(past) != x->dims[0] * channels * before))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "weight, bias or past state do not fit the input");
    pith__wide w;
    pith__wide_open(&w, r);
    bool silu = !pith__str_is(pith__node_str(r->node, "activation", "none"), "none");
    for (int64_t row = 0; row < x->dims[0] * channels; row++) {
        const double *now = w.in[0] + row * length, *weight = w.in[1] + row % channels * taps;
        const double *old = past ? w.in[3] + row * before : NULL;
        for (int64_t t = 0; w.out[0] && t < length; t++) {
            double sum = bias ? w.in[2][row % channels] : 0;
            for (int64_t k = 0; k < taps; k++) {
                int64_t at = t + k - before;
                sum += weight[k] * (at >= 0 ? now[at] : old ? old[before + at] : 0);
            }
            w.out[0][row * length + t] = silu ? sum / (1 + exp(-sum)) : sum;
        }
        for (int64_t k = 0; r->out_count > 1 && w.out[1] && k < before; k++) {
            int64_t at = length + k - before;
            w.out[1][row * before + k] = at >= 0 ? now[at] : old ? old[before + at] : 0;
        }
    }
    pith__wide_close(&w, r);
    return PITH_OK;
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
    .infer = infer_conv,
    .scratch = pith__wide_scratch,
    .run = run_conv,
};

/* ---- FlexAttention: attention with subgraphs over scores and probabilities ---- */

static int flex_precision(const pith__node *node, int dtype) {
    return pith__node_choice(node, "softmax_precision", dtype == PITH_F64 ? PITH_F64 : PITH_F32);
}

static pith_status infer_flex(pith__infer *c) {
    const pith__type *q = c->in[0], *k = c->in[1], *v = c->in[2];
    for (int i = 0; i < 3; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 4)
            return pith__op_fail(c, "input %d has %d dimensions, not 4", i, c->in[i]->rank);
    pith__dim dims[4], scores[4];
    for (int i = 0; i < 4; i++) dims[i] = scores[i] = q->rank == 4 ? q->dims[i] : PITH_DIM_UNKNOWN;
    dims[3] = v->rank == 4 ? v->dims[3] : PITH_DIM_UNKNOWN;
    scores[3] = k->rank == 4 ? k->dims[2] : PITH_DIM_UNKNOWN;
    pith__type_set(&c->out[0], q->dtype, 4, dims);
    static const char *const mods[] = { "score_mod", "prob_mod" };
    for (int i = 0; i < 2; i++) {
        if (!pith__node_graph(c->node, mods[i])) continue;
        pith__type in, out;
        pith__type_init(&in);
        pith__type_set(&in, flex_precision(c->node, q->dtype), 4, scores);
        PITH_TRY(pith__infer_subgraph(c, mods[i], &in, 1, &out, 1));
    }
    return PITH_OK;
}

/* Scores in double and in the precision the subgraphs want, each [batch, heads, queries, keys]. */
static pith_status scratch_flex(const pith__infer *c, const void *state, int threads,
                                size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    size_t n;
    int64_t rows = pith__dims_count(c->in[0]->dims, 3);
    if (rows < 0 || pith__mul_overflows((size_t)rows, 16 * (size_t)c->in[1]->dims[2], &n) ||
        pith__add_overflows(*bytes, n + 64, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "the scores are too large");
    return PITH_OK;
}

static pith_status modify(pith__run *r, const char *name, double *scores, const pith_tensor *shape,
                          void *narrow) {
    if (!pith__node_graph(r->node, name)) return PITH_OK;
    pith_tensor in = *shape, out;
    int64_t n = pith__tensor_count(&in);
    in.data = narrow;
    pith__convert(narrow, in.dtype, 0, scores, PITH_F64, 0, n, true);
    PITH_TRY(r->exec->subgraph(r->exec, r, name, &in, 1, &out, 1));
    if (pith__tensor_count(&out) != n || out.dtype != in.dtype)
        return pith__op_fail(r, "%s changed shape or dtype", name);
    pith__convert(scores, PITH_F64, 0, out.data, out.dtype, 0, n, true);
    return PITH_OK;
}

static pith_status run_flex(pith__run *r) {
    const pith_tensor *q = r->in[0], *k = r->in[1], *v = r->in[2];
    int64_t batch = q->dims[0], heads = q->dims[1], rows = q->dims[2], d = q->dims[3],
            kv_heads = k->dims[1], keys = k->dims[2];
    int64_t dv = v->dims[3];
    if (kv_heads < 1 || heads % kv_heads || v->dims[1] != kv_heads || v->dims[2] != keys ||
        k->dims[3] != d || k->dims[0] != batch || v->dims[0] != batch)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "Q, K and V do not fit");
    pith__wide w;
    pith__wide_open(&w, r);
    int64_t all = batch * heads * rows * keys;
    double *scores = w.rest, scale = pith__node_attr(r->node, "scale")
                                         ? pith__node_float(r->node, "scale", 1)
                                         : 1 / sqrt((double)d);
    void *narrow = scores + all;
    pith_tensor shape = { .dtype = flex_precision(r->node, q->dtype),
                          .rank = 4,
                          .dims = { batch, heads, rows, keys } };
    if (!pith__dtype_bytes(shape.dtype, all, &shape.bytes) || shape.bytes > (size_t)all * 8 ||
        !pith__dtype_is_float(shape.dtype))
        return pith__op_fail(r, "softmax_precision %d is not a float type", shape.dtype);
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        int64_t b = row / (heads * rows), h = row / rows % heads;
        const double *key = w.in[1] + (b * kv_heads + h / (heads / kv_heads)) * keys * d;
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0;
            for (int64_t i = 0; i < d; i++) sum += w.in[0][row * d + i] * key[j * d + i];
            scores[row * keys + j] = sum * scale;
        }
    }
    PITH_TRY(modify(r, "score_mod", scores, &shape, narrow));
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        double most = -INFINITY, sum = 0, *s = scores + row * keys;
        for (int64_t j = 0; j < keys; j++) most = fmax(most, s[j]);
        for (int64_t j = 0; j < keys; j++) sum += s[j] = exp(s[j] - most);
        for (int64_t j = 0; j < keys; j++) s[j] /= sum;
    }
    PITH_TRY(modify(r, "prob_mod", scores, &shape, narrow));
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        int64_t b = row / (heads * rows), h = row / rows % heads;
        const double *value = w.in[2] + (b * kv_heads + h / (heads / kv_heads)) * keys * dv;
        for (int64_t j = 0; j < keys; j++)
            for (int64_t i = 0; i < dv; i++)
                w.out[0][row * dv + i] += scores[row * keys + j] * value[j * dv + i];
    }
    pith__wide_close(&w, r);
    return PITH_OK;
}

const pith__op pith__op_preview_FlexAttention = {
    .domain = "ai.onnx.preview",
    .name = "FlexAttention",
    .since = 1,
    .newest = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .max_outputs = 1,
    .types = "f",
    .attrs = "prob_mod graph; scale float; score_mod graph; softmax_precision dtype",
    .infer = infer_flex,
    .scratch = scratch_flex,
    .run = run_flex,
};
