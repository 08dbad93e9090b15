/* hf_t5.c - the encoder of T5 as a graph of ordinary operators.
 *
 * Each layer is x + attention(norm(x)), then x + feed_forward(norm(x)), with RMS norms and no
 * biases of matrices. Scores are not scaled; a learned bias by distance, in buckets, stands for
 * positions. Sources: modeling_t5 and modeling_umt5 of transformers. */
#include "models/architectures/hf_t5.h"

#include <string.h>

typedef struct t5 {
    const pith__hf_t5_layout *layout;
    int64_t size, buckets, distance_max;
    bool gated;
    double eps;
    pith__value *padding, *bias;
} t5;

static pith__value *t5_norm(pith__hf_builder *b, const t5 *t, const char *name, pith__value *x) {
    pith__hf_in_layer(b, name);
    return pith__hf_rms_norm(b, x, b->config->hidden_size, t->eps, 0);
}

static pith__value *t5_bias(pith__hf_builder *b, const t5 *t, pith__value *ids) {
    pith__hf_in_layer(b, "layer.0.SelfAttention.relative_attention_bias");
    const pith__hf_relative r = { .rows = t->buckets,
                                  .buckets = t->buckets,
                                  .distance_max = t->distance_max,
                                  .reach = t->distance_max,
                                  .clips = true };
    return pith__hf_relative_bias(b, ids, &r);
}

static pith__value *t5_attend(pith__hf_builder *b, const t5 *t, pith__value *x) {
    const pith__hf_config *c = b->config;
    static const char *const names[] = { "layer.0.SelfAttention.q", "layer.0.SelfAttention.k",
                                         "layer.0.SelfAttention.v" };
    const int64_t width = c->heads * t->size;
    pith__value *parts[3], *biases[] = { t->bias, t->padding };
    for (int i = 0; i < 3; i++)
        parts[i] = pith__hf_heads(
            b, pith__hf_linear_in_layer(b, names[i], x, c->hidden_size, width, false), c->heads,
            t->size);
    pith__hf_in_layer(b, "layer.0.SelfAttention");
    pith__value *rows =
        pith__hf_attend(b, pith__hf_scores(b, parts[0], parts[1], 1), biases, 2, parts[2], width);
    return pith__hf_linear_in_layer(b, "layer.0.SelfAttention.o", rows, width, c->hidden_size,
                                    false);
}

static pith__value *t5_feed_forward(pith__hf_builder *b, const t5 *t, pith__value *x) {
    const int64_t n = b->config->hidden_size, inner = b->config->intermediate_size;
    const char *first = t->gated ? "layer.1.DenseReluDense.wi_0" : "layer.1.DenseReluDense.wi";
    pith__value *y = pith__hf_activate(b, pith__hf_linear_in_layer(b, first, x, n, inner, false));
    if (t->gated)
        y = PITH_HF_PUT(
            b, "Mul", y,
            pith__hf_linear_in_layer(b, "layer.1.DenseReluDense.wi_1", x, n, inner, false));
    return pith__hf_linear_in_layer(b, "layer.1.DenseReluDense.wo", y, inner, n, false);
}

static pith__value *t5_encode(pith__hf_builder *b, t5 *t, pith__value *ids, int64_t i,
                              pith__value *x) {
    pith__hf_set_layer(b, pith__arena_printf(b->graph->arena, "encoder.block.%lld.", (long long)i));
    if (!i || t->layout->bias_in_each) t->bias = t5_bias(b, t, ids);
    pith__value *y = t5_attend(b, t, t5_norm(b, t, "layer.0.layer_norm", x));
    x = PITH_HF_PUT(b, "Add", x, y);
    y = t5_feed_forward(b, t, t5_norm(b, t, "layer.1.layer_norm", x));
    return PITH_HF_PUT(b, "Add", x, y);
}

/* "relu", "gated-gelu", which means gelu_new, "gated-silu"; dense_act_fn and is_gated_act say the
 * same, and go first. */
static void t5_choose_activation(pith__hf_builder *b, t5 *t, pith__hf_config *c) {
    static const char gated[] = "gated-";
    pith_str all = pith__hf_string(b, "feed_forward_proj", "relu");
    bool is_gated = all.size >= sizeof gated - 1 && !memcmp(all.data, gated, sizeof gated - 1);
    size_t skip = is_gated ? sizeof gated - 1 : 0;
    c->hidden_act = (pith_str){ all.data + skip, all.size - skip };
    if (pith__str_is(all, "gated-gelu")) c->hidden_act = PITH_STR("gelu_new");
    if (pith__hf_has(b, "dense_act_fn")) c->hidden_act = pith__hf_string(b, "dense_act_fn", "");
    t->gated = pith__hf_bool(b, "is_gated_act", is_gated);
}

static void t5_read(pith__hf_builder *b, t5 *t, pith__hf_config *c) {
    enum { SIZE_MOST = 1 << 20 };
    c->hidden_size = pith__hf_int(b, "d_model", 0, 1, SIZE_MOST);
    c->intermediate_size = pith__hf_int(b, "d_ff", 0, 1, 1 << 24);
    c->layers = pith__hf_int(b, "num_layers", 0, 1, 1 << 12);
    c->heads = pith__hf_int(b, "num_heads", 0, 1, 1 << 12);
    pith__hf_check_size(b, "vocab_size", c->vocab_size, INT32_MAX);
    t->size = pith__hf_int(b, "d_kv", 0, 1, 1 << 16);
    t->buckets = pith__hf_int(b, "relative_attention_num_buckets", 32, 4, 1 << 16);
    t->distance_max =
        pith__hf_int(b, "relative_attention_max_distance", 128, t->buckets / 4 + 1, SIZE_MOST);
    t->eps = pith__hf_real(b, "layer_norm_epsilon", 1e-6);
    t5_choose_activation(b, t, c);
}

pith_status pith__hf_t5_build(pith__graph *graph, const void *layout, const pith__hf_config *config,
                              const pith__weights *weights, const char *weights_name,
                              pith_error *err) {
    pith__hf_builder b;
    pith__hf_config c = *config;
    t5 t = { .layout = layout };
    pith_str name;
    PITH_TRY(pith__hf_begin(&b, graph, &c, weights, weights_name,
                            "encoder.block.0.layer.0.SelfAttention.q.weight", err));
    t5_read(&b, &t, &c);
    if (b.status) return b.status;
    pith__value *ids = pith__hf_input(&b, "input_ids"),
                *mask = pith__hf_input(&b, "attention_mask");
    t.padding = pith__hf_padding_bias(&b, mask);
    pith__hf_go_to(&b, "shared");
    if (!pith__hf_find(&b, ".weight", &name)) pith__hf_go_to(&b, "encoder.embed_tokens");
    pith__value *x = pith__hf_look_up(&b, c.vocab_size, c.hidden_size, ids);
    for (int64_t i = 0; i < c.layers && !b.status; i++)
        x = t5_encode(&b, &t, ids, i, pith__hf_layer_input(&b, i, x));
    pith__hf_set_layer(&b, PITH_STR(""));
    return pith__hf_end(&b, t5_norm(&b, &t, "encoder.final_layer_norm", x));
}
