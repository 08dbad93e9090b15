/* hf_tower.c - see hf_tower.h. */
#include "models/architectures/hf_tower.h"

#include <math.h>
#include <string.h>

const pith__hf_tower_names pith__hf_clip_names = { .layer = "encoder.layers.",
                                                   .query = "self_attn.q_proj",
                                                   .key = "self_attn.k_proj",
                                                   .value = "self_attn.v_proj",
                                                   .attention_out = "self_attn.out_proj",
                                                   .norm_before = "layer_norm1",
                                                   .norm_after = "layer_norm2",
                                                   .up = "mlp.fc1",
                                                   .down = "mlp.fc2" };

/* ---- settings ---- */

static const char *tower_key(pith__hf_builder *b, const pith__hf_tower *t, const char *key) {
    pith_str path = pith__arena_printf(b->graph->arena, "%s%s", t->section, key);
    if (!path.data) pith__hf_made(b, NULL);
    return path.data ? path.data : key;
}

int64_t pith__hf_tower_int(pith__hf_builder *b, const pith__hf_tower *t, const char *key,
                           int64_t fallback, int64_t min, int64_t max) {
    return pith__hf_int(b, tower_key(b, t, key), fallback, min, max);
}

/* A checkpoint with both towers has a section of config.json for each; one with a single tower has
 * its keys at the top. */
pith_status pith__hf_towers_begin(pith__hf_builder *b, pith__hf_tower *text, pith__hf_tower *vision,
                                  const pith__hf_towers *towers, pith__graph *graph,
                                  const pith__hf_config *config, const pith__weights *weights,
                                  const char *weights_name, pith_error *err) {
    const bool both = towers->text && towers->vision;
    const char *anchor = towers->text ? "text_model.embeddings.token_embedding.weight"
                                      : "vision_model.embeddings.patch_embedding.weight";
    *text = (pith__hf_tower){ .section = both ? "text_config." : "",
                              .prefix = "text_model.",
                              .query_bias = true };
    *vision = (pith__hf_tower){ .section = both ? "vision_config." : "",
                                .prefix = "vision_model.",
                                .query_bias = true };
    return pith__hf_begin(b, graph, config, weights, weights_name, anchor, err);
}

/* Settings of the tower's section with the defaults of its class in transformers. From here on the
 * builder's config is that of the tower. */
void pith__hf_tower_begin(pith__hf_builder *b, pith__hf_tower *t,
                          const pith__hf_tower_defaults *d) {
    enum { SIZE_MOST = 1 << 20, IMAGE_MOST = 1 << 14 };
    t->config = *b->config;
    pith__hf_config *c = &t->config;
    c->hidden_size = pith__hf_tower_int(b, t, "hidden_size", d->hidden, 1, SIZE_MOST);
    c->intermediate_size = pith__hf_tower_int(b, t, "intermediate_size", d->inner, 1, 1 << 24);
    c->layers = pith__hf_tower_int(b, t, "num_hidden_layers", d->layers, 1, 1 << 12);
    c->heads = pith__hf_tower_int(b, t, "num_attention_heads", d->heads, 1, c->hidden_size);
    if (d->positions)
        c->positions =
            pith__hf_tower_int(b, t, "max_position_embeddings", d->positions, 1, SIZE_MOST);
    if (d->vocabulary)
        c->vocab_size = pith__hf_tower_int(b, t, "vocab_size", d->vocabulary, 1, INT32_MAX);
    c->layer_norm_eps = pith__hf_real(b, tower_key(b, t, "layer_norm_eps"), d->eps);
    c->hidden_act = pith__hf_string(b, tower_key(b, t, "hidden_act"), d->act);
    if (d->image) {
        t->image = pith__hf_tower_int(b, t, "image_size", d->image, 1, IMAGE_MOST);
        t->patch = pith__hf_tower_int(b, t, "patch_size", d->patch, 1, t->image);
        t->channels = pith__hf_tower_int(b, t, "num_channels", 3, 3, 3);
    }
    b->config = c;
    pith__hf_check_heads(b);
}

void pith__hf_tower_go_to(pith__hf_builder *b, const pith__hf_tower *t, const char *name) {
    pith__hf_set_layer(b, pith__str_of(t->prefix));
    pith__hf_in_layer(b, name);
}

/* ---- layers ---- */

/* CLIPAttention, without anything that turns or groups heads. */
static pith__value *tower_attend(pith__hf_builder *b, const pith__hf_tower *t,
                                 const pith__hf_tower_names *f, pith__value *x,
                                 pith__value *const *biases) {
    const int64_t n = b->config->hidden_size, heads = b->config->heads, size = n / heads;
    const char *names[] = { f->query, f->key, f->value };
    pith__value *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = pith__hf_heads(b, pith__hf_linear_in_layer(b, names[i], x, n, n, t->query_bias),
                                  heads, size);
    pith__hf_in_layer(b, "attention");
    pith__value *scores = pith__hf_scores(b, parts[0], parts[1], 1 / sqrt((double)size));
    return pith__hf_linear_in_layer(b, f->attention_out,
                                    pith__hf_attend(b, scores, biases, 2, parts[2], n), n, n, true);
}

