/* op_ms_moe.c - com.microsoft's mixtures of experts, MoE and QMoE: each token goes through the k
 * experts with the highest router scores, and the results are added with the softmax of the scores
 * as weights.
 *
 * An expert is FC2(activation(FC1(x))). SwiGLU has gate and value in FC1, interleaved
 * (swiglu_fusion 1) or as halves (2), or its value in FC3 (0). Experts run one after another over
 * the tokens they get, so that sums are in order. QMoE's weights are integers of 2, 3, 4 or 8 bits,
 * low bits first, with scales of whole rows or of blocks in them; the weights of an expert are
 * widened when it runs. Source: ONNX Runtime's schemas of these names. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/tensor_matmul.h"

enum { EXPERT_X, EXPERT_SCORES, EXPERT_WEIGHTS_OF_SCORES = 14 };

/* Inputs of one of the three matrices; -1: there is none. */
typedef struct expert_inputs {
    int weight, scale, zero, bias;
} expert_inputs;

static const expert_inputs expert_layouts[2][3] = {
    { { 2, -1, -1, 3 }, { 4, -1, -1, 5 }, { 6, -1, -1, 7 } },
    { { 2, 3, 11, 4 }, { 5, 6, 12, 7 }, { 8, 9, 13, 10 } },
};

typedef enum expert_fn {
    EXPERT_RELU,
    EXPERT_GELU,
    EXPERT_SILU,
    EXPERT_IDENTITY,
    EXPERT_SWIGLU
} expert_fn;

typedef struct experts {
    pith__product product;
    const expert_inputs *inputs; /* three */
    bool quantized, normalize;
    expert_fn fn;
    int64_t k, fusion, block, bits[3];
    float alpha, beta, limit;
} experts;

/* A fused SwiGLU is one matmul for gate and value. */
static void experts_read(experts *s, const pith__node *node) {
    static const char *const names[] = { "relu", "gelu", "silu", "identity", "swiglu" };
    static const char *const bits[] = { "fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                        "fc3_expert_weight_bits" };
    pith_str name = pith__node_str(node, "activation_type", "relu");
    size_t fn = 0;
    while (fn + 1 < sizeof names / sizeof names[0] && !pith__str_is(name, names[fn])) fn++;
    *s = (experts){ .quantized = pith__str_is(node->op_type, "QMoE"),
                    .normalize = pith__node_int(node, "normalize_routing_weights", 0) != 0,
                    .fn = (expert_fn)fn,
                    .k = pith__node_int(node, "k", 1),
                    .fusion = pith__node_int(node, "swiglu_fusion", 0),
                    .block = pith__node_int(node, "block_size", 0),
                    .alpha = pith__node_float(node, "activation_alpha", 1),
                    .beta = pith__node_float(node, "activation_beta", 0),
                    .limit = pith__node_float(node, "swiglu_limit", INFINITY) };
    s->inputs = expert_layouts[s->quantized];
    for (int i = 0; i < 3; i++)
        s->bits[i] = pith__node_int(node, bits[i], pith__node_int(node, "expert_weight_bits", 4));
}

/* FC1 and FC2 must be there, FC3 goes with swiglu_fusion 0. Quantised weights need their scales.
 * Inputs behind 14 belong to forms that are not supported. */
static pith_status experts_infer(pith__infer *c) {
    experts s;
    experts_read(&s, c->node);
    const pith__type *x = c->in[EXPERT_X], *scores = c->in[EXPERT_SCORES];
    if ((x->rank >= 0 && x->rank != 2 && x->rank != 3) || (scores->rank >= 0 && scores->rank != 2))
        return pith__op_fail(c, "the input must have two or three dimensions, router_probs two");
    for (int i = 0; i < 3; i++) {
        int at = s.inputs[i].weight;
        if (i < 2 && !pith__has_input(c, at)) return pith__op_fail(c, "input %d is missing", at);
        if (pith__has_input(c, at) && c->in[at]->rank >= 0 && c->in[at]->rank != 3)
            return pith__op_fail(c, "input %d has %d dimensions, not 3", at, c->in[at]->rank);
        if (s.quantized && pith__has_input(c, at) && !pith__has_input(c, s.inputs[i].scale))
            return pith__op_fail(c, "input %d is missing", s.inputs[i].scale);
    }
    bool third = s.fn == EXPERT_SWIGLU && s.fusion == 0;
    if (pith__has_input(c, s.inputs[2].weight) != third)
        return pith__op_fail(c, "FC3 goes with swiglu that is not fused, and only with it");
    for (int i = 15; i < c->in_count; i++)
        if (c->in[i])
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "input %d is not supported", i);
    pith__infer_set(c, 0, x->dtype, x->rank, x->dims);
    return PITH_OK;
}

