/* hf_attention.c - heads, masks and biases of attention. Scores are scaled and masked as exporters
 * write it, so that the attention pass fuses them. */
#include "models/architectures/hf_attention.h"

#include <float.h>
#include <math.h>

/* ---- heads ---- */

static const int64_t heads_first[] = { 0, 2, 1, 3 };

pith__value *pith__hf_heads(pith__hf_builder *b, pith__value *rows, int64_t heads, int64_t size) {
    const int64_t split[] = { 0, 0, heads, size };
    return pith__hf_transpose(b, pith__hf_reshape(b, rows, split, 4), heads_first, 4);
}

pith__value *pith__hf_repeat_heads(pith__hf_builder *b, pith__value *x, int64_t heads,
                                   int64_t times, int64_t size) {
    const int64_t repeat[] = { 1, 1, times, 1, 1 }, joined[] = { 0, heads * times, -1, size };
    if (times == 1) return x;
    pith__value *wide =
        PITH_HF_PUT(b, "Expand", pith__hf_unsqueeze(b, x, 2), pith__hf_i64s(b, repeat, 5));
    return pith__hf_reshape(b, wide, joined, 4);
}

pith__value *pith__hf_scores(pith__hf_builder *b, pith__value *q, pith__value *k, double scale) {
    pith__value *turned = pith__hf_transpose(b, k, (int64_t[]){ 0, 1, 3, 2 }, 4);
    return PITH_HF_PUT(b, "Mul", PITH_HF_PUT(b, "MatMul", q, turned),
                       pith__hf_f32(b, (float)scale));
}

/* Biases are added one after the other, the padding last, as exporters write them. */
pith__value *pith__hf_attend(pith__hf_builder *b, pith__value *scores, pith__value *const *biases,
                             int bias_count, pith__value *v, int64_t width) {
    const int64_t joined[] = { 0, 0, width };
    for (int i = 0; i < bias_count; i++)
        if (biases[i]) scores = PITH_HF_PUT(b, "Add", scores, biases[i]);
    pith__value *weights = pith__hf_put_axis(b, "Softmax", scores, -1);
    pith__value *heads =
        pith__hf_transpose(b, PITH_HF_PUT(b, "MatMul", weights, v), heads_first, 4);
    return pith__hf_reshape(b, heads, joined, 3);
}

/* layer_types of newer versions of transformers. More entries than layers are allowed, as there. */
const bool *pith__hf_local_layers(pith__hf_builder *b) {
    int64_t count, layers = b->config->layers;
    pith_str *types = pith__hf_strings(b, "layer_types", layers, &count);
    bool *local =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)layers, sizeof *local);
    if (!local) pith__hf_made(b, NULL);
    if (!local || !pith__hf_has(b, "layer_types")) return NULL;
    if (count < layers)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: layer_types has %lld entries; num_hidden_layers is %lld",
                      (long long)count, (long long)layers);
    for (int64_t i = 0; i < count; i++) {
        local[i] = pith__str_is(types[i], "sliding_attention");
        if (!local[i] && !pith__str_is(types[i], "full_attention"))
            pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                          "config.json: layer_types: \"" PITH_STR_FMT
                          "\" is not supported; supported are full_attention, sliding_attention",
                          PITH_STR_ARG(types[i]));
    }
    return local;
}

/* ---- masks and biases ---- */

pith__value *pith__hf_padding_bias(pith__hf_builder *b, pith__value *mask) {
    pith__hf_go_to(b, "attention_mask");
    pith__value *real =
        pith__hf_cast(b, pith__hf_unsqueeze(b, pith__hf_unsqueeze(b, mask, 1), 2), PITH_F32);
    return PITH_HF_PUT(b, "Mul", PITH_HF_PUT(b, "Sub", pith__hf_f32(b, 1), real),
                       pith__hf_f32(b, -FLT_MAX));
}

pith__value *pith__hf_distances(pith__hf_builder *b, pith__value *ids) {
    pith__value *range = pith__hf_range(b, ids);
    return PITH_HF_PUT(b, "Sub", pith__hf_unsqueeze(b, range, 0), pith__hf_unsqueeze(b, range, 1));
}

/* 0 for keys within the window and the least of f32 for others. A window that reaches equally far
 * to both sides is written with Abs, which is one comparison less. */
pith__value *pith__hf_window_bias(pith__hf_builder *b, pith__value *ids, int64_t before,
                                  int64_t after) {
    pith__value *taken = NULL;
    if (before < 0 && after < 0) return NULL;
    pith__hf_go_to(b, "window");
    pith__value *distance = pith__hf_distances(b, ids);
    if (before >= 0 && before == after) {
        taken = PITH_HF_PUT(b, "LessOrEqual", PITH_HF_PUT(b, "Abs", distance),
                            pith__hf_i64_scalar(b, after));
    } else {
        if (after >= 0)
            taken = PITH_HF_PUT(b, "LessOrEqual", distance, pith__hf_i64_scalar(b, after));
        pith__value *late = before < 0 ? NULL
                                       : PITH_HF_PUT(b, "GreaterOrEqual", distance,
                                                     pith__hf_i64_scalar(b, -before));
        if (late) taken = taken ? PITH_HF_PUT(b, "And", taken, late) : late;
    }
    pith__value *bias =
        PITH_HF_PUT(b, "Where", taken, pith__hf_f32(b, 0), pith__hf_f32(b, -FLT_MAX));
    return pith__hf_unsqueeze(b, pith__hf_unsqueeze(b, bias, 0), 0);
}

