/* family_vit.c - ViT. Source: modeling_vit of transformers. */
#include "models/architectures/hf_keys.h"
#include "models/architectures/hf_tower.h"

static const pith__hf_tower_names vit_names = { .layer = "encoder.layer.",
                                                .query = "attention.attention.query",
                                                .key = "attention.attention.key",
                                                .value = "attention.attention.value",
                                                .attention_out = "attention.output.dense",
                                                .norm_before = "layernorm_before",
                                                .norm_after = "layernorm_after",
                                                .up = "intermediate.dense",
                                                .down = "output.dense" };
/* Of ViTConfig. */
static const pith__hf_tower_defaults vit_defaults = { .hidden = 768,
                                                      .inner = 3072,
                                                      .layers = 12,
                                                      .heads = 12,
                                                      .image = 224,
                                                      .patch = 16,
                                                      .eps = 1e-12,
                                                      .act = "gelu" };

/* The first row of x goes through a layer of its own, if the checkpoint has it. */
static void vit_pool(pith__hf_builder *b, const pith__hf_tower *t, pith__value *x) {
    pith_str name;
    const int64_t n = b->config->hidden_size;
    pith__hf_tower_go_to(b, t, "pooler.dense");
    if (!pith__hf_find(b, ".weight", &name)) return;
    int64_t width = pith__hf_int(b, "pooler_output_size", n, 1, 1 << 20);
    pith__hf_want_string(b, "pooler_act", "tanh");
    pith__value *y = pith__hf_linear(b, pith__hf_row(b, x, 0), n, width, true);
    pith__hf_output(b, PITH_HF_PUT(b, "Tanh", y), "pooler_output");
}

static pith_status vit_build(pith__graph *graph, const void *layout, const pith__hf_config *config,
                             const pith__weights *weights, const char *weights_name,
                             pith_error *err) {
    (void)layout;
    pith__hf_builder b;
    pith__hf_tower t = { .section = "", .prefix = "" };
    int64_t patches;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name,
                            "embeddings.patch_embeddings.projection.weight", err));
    t.query_bias = pith__hf_bool(&b, "qkv_bias", true);
    pith__hf_tower_begin(&b, &t, &vit_defaults);
    const int64_t n = t.config.hidden_size;
    pith__value *pixels = pith__hf_pixels(&b, t.channels, t.image);
    pith__value *x =
        pith__hf_patches(&b, &t, pixels, "embeddings.patch_embeddings.projection", true, &patches);
    pith__hf_tower_go_to(&b, &t, "embeddings.");
    pith__value *first = pith__hf_tensor(&b, "cls_token", NULL, 3, (int64_t[]){ 1, 1, n });
    x = pith__hf_put_first(&b, x, pith__hf_widen(&b, first, first));
    pith__value *table =
        pith__hf_tensor(&b, "position_embeddings", NULL, 3, (int64_t[]){ 1, patches + 1, n });
    x = PITH_HF_PUT(&b, "Add", x, pith__hf_widen(&b, table, table));
    x = pith__hf_tower_layers(&b, &t, &vit_names, x, NULL, NULL);
    pith__hf_tower_go_to(&b, &t, "layernorm");
    x = pith__hf_norm(&b, x, n, t.config.layer_norm_eps, true);
    vit_pool(&b, &t, x);
    pith__hf_output(&b, x, "last_hidden_state");
    return b.status;
}

static const pith__hf_keys vit_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps "
             "hidden_act "
             "image_size patch_size num_channels qkv_bias pooler_act pooler_output_size",
    .ignores = "attention_probs_dropout_prob encoder_stride",
};

const pith__hf_family pith__hf_family_vit = { .model_type = "vit",
                                              .build = vit_build,
                                              .keys = &vit_keys };