static pith_status experts_prepare(pith__prepare *c) {
    experts *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    experts_read(s, c->node);
    c->state = s;
    return pith__product_prepare(&s->product, c, PITH_F32, -1, true);
}

/* Sizes, and what lies where in scratch. */
typedef struct expert_sizes {
    int64_t tokens, hidden, count, inner, wide; /* wide: columns of FC1 */
    size_t x, y, rows, first, third, last, weights, picks, product, total;
} expert_sizes;

/* Where each part of the scratch lies, 64 bytes aligned, for the largest number of tokens that one
 * expert can get: all. False: a size overflows. */
static bool experts_sizes(expert_sizes *z, const experts *s, const pith__dim *const *dims,
                          int x_rank, int threads) {
    const pith__dim *x = dims[EXPERT_X], *first = dims[s->inputs[0].weight];
    *z =
        (expert_sizes){ .tokens = 1, .hidden = x[x_rank - 1], .count = first[0], .wide = first[1] };
    for (int i = 0; i < x_rank - 1; i++) z->tokens *= x[i];
    z->inner = s->fn == EXPERT_SWIGLU && s->fusion ? z->wide / 2 : z->wide;
    int64_t rows[3], weights = 0, other, picks;
    size_t product[2];
    if (pith__mul_overflows(z->tokens, z->hidden * 4, &rows[0]) ||
        pith__mul_overflows(z->tokens, z->wide * 4, &rows[1]) ||
        pith__mul_overflows(z->tokens, z->inner * 4, &rows[2]) ||
        pith__mul_overflows(z->tokens, s->k * 24, &picks) ||
        (s->quantized && (pith__mul_overflows(z->wide, z->hidden * 4, &weights) ||
                          pith__mul_overflows(z->inner, z->hidden * 4, &other))) ||
        !pith__product_scratch(&s->product, 1, z->wide, z->hidden, threads, &product[0]) ||
        !pith__product_scratch(&s->product, 1, z->hidden, z->inner, threads, &product[1]))
        return false;
    const size_t sizes[] = { (size_t)rows[0], (size_t)rows[0], (size_t)rows[0],
                             (size_t)rows[1], (size_t)rows[2], (size_t)rows[0],
                             (size_t)weights, (size_t)picks,   product[product[1] > product[0]] };
    size_t *at[] = { &z->x,    &z->y,       &z->rows,  &z->first,  &z->third,
                     &z->last, &z->weights, &z->picks, &z->product };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        *at[i] = z->total;
        if (pith__add_overflows(z->total, sizes[i], &z->total) ||
            pith__add_overflows(z->total, (size_t)64, &z->total))
            return false;
        z->total &= ~(size_t)63;
    }
    return true;
}

/* One expert runs at a time, so one set of rows is enough; threads share its matmuls. */
static pith_status experts_scratch(const pith__infer *c, const void *state, int threads,
                                   size_t *bytes) {
    const experts *s = state;
    const pith__dim *dims[15];
    expert_sizes z;
    for (int i = 0; i < 15; i++) dims[i] = pith__has_input(c, i) ? c->in[i]->dims : NULL;
    if (!experts_sizes(&z, s, dims, c->in[EXPERT_X]->rank, threads))
        return pith__fail_memory(c->err, SIZE_MAX);
    *bytes = z.total;
    return PITH_OK;
}

/* ---- checks ---- */

static pith_status experts_wanted(const pith__run *r, int i, int64_t wanted) {
    if (i < 0 || !pith__has_input(r, i) || pith__tensor_count(r->in[i]) == wanted) return PITH_OK;
    return pith__fail(r->err, PITH_ERR_ARGUMENT, "input %d has %lld elements, not %lld", i,
                      (long long)pith__tensor_count(r->in[i]), (long long)wanted);
}