/* 2^(-8 (i + 1) / count): the slopes for a power of 2. */
static float hf_attention_slope(int64_t i, int64_t count) {
    return (float)pow(2, -8.0 * (double)(i + 1) / (double)count);
}

/* For a number of heads that is no power of 2, the slopes of the next lower one, then every second
 * of those of twice as many. Source: get_alibi_head_slopes of Jina's modeling_bert.py, after Press
 * et al. */
pith__value *pith__hf_alibi_bias(pith__hf_builder *b, pith__value *ids, int64_t heads) {
    int64_t power = 1;
    while (power * 2 <= heads) power *= 2;
    pith__hf_go_to(b, "alibi");
    float *slopes =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)heads, sizeof *slopes);
    if (!slopes) return pith__hf_made(b, NULL);
    for (int64_t i = 0; i < heads; i++)
        slopes[i] = i < power ? -hf_attention_slope(i, power)
                              : -hf_attention_slope(2 * (i - power), 2 * power);
    pith__value *distance =
        pith__hf_cast(b, PITH_HF_PUT(b, "Abs", pith__hf_distances(b, ids)), PITH_F32);
    pith__value *slope = pith__hf_f32s(b, slopes, 4, (int64_t[]){ 1, heads, 1, 1 });
    return PITH_HF_PUT(b, "Mul", slope,
                       pith__hf_unsqueeze(b, pith__hf_unsqueeze(b, distance, 0), 0));
}

/* The bucket of a key `distance` places after the query. */
static int64_t hf_attention_bucket(int64_t distance, const pith__hf_relative *r) {
    int64_t half = r->buckets / 2, exact = half / 2, bucket = distance > 0 ? half : 0;
    int64_t n = distance < 0 ? -distance : distance;
    if (n < exact) return bucket + n;
    float scale = (float)log((double)r->distance_max / (double)exact);
    float far = (float)log((double)((float)n / (float)exact)) / scale * (float)(half - exact);
    int64_t log_bucket = exact + (int64_t)far;
    return bucket + (log_bucket < half ? log_bucket : half - 1);
}

/* The buckets of all distances are a constant; the graph looks up the learned row of each. Sources:
 * T5Attention and MPNetEncoder (relative_position_bucket). */
pith__value *pith__hf_relative_bias(pith__hf_builder *b, pith__value *ids,
                                    const pith__hf_relative *r) {
    const int64_t reach = r->reach;
    pith__value *learned =
        pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ r->rows, b->config->heads });
    int64_t *bucket =
        b->status ? NULL
                  : pith__arena_array(b->graph->arena, 2 * (size_t)reach + 1, sizeof *bucket);
    if (!bucket) return pith__hf_made(b, NULL);
    for (int64_t d = -reach; d <= reach; d++) bucket[reach + d] = hf_attention_bucket(d, r);
    pith__value *bucket_of = pith__hf_i64s(b, bucket, 2 * reach + 1),
                *distance = pith__hf_distances(b, ids);
    if (r->clips)
        distance = PITH_HF_PUT(b, "Clip", distance, pith__hf_i64_scalar(b, -reach),
                               pith__hf_i64_scalar(b, reach));
    distance = PITH_HF_PUT(b, "Add", distance, pith__hf_i64(b, reach));
    pith__value *place = PITH_HF_PUT(b, "Gather", bucket_of, distance);
    pith__value *rows = pith__hf_widen(b, learned, PITH_HF_PUT(b, "Gather", learned, place));
    return pith__hf_unsqueeze(b, pith__hf_transpose(b, rows, (int64_t[]){ 2, 0, 1 }, 3), 0);
}

/* Entries from .. to of x's shape. */
static pith__value *hf_attention_sizes(pith__hf_builder *b, pith__value *x, int64_t from,
                                       int64_t to) {
    pith__value *sizes = PITH_HF_PUT(b, "Shape", x);
    pith__hf_set_int(b, sizes, "start", from);
    pith__hf_set_int(b, sizes, "end", to);
    return sizes;
}

/* Batch and heads are one axis here, as exporters write it: the products of all columns, which are
 * many more than the tokens of a short text, are then no value per token, and only exist for one
 * text at a time. */
pith__value *pith__hf_pick(pith__hf_builder *b, pith__value *x, int64_t heads, int64_t size,
                           pith__value *table, bool by_head, pith__value *index) {
    pith__value *all = pith__hf_i64(b, -1), *length = hf_attention_sizes(b, index, 0, 1),
                *batch = hf_attention_sizes(b, x, 0, 1);
    pith__value *square = hf_attention_sizes(b, index, 0, 2);
    pith__value *rows_shape =
        pith__hf_join(b, pith__hf_join(b, all, length, 0), pith__hf_i64(b, size), 0);
    pith__value *rows = PITH_HF_PUT(b, "Reshape", x, rows_shape);
    if (by_head)
        table = PITH_HF_PUT(b, "Tile", table,
                            pith__hf_join(b, batch, pith__hf_i64s(b, (int64_t[]){ 1, 1 }, 2), 0));
    pith__value *products = PITH_HF_PUT(b, "MatMul", rows, table);
    pith__value *wide_index = PITH_HF_PUT(
        b, "Expand", index, pith__hf_join(b, hf_attention_sizes(b, products, 0, 1), square, 0));
    pith__value *picked = PITH_HF_PUT(b, "GatherElements", products, wide_index);
    pith__hf_set_int(b, picked, "axis", 2);
    pith__value *back = pith__hf_join(b, pith__hf_i64s(b, (int64_t[]){ -1, heads }, 2), square, 0);
    return PITH_HF_PUT(b, "Reshape", picked, back);
}
