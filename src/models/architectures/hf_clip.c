/* hf_clip.c - CLIP: a tower for texts, a tower for pictures, and projections of both into one
 * space.
 *
 * A directory may have both towers or one of them. Source: modeling_clip of transformers. */
#include "models/architectures/hf_clip.h"

const pith__hf_keys pith__hf_clip_text_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps "
             "hidden_act "
             "vocab_size max_position_embeddings projection_dim",
    .ignores = "attention_dropout dropout",
};

const pith__hf_keys pith__hf_clip_vision_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps "
             "hidden_act "
             "projection_dim image_size patch_size num_channels",
    .ignores = "attention_dropout dropout",
};

/* The defaults of CLIPTextConfig and CLIPVisionConfig. */
static const pith__hf_tower_defaults clip_text = { .hidden = 512,
                                                   .inner = 2048,
                                                   .layers = 12,
                                                   .heads = 8,
                                                   .positions = 77,
                                                   .vocabulary = 49408,
                                                   .eps = 1e-5,
                                                   .act = "quick_gelu" };
static const pith__hf_tower_defaults clip_vision = { .hidden = 768,
                                                     .inner = 3072,
                                                     .layers = 12,
                                                     .heads = 12,
                                                     .image = 224,
                                                     .patch = 32,
                                                     .eps = 1e-5,
                                                     .act = "quick_gelu" };
enum { CLIP_PROJECTION = 512, CLIP_EOS = 49407, CLIP_OLD_EOS = 2 };

/* The place of each text's end token, [batch, 1]. Files from before eos_token_id was right say 2;
 * there, the largest id is the end token. */
static pith__value *clip_end(pith__hf_builder *b, const pith__hf_tower *t, pith__value *ids) {
    int64_t eos = pith__hf_tower_int(b, t, "eos_token_id", CLIP_EOS, 0, INT32_MAX);
    pith__hf_go_to(b, "end_token");
    pith__value *marks = ids;
    if (eos != CLIP_OLD_EOS)
        marks =
            pith__hf_cast(b, PITH_HF_PUT(b, "Equal", ids, pith__hf_i64_scalar(b, eos)), PITH_I32);
    pith__value *place = pith__hf_put_axis(b, "ArgMax", marks, 1);
    pith__hf_set_int(b, place, "keepdims", 1);
    return place;
}

static void clip_project(pith__hf_builder *b, pith__value *pooled, const char *name, int64_t width,
                         const char *output) {
    pith_str stored;
    pith__hf_go_to(b, name);
    bool projects = pith__hf_find(b, ".weight", &stored);
    pith__value *y =
        projects ? pith__hf_linear(b, pooled, b->config->hidden_size, width, false) : pooled;
    pith__hf_output(b, y, projects ? output : "pooler_output");
}

static void clip_build_text(pith__hf_builder *b, pith__hf_tower *t, int64_t width) {
    pith__hf_tower_begin(b, t, &clip_text);
    const pith__hf_config *c = b->config;
    pith__value *ids = pith__hf_input(b, "input_ids"), *mask = pith__hf_input(b, "attention_mask");
    pith__hf_tower_go_to(b, t, "embeddings.token_embedding");
    pith__value *x = pith__hf_look_up(b, c->vocab_size, c->hidden_size, ids);
    pith__hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith__value *places = pith__hf_look_up(b, c->positions, c->hidden_size,
                                           pith__hf_unsqueeze(b, pith__hf_range(b, ids), 0));
    x = PITH_HF_PUT(b, "Add", x, places);
    pith__value *causal = pith__hf_window_bias(b, ids, -1, 0);
    x = pith__hf_tower_layers(b, t, &pith__hf_clip_names, x, causal,
                              pith__hf_padding_bias(b, mask));
    pith__hf_tower_go_to(b, t, "final_layer_norm");
    x = pith__hf_norm(b, x, c->hidden_size, c->layer_norm_eps, true);
    pith__value *end = clip_end(b, t, ids);
    /* GatherND with batch_dims 1 takes row end[i] of text i. */
    pith__value *pooled = PITH_HF_PUT(b, "GatherND", x, end);
    pith__hf_set_int(b, pooled, "batch_dims", 1);
    clip_project(b, pooled, "text_projection", width, "text_embeds");
    pith__hf_output(b, x, "last_hidden_state");
}

static void clip_build_vision(pith__hf_builder *b, pith__hf_tower *t, int64_t width) {
    pith__hf_tower_begin(b, t, &clip_vision);
    const pith__hf_config *c = b->config;
    const int64_t n = c->hidden_size;
    int64_t patches;
    pith__value *pixels = pith__hf_pixels(b, t->channels, t->image);
    pith__value *x = pith__hf_patches(b, t, pixels, "embeddings.patch_embedding", false, &patches);
    pith__hf_tower_go_to(b, t, "embeddings.");
    x = pith__hf_put_first(b, x, pith__hf_vector(b, "class_embedding", NULL, n));
    pith__hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith__value *table = pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ patches + 1, n });
    x = PITH_HF_PUT(b, "Add", x, pith__hf_widen(b, table, table));
    pith__hf_tower_go_to(b, t, "pre_layrnorm"); /* so spelt */
    x = pith__hf_norm(b, x, n, c->layer_norm_eps, true);
    x = pith__hf_tower_layers(b, t, &pith__hf_clip_names, x, NULL, NULL);
    pith__value *first = pith__hf_row(b, x, 0);
    pith__hf_tower_go_to(b, t, "post_layernorm");
    clip_project(b, pith__hf_norm(b, first, n, c->layer_norm_eps, true), "visual_projection", width,
                 "image_embeds");
}

pith_status pith__hf_clip_build(pith__graph *graph, const void *layout,
                                const pith__hf_config *config, const pith__weights *weights,
                                const char *weights_name, pith_error *err) {
    const pith__hf_towers *l = layout;
    pith__hf_builder b;
    pith__hf_tower text, vision;
    PITH_TRY(
        pith__hf_towers_begin(&b, &text, &vision, l, graph, config, weights, weights_name, err));
    int64_t width = pith__hf_int(&b, "projection_dim", CLIP_PROJECTION, 1, 1 << 20);
    if (l->text) clip_build_text(&b, &text, width);
    if (l->vision) clip_build_vision(&b, &vision, width);
    return b.status;
}