/* Bytes of n numbers of some bits. */
static int64_t experts_bytes(int64_t n, int64_t bits) {
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

/* The number of elements of every input, from the sizes in FC1 and router_probs. */
static pith_status experts_check(const pith__run *r, const experts *s, const expert_sizes *z) {
    const int64_t rows[3] = { z->wide, z->hidden, z->wide },
                  columns[3] = { z->hidden, z->inner, z->hidden };
    if (s->fn == EXPERT_SWIGLU && s->fusion && z->wide % 2)
        return pith__op_fail(r, "FC1 has an odd number of rows");
    if (s->k > z->count)
        return pith__op_fail(r, "k is %lld of %lld experts", (long long)s->k, (long long)z->count);
    PITH_TRY(experts_wanted(r, EXPERT_SCORES, z->tokens * z->count));
    if (s->quantized) PITH_TRY(experts_wanted(r, EXPERT_WEIGHTS_OF_SCORES, z->tokens * z->count));
    for (int i = 0; i < 3; i++) {
        const expert_inputs *in = &s->inputs[i];
        if (!pith__has_input(r, in->weight)) continue;
        int64_t row = s->quantized ? experts_bytes(columns[i], s->bits[i]) : columns[i],
                all = z->count * rows[i];
        if (s->block && columns[i] % s->block)
            return pith__op_fail(r, "blocks of %lld in rows of %lld", (long long)s->block,
                                 (long long)columns[i]);
        int64_t blocks = s->block ? columns[i] / s->block : 1;
        PITH_TRY(experts_wanted(r, in->weight, all * row));
        PITH_TRY(experts_wanted(r, in->bias, all));
        PITH_TRY(experts_wanted(r, in->scale, all * blocks));
        PITH_TRY(experts_wanted(r, in->zero,
                                s->block ? all * experts_bytes(blocks, s->bits[i])
                                         : z->count * experts_bytes(rows[i], s->bits[i])));
    }
    return PITH_OK;
}

/* ---- routing ---- */

typedef struct expert_pick {
    int64_t expert;
    float weight;
} expert_pick;

static float experts_number(const pith_tensor *t, int64_t i) {
    float v;
    pith__convert(&v, PITH_F32, 0, t->data, t->dtype, i, 1, true);
    return v;
}

/* The k experts of a token, the best first, the first of equals before. Weights are the softmax of
 * all scores, or of the chosen ones where they are to be normalised; QMoE's always are, unless they
 * come as an input. */
static void experts_route(const pith__run *r, const experts *s, int64_t count, int64_t token,
                          expert_pick *picks) {
    const pith_tensor *scores = r->in[EXPERT_SCORES];
    float most = -INFINITY, sum = 0, chosen = 0;
    for (int64_t i = 0; i < s->k; i++) picks[i] = (expert_pick){ -1, -INFINITY };
    for (int64_t e = 0; e < count; e++) {
        float v = experts_number(scores, token * count + e);
        int64_t at = s->k;
        most = fmaxf(most, v);
        while (at > 0 && (picks[at - 1].expert < 0 || v > picks[at - 1].weight)) at--;
        if (at == s->k) continue;
        memmove(picks + at + 1, picks + at, (size_t)(s->k - 1 - at) * sizeof *picks);
        picks[at] = (expert_pick){ e, v };
    }
    for (int64_t e = 0; e < count; e++)
        sum += expf(experts_number(scores, token * count + e) - most);
    for (int64_t i = 0; i < s->k; i++) chosen += picks[i].weight = expf(picks[i].weight - most);
    for (int64_t i = 0; i < s->k; i++)
        picks[i].weight /= s->normalize || s->quantized ? chosen : sum;
    if (!s->quantized || !pith__has_input(r, EXPERT_WEIGHTS_OF_SCORES)) return;
    chosen = 0;
    for (int64_t i = 0; i < s->k; i++)
        chosen += picks[i].weight =
            experts_number(r->in[EXPERT_WEIGHTS_OF_SCORES], token * count + picks[i].expert);
    if (s->normalize) {
        for (int64_t i = 0; i < s->k; i++) picks[i].weight /= chosen;
    }
}

/* ---- one expert ---- */

static uint32_t experts_bits(const uint8_t *p, int64_t i, int64_t bits) {
    int64_t bit = i * bits;
    uint32_t word = p[bit / 8];
    if (bit % 8 + bits > 8) word |= (uint32_t)p[bit / 8 + 1] << 8;
    return word >> bit % 8 & ((1u << bits) - 1);
}

typedef struct expert_job {
    pith__run *r;
    const experts *s;
    expert_sizes z;
    char *scratch;
} expert_job;

/* Rows [n, k] of matrix i of an expert in f32. */
static const float *experts_weights(const expert_job *j, int i, int64_t expert, int64_t n,
                                    int64_t k) {
    const experts *s = j->s;
    const expert_inputs *in = &s->inputs[i];
    const pith_tensor *t = j->r->in[in->weight];
    if (!s->quantized) return (const float *)t->data + expert * n * k;
    const pith_tensor *zeros = pith__has_input(j->r, in->zero) ? j->r->in[in->zero] : NULL;
    int64_t bits = s->bits[i], bytes = experts_bytes(k, bits), block = s->block ? s->block : k,
            blocks = k / block;
    float *y = (float *)(void *)(j->scratch + j->z.weights);
    for (int64_t row = 0; row < n; row++) {
        const uint8_t *q = (const uint8_t *)t->data + (expert * n + row) * bytes;
        for (int64_t b = 0; b < blocks; b++) {
            float scale = experts_number(j->r->in[in->scale], (expert * n + row) * blocks + b);
            uint32_t zero = 1u << (bits - 1);
            if (zeros && s->block)
                zero = experts_bits((const uint8_t *)zeros->data +
                                        (expert * n + row) * experts_bytes(blocks, bits),
                                    b, bits);
            else if (zeros)
                zero = experts_bits((const uint8_t *)zeros->data + expert * experts_bytes(n, bits),
                                    row, bits);
            for (int64_t c = b * block; c < (b + 1) * block; c++)
                y[row * k + c] = ((float)experts_bits(q, c, bits) - (float)zero) * scale;
        }
    }
    return y;
}

/* y[m, n] = x[m, k] times the expert's matrix i, with its bias. */
static void experts_multiply(const expert_job *j, int i, int64_t expert, float *y, const float *x,
                             int64_t m, int64_t n, int64_t k) {
    int bias = j->s->inputs[i].bias;
    pith__product_job p = { .product = &j->s->product,
                            .a = x,
                            .b = experts_weights(j, i, expert, n, k),
                            .c = y,
                            .count = 1,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a_row = k,
                            .a_column = 1,
                            .b_row = 1,
                            .b_column = k };
    pith__product_run(j->r, j->scratch + j->z.product, &p);
    if (pith__has_input(j->r, bias)) {
        for (int64_t at = 0; at < m * n; at++)
            y[at] += experts_number(j->r->in[bias], expert * n + at % n);
    }
}

static float experts_apply(const experts *s, float x) {
    switch (s->fn) {
    case EXPERT_RELU: return x > 0 ? x : 0;
    case EXPERT_GELU: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case EXPERT_SILU: return x / (1 + expf(-x));
    case EXPERT_IDENTITY:
    case EXPERT_SWIGLU: break;
    }
    return x;
}

/* The activation of [m, wide], in place, its rows then inner long; third: FC3's result, or NULL. */
static void experts_activate(const expert_job *j, float *x, const float *third, int64_t m) {
    const experts *s = j->s;
    int64_t inner = j->z.inner, wide = j->z.wide;
    for (int64_t at = 0; at < m * inner; at++) {
        const float *row = x + at / inner * wide;
        int64_t i = at % inner;
        if (s->fn != EXPERT_SWIGLU) {
            x[at] = experts_apply(s, x[at]);
            continue;
        }
        float gate = fminf(s->fusion == 1 ? row[2 * i] : row[i], s->limit);
        float value;
        if (s->fusion == 0)
            value = third[at];
        else
            value = s->fusion == 1 ? row[2 * i + 1] : row[inner + i];
        value = fminf(fmaxf(value, -s->limit), s->limit);
        x[at] = gate / (1 + expf(-s->alpha * gate)) * (value + s->beta);
    }
}

/* Adds what an expert makes of its tokens. */
static void experts_run_one(const expert_job *j, int64_t expert, const expert_pick *picks,
                            float *y) {
    const expert_sizes *z = &j->z;
    int64_t h = z->hidden, k = j->s->k, m = 0;
    const float *x = (const float *)(void *)(j->scratch + z->x);
    float *rows = (float *)(void *)(j->scratch + z->rows),
          *first = (float *)(void *)(j->scratch + z->first);
    float *third = (float *)(void *)(j->scratch + z->third),
          *last = (float *)(void *)(j->scratch + z->last);
    for (int64_t i = 0; i < z->tokens * k; i++)
        if (picks[i].expert == expert)
            memcpy(rows + m++ * h, x + i / k * h, (size_t)h * sizeof *rows);
    if (!m) return;
    experts_multiply(j, 0, expert, first, rows, m, z->wide, h);
    bool has_third = pith__has_input(j->r, j->s->inputs[2].weight);
    if (has_third) experts_multiply(j, 2, expert, third, rows, m, z->inner, h);
    experts_activate(j, first, has_third ? third : NULL, m);
    experts_multiply(j, 1, expert, last, first, m, h, z->inner);
    m = 0;
    for (int64_t i = 0; i < z->tokens * k; i++) {
        if (picks[i].expert != expert) continue;
        for (int64_t c = 0; c < h; c++) y[i / k * h + c] += picks[i].weight * last[m * h + c];
        m++;
    }
}

/* Each token's picks first, then expert by expert, whose results are added in f32. The order of the
 * sums is that of the experts and does not depend on threads. */
static pith_status experts_run(pith__run *r) {
    expert_job j = { .r = r, .s = r->state, .scratch = r->scratch };
    const pith__dim *dims[15];
    for (int i = 0; i < 15; i++) dims[i] = pith__has_input(r, i) ? r->in[i]->dims : NULL;
    experts_sizes(&j.z, j.s, dims, r->in[EXPERT_X]->rank, r->exec->threads);
    PITH_TRY(experts_check(r, j.s, &j.z));
    int64_t n = j.z.tokens * j.z.hidden;
    if (!n) return PITH_OK;
    float *y = (float *)(void *)(j.scratch + j.z.y);
    expert_pick *picks = (expert_pick *)(void *)(j.scratch + j.z.picks);
    pith__convert(j.scratch + j.z.x, PITH_F32, 0, r->in[EXPERT_X]->data, r->in[EXPERT_X]->dtype, 0,
                  n, true);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t t = 0; t < j.z.tokens; t++)
        experts_route(r, j.s, j.z.count, t, picks + t * j.s->k);
    for (int64_t e = 0; e < j.z.count; e++) {
        PITH_TRY(pith__run_look(r));
        experts_run_one(&j, e, picks, y);
    }
    pith__convert(r->out[0]->data, r->out[0]->dtype, 0, y, PITH_F32, 0, n, true);
    return PITH_OK;
}