/* Norms stand before the parts (pre-norm), in both towers of CLIP, SigLIP and ViT. */
pith__value *pith__hf_tower_layers(pith__hf_builder *b, const pith__hf_tower *t,
                                   const pith__hf_tower_names *f, pith__value *x, pith__value *bias,
                                   pith__value *padding) {
    const pith__hf_config *c = b->config;
    pith__value *biases[] = { bias, padding };
    for (int64_t i = 0; i < c->layers; i++) {
        if (b->status) break;
        pith__hf_set_layer(
            b, pith__arena_printf(b->graph->arena, "%s%s%lld.", t->prefix, f->layer, (long long)i));
        pith__value *y =
            tower_attend(b, t, f, pith__hf_norm_in_layer(b, f->norm_before, x), biases);
        x = PITH_HF_PUT(b, "Add", y, x);
        y = pith__hf_linear_in_layer(b, f->up, pith__hf_norm_in_layer(b, f->norm_after, x),
                                     c->hidden_size, c->intermediate_size, true);
        y = pith__hf_linear_in_layer(b, f->down, pith__hf_activate(b, y), c->intermediate_size,
                                     c->hidden_size, true);
        x = PITH_HF_PUT(b, "Add", y, x);
    }
    return x;
}

/* ---- pictures ---- */

/* A tower of patches takes pictures of one size; a ResNet takes any. */
pith__value *pith__hf_pixels(pith__hf_builder *b, int64_t channels, int64_t image) {
    pith__dims *table = b->graph->dims;
    const pith__dim dims[] = {
        pith__dim_symbol(table, PITH_STR("batch")), pith__dim_of(channels),
        image ? pith__dim_of(image) : pith__dim_symbol(table, PITH_STR("height")),
        image ? pith__dim_of(image) : pith__dim_symbol(table, PITH_STR("width"))
    };
    pith__value *value =
        b->status ? NULL
                  : pith__graph_add_value(b->graph, PITH_STR("pixel_values"), PITH_VALUE_INPUT);
    for (int i = 0; i < 4; i++)
        if (!value || dims[i] == PITH_DIM_UNKNOWN) return pith__hf_made(b, NULL);
    pith__type_set(&value->type, PITH_F32, 4, dims);
    value->fixed = image > 0;
    b->graph->inputs[b->graph->input_count++] = value;
    return value;
}

/* torch.nn.Conv2d with equal strides and padding on all sides. */
pith__value *pith__hf_convolve(pith__hf_builder *b, pith__value *x, int64_t in, int64_t out,
                               int64_t kernel, int64_t stride, int64_t pad, bool has_bias) {
    const int64_t shape[] = { kernel, kernel }, strides[] = { stride, stride },
                  pads[] = { pad, pad, pad, pad };
    pith__value *stored =
        pith__hf_tensor(b, ".weight", NULL, 4, (int64_t[]){ out, in, kernel, kernel });
    pith__value *inputs[] = { x, pith__hf_widen(b, stored, stored),
                              has_bias ? pith__hf_vector(b, ".bias", NULL, out) : NULL };
    pith__value *y = pith__hf_put(b, "Conv", inputs, has_bias ? 3 : 2);
    if (y && (pith__node_set_ints(y->producer, "kernel_shape", shape, 2) ||
              pith__node_set_ints(y->producer, "strides", strides, 2) ||
              pith__node_set_ints(y->producer, "pads", pads, 4)))
        return pith__hf_made(b, NULL);
    return y;
}

/* A convolution whose stride is its kernel: one row per patch, [batch, patches, hidden]. */
pith__value *pith__hf_patches(pith__hf_builder *b, const pith__hf_tower *t, pith__value *pixels,
                              const char *name, bool has_bias, int64_t *count) {
    const int64_t n = b->config->hidden_size, side = t->image / t->patch;
    *count = side * side;
    pith__hf_tower_go_to(b, t, name);
    pith__value *map =
        pith__hf_convolve(b, pixels, t->channels, n, t->patch, t->patch, 0, has_bias);
    pith__value *rows = pith__hf_reshape(b, map, (int64_t[]){ 0, n, *count }, 3);
    return pith__hf_transpose(b, rows, (int64_t[]){ 0, 2, 1 }, 3);
}

/* The class token, repeated for each picture, in front of the patches. */
pith__value *pith__hf_put_first(pith__hf_builder *b, pith__value *x, pith__value *first) {
    const int64_t n = b->config->hidden_size;
    pith__value *batch = PITH_HF_PUT(b, "Shape", x);
    pith__hf_set_int(b, batch, "start", 0);
    pith__hf_set_int(b, batch, "end", 1);
    pith__value *shape = pith__hf_join(b, batch, pith__hf_i64s(b, (int64_t[]){ 1, n }, 2), 0);
    pith__value *rows =
        PITH_HF_PUT(b, "Expand", pith__hf_reshape(b, first, (int64_t[]){ 1, 1, n }, 3), shape);
    return pith__hf_join(b, rows, x, 1);
}

pith__value *pith__hf_row(pith__hf_builder *b, pith__value *x, int64_t index) {
    pith__value *row = PITH_HF_PUT(b, "Gather", x, pith__hf_i64_scalar(b, index));
    pith__hf_set_int(b, row, "axis", 1);
    return row;
}

/* One more output, besides last_hidden_state or in its place. */
void pith__hf_output(pith__hf_builder *b, pith__value *x, const char *name) {
    pith__graph *graph = b->graph;
    pith__value **outputs =
        b->status ? NULL
                  : pith__arena_array(graph->arena, graph->output_count + 1, sizeof *outputs);
    if (!outputs) {
        pith__hf_made(b, NULL);
        return;
    }
    memcpy(outputs, graph->outputs, graph->output_count * sizeof *outputs);
    outputs[graph->output_count++] = x;
    graph->outputs = outputs;
    x->name = pith__str_of(name);
    x->output_uses++;
}
