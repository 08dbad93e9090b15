/* hf_siglip.c - SigLIP: a tower for texts, which are always filled up to the same length, and one
 * for pictures, whose patches are pooled by attention.
 *
 * SigLIP was trained without an attention mask: every token attends to the fillers, and the last
 * one, a filler in most texts, stands for the text. Source: modeling_siglip of transformers. */
#include "models/architectures/hf_siglip.h"

#include <math.h>

const pith__hf_keys pith__hf_siglip_text_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps "
             "hidden_act "
             "vocab_size max_position_embeddings projection_size",
    .ignores = "attention_dropout",
};

const pith__hf_keys pith__hf_siglip_vision_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps "
             "hidden_act "
             "image_size patch_size num_channels",
    .fixed = "vision_use_head=true",
    .ignores = "attention_dropout",
};

/* The defaults of SiglipTextConfig and SiglipVisionConfig. */
static const pith__hf_tower_defaults siglip_text = { .hidden = 768,
                                                     .inner = 3072,
                                                     .layers = 12,
                                                     .heads = 12,
                                                     .positions = 64,
                                                     .vocabulary = 32000,
                                                     .eps = 1e-6,
                                                     .act = "gelu_pytorch_tanh" };
static const pith__hf_tower_defaults siglip_vision = { .hidden = 768,
                                                       .inner = 3072,
                                                       .layers = 12,
                                                       .heads = 12,
                                                       .image = 224,
                                                       .patch = 16,
                                                       .eps = 1e-6,
                                                       .act = "gelu_pytorch_tanh" };

/* Texts have the length of the table of positions, which the input declares. */
static pith__value *siglip_input(pith__hf_builder *b, int64_t length) {
    pith__value *ids = pith__hf_input(b, "input_ids");
    if (!ids) return NULL;
    const pith__dim dims[] = { pith__dim_symbol(b->graph->dims, PITH_STR("batch")),
                               pith__dim_of(length) };
    pith__type_set(&ids->type, PITH_I64, 2, dims);
    ids->fixed = true;
    return ids;
}

static void siglip_build_text(pith__hf_builder *b, pith__hf_tower *t) {
    pith__hf_tower_begin(b, t, &siglip_text);
    const pith__hf_config *c = b->config;
    const int64_t n = c->hidden_size;
    pith__value *ids = siglip_input(b, c->positions);
    pith__hf_tower_go_to(b, t, "embeddings.token_embedding");
    pith__value *x = pith__hf_look_up(b, c->vocab_size, n, ids);
    pith__hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith__value *table = pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ c->positions, n });
    x = PITH_HF_PUT(b, "Add", x, pith__hf_widen(b, table, table));
    x = pith__hf_tower_layers(b, t, &pith__hf_clip_names, x, NULL, NULL);
    pith__hf_tower_go_to(b, t, "final_layer_norm");
    x = pith__hf_norm(b, x, n, c->layer_norm_eps, true);
    pith__value *last = pith__hf_row(b, x, -1);
    pith__hf_tower_go_to(b, t, "head");
    int64_t width = pith__hf_tower_int(b, t, "projection_size", n, 1, 1 << 20);
    pith__hf_output(b, pith__hf_linear(b, last, n, width, true), "text_embeds");
    pith__hf_output(b, x, "last_hidden_state");
}

/* One of query, key and value, which share the rows of in_proj; part: 0, 1, 2. */
static pith__value *siglip_head_rows(pith__hf_builder *b, const pith__hf_tower *t, pith__value *x,
                                     int64_t part) {
    const int64_t n = b->config->hidden_size, heads = b->config->heads;
    pith__hf_tower_go_to(b, t, "head.attention.");
    pith__value *stored = pith__hf_tensor(b, "in_proj_weight", NULL, 2, (int64_t[]){ 3 * n, n });
    pith__value *weight =
        pith__hf_slice(b, pith__hf_widen(b, stored, stored), part * n, (part + 1) * n, 0);
    pith__value *bias = pith__hf_slice(b, pith__hf_vector(b, "in_proj_bias", NULL, 3 * n), part * n,
                                       (part + 1) * n, 0);
    pith__value *y =
        PITH_HF_PUT(b, "MatMul", x, pith__hf_transpose(b, weight, (int64_t[]){ 1, 0 }, 2));
    return pith__hf_heads(b, PITH_HF_PUT(b, "Add", y, bias), heads, n / heads);
}

/* A learned row attends to all patches. */
static pith__value *siglip_pool(pith__hf_builder *b, const pith__hf_tower *t, pith__value *x) {
    const pith__hf_config *c = b->config;
    const int64_t n = c->hidden_size;
    pith__value *none[1] = { NULL };
    pith__hf_tower_go_to(b, t, "head.");
    pith__value *probe = pith__hf_tensor(b, "probe", NULL, 3, (int64_t[]){ 1, 1, n });
    pith__value *q = siglip_head_rows(b, t, pith__hf_widen(b, probe, probe), 0);
    pith__value *k = siglip_head_rows(b, t, x, 1), *v = siglip_head_rows(b, t, x, 2);
    pith__value *scores = pith__hf_scores(b, q, k, 1 / sqrt((double)n / (double)c->heads));
    pith__value *y = pith__hf_attend(b, scores, none, 0, v, n);
    pith__hf_tower_go_to(b, t, "head.attention.out_proj");
    y = pith__hf_linear(b, y, n, n, true);
    pith__hf_tower_go_to(b, t, "head.layernorm");
    pith__value *z = pith__hf_norm(b, y, n, c->layer_norm_eps, true);
    pith__hf_tower_go_to(b, t, "head.mlp.fc1");
    z = pith__hf_activate(b, pith__hf_linear(b, z, n, c->intermediate_size, true));
    pith__hf_tower_go_to(b, t, "head.mlp.fc2");
    z = pith__hf_linear(b, z, c->intermediate_size, n, true);
    return pith__hf_row(b, PITH_HF_PUT(b, "Add", y, z), 0);
}

static void siglip_build_vision(pith__hf_builder *b, pith__hf_tower *t) {
    pith__hf_tower_begin(b, t, &siglip_vision);
    const pith__hf_config *c = b->config;
    const int64_t n = c->hidden_size;
    int64_t patches;
    pith__value *pixels = pith__hf_pixels(b, t->channels, t->image);
    pith__value *x = pith__hf_patches(b, t, pixels, "embeddings.patch_embedding", true, &patches);
    pith__hf_tower_go_to(b, t, "embeddings.position_embedding");
    pith__value *table = pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ patches, n });
    x = PITH_HF_PUT(b, "Add", x, pith__hf_widen(b, table, table));
    x = pith__hf_tower_layers(b, t, &pith__hf_clip_names, x, NULL, NULL);
    pith__hf_tower_go_to(b, t, "post_layernorm");
    x = pith__hf_norm(b, x, n, c->layer_norm_eps, true);
    pith__hf_output(b, siglip_pool(b, t, x), "image_embeds");
}

pith_status pith__hf_siglip_build(pith__graph *graph, const void *layout,
                                  const pith__hf_config *config, const pith__weights *weights,
                                  const char *weights_name, pith_error *err) {
    const pith__hf_towers *l = layout;
    pith__hf_builder b;
    pith__hf_tower text, vision;
    PITH_TRY(
        pith__hf_towers_begin(&b, &text, &vision, l, graph, config, weights, weights_name, err));
    if (l->text) siglip_build_text(&b, &text);
    if (l->vision) siglip_build_vision(&b, &vision);
    return b.status;
}
