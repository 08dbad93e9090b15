/* hf_clip.c - CLIP: a tower for texts, a tower for pictures, and projections of both into one space.
 *
 * A directory may have both towers or one of them. Source: modeling_clip of transformers. */
#include "models/architectures/hf_clip.h"

const pith_hf_keys pith_hf_clip_text_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "vocab_size max_position_embeddings projection_dim",
    .ignores = "attention_dropout dropout",
};

const pith_hf_keys pith_hf_clip_vision_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "projection_dim image_size patch_size num_channels",
    .ignores = "attention_dropout dropout",
};

/* The defaults of CLIPTextConfig and CLIPVisionConfig. */
static const pith_hf_tower_defaults clip_text = { .hidden = 512,
                                                  .inner = 2048,
                                                  .layers = 12,
                                                  .heads = 8,
                                                  .positions = 77,
                                                  .vocabulary = 49408,
                                                  .eps = 1e-5,
                                                  .act = "quick_gelu" };
static const pith_hf_tower_defaults clip_vision = {
    .hidden = 768, .inner = 3072, .layers = 12, .heads = 12, .image = 224, .patch = 32, .eps = 1e-5, .act = "quick_gelu"
};
enum { CLIP_PROJECTION = 512, CLIP_EOS = 49407, CLIP_OLD_EOS = 2 };

/* The place of each text's end token, [batch, 1]. Files from before eos_token_id was right say 2; there, the largest id
 * is the end token. */
static pith_value *clip_end(pith_hf_builder *b, const pith_hf_tower *t, pith_value *ids) {
    int64_t eos = pith_hf_tower_int(b, t, "eos_token_id", CLIP_EOS, 0, INT32_MAX);
    pith_hf_go_to(b, "end_token");
    pith_value *marks = ids;
    if (eos != CLIP_OLD_EOS)
        marks = pith_hf_cast(b, PITH_HF_PUT(b, "Equal", ids, pith_hf_i64_scalar(b, eos)), PITH_I32);
    pith_value *place = pith_hf_put_axis(b, "ArgMax", marks, 1);
    pith_hf_set_int(b, place, "keepdims", 1);
    return place;
}

static void clip_project(pith_hf_builder *b, pith_value *pooled, const char *name, int64_t width, const char *output) {
    pith_str stored;
    pith_hf_go_to(b, name);
    bool projects = pith_hf_find(b, ".weight", &stored);
    pith_value *y = projects ? pith_hf_linear(b, pooled, b->config->hidden_size, width, false) : pooled;
    pith_hf_output(b, y, projects ? output : "pooler_output");
}

static void clip_build_text(pith_hf_builder *b, pith_hf_tower *t, int64_t width) {
    pith_hf_tower_begin(b, t, &clip_text);
    const pith_hf_config *c = b->config;
    pith_value *ids = pith_hf_input(b, "input_ids"), *mask = pith_hf_input(b, "attention_mask");
    pith_hf_tower_go_to(b, t, "embeddings.token_embedding");
    pith_value *x = pith_hf_look_up(b, c->vocab_size, c->hidden_size, ids);
    pith_hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith_value *places =
        pith_hf_look_up(b, c->positions, c->hidden_size, pith_hf_unsqueeze(b, pith_hf_range(b, ids), 0));
    x = PITH_HF_PUT(b, "Add", x, places);
    pith_value *causal = pith_hf_window_bias(b, ids, -1, 0);
    x = pith_hf_tower_layers(b, t, &pith_hf_clip_names, x, causal, pith_hf_padding_bias(b, mask));
    pith_hf_tower_go_to(b, t, "final_layer_norm");
    x = pith_hf_norm(b, x, c->hidden_size, c->layer_norm_eps, true);
    pith_value *end = clip_end(b, t, ids);
    /* GatherND with batch_dims 1 takes row end[i] of text i. */
    pith_value *pooled = PITH_HF_PUT(b, "GatherND", x, end);
    pith_hf_set_int(b, pooled, "batch_dims", 1);
    clip_project(b, pooled, "text_projection", width, "text_embeds");
    pith_hf_output(b, x, "last_hidden_state");
}

static void clip_build_vision(pith_hf_builder *b, pith_hf_tower *t, int64_t width) {
    pith_hf_tower_begin(b, t, &clip_vision);
    const pith_hf_config *c = b->config;
    const int64_t n = c->hidden_size;
    int64_t patches;
    pith_value *pixels = pith_hf_pixels(b, t->channels, t->image);
    pith_value *x = pith_hf_patches(b, t, pixels, "embeddings.patch_embedding", false, &patches);
    pith_hf_tower_go_to(b, t, "embeddings.");
    x = pith_hf_put_first(b, x, pith_hf_vector(b, "class_embedding", NULL, n));
    pith_hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith_value *table = pith_hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ patches + 1, n });
    x = PITH_HF_PUT(b, "Add", x, pith_hf_widen(b, table, table));
    pith_hf_tower_go_to(b, t, "pre_layrnorm"); /* so spelt */
    x = pith_hf_norm(b, x, n, c->layer_norm_eps, true);
    x = pith_hf_tower_layers(b, t, &pith_hf_clip_names, x, NULL, NULL);
    pith_value *first = pith_hf_row(b, x, 0);
    pith_hf_tower_go_to(b, t, "post_layernorm");
    clip_project(b, pith_hf_norm(b, first, n, c->layer_norm_eps, true), "visual_projection", width, "image_embeds");
}

pith_status pith_hf_clip_build(pith_graph *graph, const void *layout, const pith_hf_config *config,
                               const pith_weights *weights, const char *weights_name, pith_error *err) {
    const pith_hf_towers *l = layout;
    pith_hf_builder b;
    pith_hf_tower text, vision;
    PITH_TRY(pith_hf_towers_begin(&b, &text, &vision, l, graph, config, weights, weights_name, err));
    int64_t width = pith_hf_int(&b, "projection_dim", CLIP_PROJECTION, 1, 1 << 20);
    if (l->text) clip_build_text(&b, &text, width);
    if (l->vision) clip_build_vision(&b, &vision, width);
    return b.status;
}
