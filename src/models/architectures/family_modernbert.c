/* family_modernbert.c - ModernBERT: an encoder that normalises before each block, with rotary
 * positions. Some layers attend to all tokens, the others to a window. Source: modeling_modernbert
 * of transformers. */
#include <math.h>

#include "models/architectures/hf_attention.h"
#include "models/architectures/hf_keys.h"

/* What layers share; the second of each pair is for layers with a window. */
typedef struct modernbert {
    pith__value *padding, *window;
    pith__hf_rotary turn[2];
    const bool *local; /* by layer_types; NULL: */
    int64_t every;     /* each such layer attends to all tokens */
    double eps;
    bool norm_bias, mlp_bias, attention_bias;
} modernbert;

static pith__value *modernbert_norm(pith__hf_builder *b, const modernbert *m, pith__value *x) {
    return pith__hf_norm(b, x, b->config->hidden_size, m->eps, m->norm_bias);
}

static pith__value *modernbert_attend(pith__hf_builder *b, const modernbert *m, pith__value *x,
                                      bool local) {
    const pith__hf_config *c = b->config;
    int64_t n = c->hidden_size, size = n / c->heads;
    pith__value *parts[3], *biases[] = { m->padding, local ? m->window : NULL };
    pith__hf_in_layer(b, "attn.Wqkv");
    pith__hf_split(b, parts, 3, pith__hf_linear(b, x, n, 3 * n, m->attention_bias), n, 2);
    for (int i = 0; i < 3; i++) {
        parts[i] = pith__hf_heads(b, parts[i], c->heads, size);
        if (i < 2) parts[i] = pith__hf_turn(b, &m->turn[local], parts[i], c->heads, size);
    }
    pith__hf_in_layer(b, "attn");
    pith__value *scores = pith__hf_scores(b, parts[0], parts[1], 1 / sqrt((double)size));
    pith__value *rows = pith__hf_attend(b, scores, biases, 2, parts[2], n);
    pith__hf_in_layer(b, "attn.Wo");
    return pith__hf_linear(b, rows, n, n, m->attention_bias);
}

static pith__value *modernbert_encode(pith__hf_builder *b, const modernbert *m, int64_t i,
                                      pith__value *x) {
    int64_t n = b->config->hidden_size, inner = b->config->intermediate_size;
    bool local = m->local ? m->local[i] : i % m->every != 0;
    pith__hf_set_layer(b, pith__arena_printf(b->graph->arena, "layers.%lld.", (long long)i));
    pith__value *y = x;
    if (i > 0) {
        pith__hf_in_layer(b, "attn_norm");
        y = modernbert_norm(b, m, x);
    }
    x = PITH_HF_PUT(b, "Add", x, modernbert_attend(b, m, y, local));
    pith__hf_in_layer(b, "mlp_norm");
    y = modernbert_norm(b, m, x);
    pith__hf_in_layer(b, "mlp.Wi");
    y = pith__hf_gate_halves(b, pith__hf_linear(b, y, n, 2 * inner, m->mlp_bias), inner, 0);
    pith__hf_in_layer(b, "mlp.Wo");
    return PITH_HF_PUT(b, "Add", x, pith__hf_linear(b, y, inner, n, m->mlp_bias));
}

static void modernbert_share(pith__hf_builder *b, modernbert *m, pith__value *ids,
                             pith__value *mask) {
    double global = pith__hf_real(b, "global_rope_theta", 160000),
           local = pith__hf_real(b, "local_rope_theta", global);
    int64_t reach = pith__hf_int(b, "local_attention", 128, 1, 1 << 20) / 2;
    pith__hf_rotary_settings turn = { .size = b->config->hidden_size / b->config->heads,
                                      .theta = global };
    *m = (modernbert){ .every = pith__hf_int(b, "global_attn_every_n_layers", 3, 1, 1 << 12),
                       .local = pith__hf_local_layers(b),
                       .eps = pith__hf_real(b, "norm_eps", 1e-5),
                       .norm_bias = pith__hf_bool(b, "norm_bias", false),
                       .mlp_bias = pith__hf_bool(b, "mlp_bias", false),
                       .attention_bias = pith__hf_bool(b, "attention_bias", false) };
    m->padding = pith__hf_padding_bias(b, mask);
    m->window = pith__hf_window_bias(b, ids, reach, reach);
    pith__hf_rotary_read(b, &turn, "full_attention");
    m->turn[0] = pith__hf_rotary_tables(b, ids, mask, &turn);
    turn.theta = local;
    pith__hf_rotary_read(b, &turn, "sliding_attention");
    m->turn[1] = pith__hf_rotary_tables(b, ids, mask, &turn);
}

static pith_status modernbert_build(pith__graph *graph, const void *layout,
                                    const pith__hf_config *config, const pith__weights *weights,
                                    const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    pith__hf_config c = *config;
    modernbert m;
    (void)layout;
    PITH_TRY(pith__hf_begin(&b, graph, &c, weights, weights_name,
                            "embeddings.tok_embeddings.weight", err));
    c.hidden_act = pith__hf_string(&b, "hidden_activation", "gelu");
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    if (b.status) return b.status;
    pith__value *ids = pith__hf_input(&b, "input_ids"),
                *mask = pith__hf_input(&b, "attention_mask");
    modernbert_share(&b, &m, ids, mask);
    pith__hf_go_to(&b, "embeddings.tok_embeddings");
    pith__value *x = pith__hf_look_up(&b, c.vocab_size, c.hidden_size, ids);
    pith__hf_go_to(&b, "embeddings.norm");
    x = modernbert_norm(&b, &m, x);
    for (int64_t i = 0; i < c.layers && !b.status; i++)
        x = modernbert_encode(&b, &m, i, pith__hf_layer_input(&b, i, x));
    pith__hf_go_to(&b, "final_norm");
    return pith__hf_end(&b, modernbert_norm(&b, &m, x));
}

static const pith__hf_keys modernbert_keys = {
    .reads = PITH_HF_ROPE_READS
    "vocab_size=50368 hidden_size=768 intermediate_size=1152 num_hidden_layers=22 "
    "num_attention_heads=12 hidden_activation=gelu max_position_embeddings=8192 norm_eps=1e-5 "
    "norm_bias=false pad_token_id=50283 attention_bias=false layer_types "
    "global_attn_every_n_layers=3 local_attention=128 global_rope_theta=160000 "
    "local_rope_theta=10000 mlp_bias=false classifier_pooling=cls classifier_bias=false "
    "classifier_activation=gelu",
    .fixed = "sliding_window=null",
    .ignores = "allow_embedding_resizing attention_dropout classifier_dropout decoder_bias "
               "deterministic_flash_attn embedding_dropout hidden_act initializer_cutoff_factor "
               "layer_norm_eps "
               "mlp_dropout position_embedding_type reference_compile repad_logits_with_grad "
               "sparse_pred_ignore_index sparse_prediction type_vocab_size",
};

const pith__hf_family pith__hf_family_modernbert = { .model_type = "modernbert",
                                                     .build = modernbert_build,
                                                     .keys = &modernbert_keys };
