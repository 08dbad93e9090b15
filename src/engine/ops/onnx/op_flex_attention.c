/* op_flex_attention.c - FlexAttention: attention whose scores and probabilities go through
 * subgraphs of the model.
 *
 * The whole matrix of scores is at hand, in double; around a subgraph it is converted to the
 * precision that the subgraph wants. Source: ai.onnx.preview FlexAttention (version 1). */
#include <math.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/as_doubles.h"

static int flex_attention_precision(const pith__node *node, int dtype) {
    return pith__node_choice(node, "softmax_precision", dtype == PITH_F64 ? PITH_F64 : PITH_F32);
}

/* Subgraphs are inferred on the shape of the scores, so their errors are found at load. */
static pith_status flex_attention_infer(pith__infer *c) {
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
        pith__type_set(&in, flex_attention_precision(c->node, q->dtype), 4, scores);
        PITH_TRY(pith__infer_subgraph(c, mods[i], &in, 1, &out, 1));
    }
    return PITH_OK;
}

/* Scores in double and in the precision the subgraphs want, each [batch, heads, queries, keys]. */
static pith_status flex_attention_scratch(const pith__infer *c, const void *state, int threads,
                                          size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    size_t n;
    int64_t rows = pith__dims_count(c->in[0]->dims, 3);
    if (rows < 0 || pith__mul_overflows((size_t)rows, 16 * (size_t)c->in[1]->dims[2], &n) ||
        pith__add_overflows(*bytes, n + 64, bytes))
        return pith__fail(c->err, PITH_ERR_MEMORY, "the scores are too large");
    return PITH_OK;
}

/* Hands the scores to a subgraph in its precision and takes its result back in double. `narrow` is
 * room for them in that precision. */
static pith_status flex_attention_modify(pith__run *r, const char *name, double *scores,
                                         const pith_tensor *shape, void *narrow) {
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

/* Three passes over all scores, because the subgraphs want all of them at once: scaled products,
 * softmax, probabilities times values. The rows of several query heads share a key head. */
static pith_status flex_attention_run(pith__run *r) {
    const pith_tensor *q = r->in[0], *k = r->in[1], *v = r->in[2];
    int64_t batch = q->dims[0], heads = q->dims[1], rows = q->dims[2], d = q->dims[3],
            kv_heads = k->dims[1], keys = k->dims[2];
    int64_t dv = v->dims[3];
    if (kv_heads < 1 || heads % kv_heads || v->dims[1] != kv_heads || v->dims[2] != keys ||
        k->dims[3] != d || k->dims[0] != batch || v->dims[0] != batch)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "Q, K and V do not fit");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t all = batch * heads * rows * keys;
    double *scores = w.rest, scale = pith__node_attr(r->node, "scale")
                                         ? pith__node_float(r->node, "scale", 1)
                                         : 1 / sqrt((double)d);
    void *narrow = scores + all;
    pith_tensor shape = { .dtype = flex_attention_precision(r->node, q->dtype),
                          .rank = 4,
                          .dims = { batch, heads, rows, keys } };
    if (!pith__dtype_bytes(shape.dtype, all, &shape.bytes) || shape.bytes > (size_t)all * 8 ||
        !pith__dtype_is_float(shape.dtype))
        return pith__op_fail(r, "softmax_precision %d is not a float type", shape.dtype);
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        PITH_TRY(pith__run_look(r));
        int64_t b = row / (heads * rows), h = row / rows % heads;
        const double *key = w.in[1] + (b * kv_heads + h / (heads / kv_heads)) * keys * d;
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0;
            for (int64_t i = 0; i < d; i++) sum += w.in[0][row * d + i] * key[j * d + i];
            scores[row * keys + j] = sum * scale;
        }
    }
    PITH_TRY(flex_attention_modify(r, "score_mod", scores, &shape, narrow));
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        PITH_TRY(pith__run_look(r));
        double most = -INFINITY, sum = 0, *s = scores + row * keys;
        for (int64_t j = 0; j < keys; j++) most = fmax(most, s[j]);
        for (int64_t j = 0; j < keys; j++) sum += s[j] = exp(s[j] - most);
        for (int64_t j = 0; j < keys; j++) s[j] /= sum;
    }
    PITH_TRY(flex_attention_modify(r, "prob_mod", scores, &shape, narrow));
    for (int64_t row = 0; row < batch * heads * rows; row++) {
        PITH_TRY(pith__run_look(r));
        int64_t b = row / (heads * rows), h = row / rows % heads;
        const double *value = w.in[2] + (b * kv_heads + h / (heads / kv_heads)) * keys * dv;
        for (int64_t j = 0; j < keys; j++)
            for (int64_t i = 0; i < dv; i++)
                w.out[0][row * dv + i] += scores[row * keys + j] * value[j * dv + i];
    }
    return pith__wide_close(&w, r);
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
    .infer = flex_attention_infer,
    .scratch = flex_attention_scratch,
    .run = flex_attention_run,
};