#define EXPERTS(symbol, name_, min, max, types_, attrs_)                                           \
    const pith__op pith__op_##symbol = {                                                           \
        .domain = "com.microsoft",                                                                 \
        .name = name_,                                                                             \
        .since = 1,                                                                                \
        .newest = 1,                                                                               \
        .min_inputs = min,                                                                         \
        .max_inputs = max,                                                                         \
        .max_outputs = 1,                                                                          \
        .types = types_,                                                                           \
        .attrs = "activation_alpha float = 1; activation_beta float = 0; "                         \
                 "activation_type string relu|gelu|silu|swiglu|identity = relu; "                  \
                 "k int 1.. = 1; normalize_routing_weights bool = 0; "                             \
                 "swiglu_fusion int 0..2 = 0; swiglu_limit float; "                                \
                 "swiglu_limit_after_activation int 0 = 0; "                                       \
                 "use_sparse_mixer bool = 0" attrs_,                                               \
        .infer = experts_infer,                                                                    \
        .prepare = experts_prepare,                                                                \
        .scratch = experts_scratch,                                                                \
        .run = experts_run                                                                         \
    };
EXPERTS(MoE_ms, "MoE", 3, 8, "e", "")
EXPERTS(QMoE_ms, "QMoE", 4, 21, "hhBhhBhhBhhBBBh",
        "; accuracy_level int = 0; block_size int 0..; expert_weight_bits int 2|3|4|8 = 4; "
        "fc1_expert_weight_bits int 2|3|4|8; fc2_expert_weight_bits int 2|3|4|8; "
        "fc3_expert_weight_bits int 2|3|4|8; "
        "quant_type string int = int; weights_prepacked int -1..1 = -1")
