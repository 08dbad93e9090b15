/* family_resnet.c - ResNet. Source: modeling_resnet of transformers. */
#include "models/architectures/hf_keys.h"
#include "models/architectures/hf_tower.h"

enum { RESNET_STAGES = 8, RESNET_WIDTH = 1 << 16, RESNET_REDUCTION = 4 };
#define RESNET_EPS 1e-5 /* of torch.nn.BatchNorm2d */

typedef struct resnet {
    int64_t stem, widths[RESNET_STAGES], depths[RESNET_STAGES], stages;
    bool bottleneck, first_halves, early_stride;
} resnet;

/* "hidden_sizes" and "depths": lists of as many numbers. */
static int64_t resnet_list(pith__hf_builder *b, const char *key, const int64_t *fallback,
                           int64_t *items) {
    int64_t count = pith__hf_ints(b, key, RESNET_STAGES, items);
    if (count) return count;
    for (int i = 0; i < 4; i++) items[i] = fallback[i];
    return 4;
}

/* act(norm(conv(x))) at a place of the layer. */
static pith__value *resnet_block(pith__hf_builder *b, const char *name, pith__value *x, int64_t in,
                                 int64_t out, int64_t kernel, int64_t stride, bool activated) {
    pith_str layer = b->layer;
    pith__hf_set_layer(
        b, pith__arena_printf(b->graph->arena, PITH_STR_FMT "%s", PITH_STR_ALL(layer), name));
    pith__hf_in_layer(b, "convolution");
    x = pith__hf_convolve(b, x, in, out, kernel, stride, kernel / 2, false);
    pith__hf_in_layer(b, "normalization");
    pith__value *inputs[] = { x, pith__hf_vector(b, ".weight", NULL, out),
                              pith__hf_vector(b, ".bias", NULL, out),
                              pith__hf_vector(b, ".running_mean", NULL, out),
                              pith__hf_vector(b, ".running_var", NULL, out) };
    x = pith__hf_put(b, "BatchNormalization", inputs, 5);
    if (x && pith__node_set_float(x->producer, "epsilon", (float)RESNET_EPS))
        pith__hf_made(b, NULL);
    if (activated) x = pith__hf_activate(b, x);
    pith__hf_set_layer(b, layer);
    return x;
}

/* A layer of a stage: two or three convolutions beside a shortcut. */
static pith__value *resnet_layer(pith__hf_builder *b, const resnet *r, pith__value *x, int64_t in,
                                 int64_t out, int64_t stride) {
    pith__value *residual = x;
    if (in != out || stride != 1)
        residual = resnet_block(b, "shortcut.", x, in, out, 1, stride, false);
    if (r->bottleneck) {
        const int64_t inner = out / RESNET_REDUCTION;
        x = resnet_block(b, "layer.0.", x, in, inner, 1, r->early_stride ? stride : 1, true);
        x = resnet_block(b, "layer.1.", x, inner, inner, 3, r->early_stride ? 1 : stride, true);
        x = resnet_block(b, "layer.2.", x, inner, out, 1, 1, false);
    } else {
        x = resnet_block(b, "layer.0.", x, in, out, 3, stride, true);
        x = resnet_block(b, "layer.1.", x, out, out, 3, 1, false);
    }
    return pith__hf_activate(b, PITH_HF_PUT(b, "Add", x, residual));
}

static void resnet_read(pith__hf_builder *b, resnet *r) {
    /* of ResNetConfig */
    static const int64_t widths[] = { 256, 512, 1024, 2048 }, depths[] = { 3, 4, 6, 3 };
    r->stem = pith__hf_int(b, "embedding_size", 64, 1, RESNET_WIDTH);
    r->stages = resnet_list(b, "hidden_sizes", widths, r->widths);
    if (resnet_list(b, "depths", depths, r->depths) != r->stages)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: hidden_sizes and depths must have as many entries");
    for (int64_t i = 0; i < r->stages; i++) {
        pith__hf_check_size(b, "hidden_sizes", r->widths[i], RESNET_WIDTH);
        pith__hf_check_size(b, "depths", r->depths[i], 1 << 10);
    }
    pith_str type = pith__hf_string(b, "layer_type", "bottleneck");
    r->bottleneck = pith__str_is(type, "bottleneck");
    if (!r->bottleneck) pith__hf_want_string(b, "layer_type", "basic");
    r->first_halves = pith__hf_bool(b, "downsample_in_first_stage", false);
    r->early_stride = pith__hf_bool(b, "downsample_in_bottleneck", false);
}

static pith__value *resnet_pool(pith__hf_builder *b, pith__value *x) {
    const int64_t kernel[] = { 3, 3 }, strides[] = { 2, 2 }, pads[] = { 1, 1, 1, 1 };
    pith__value *y = PITH_HF_PUT(b, "MaxPool", x);
    if (y && (pith__node_set_ints(y->producer, "kernel_shape", kernel, 2) ||
              pith__node_set_ints(y->producer, "strides", strides, 2) ||
              pith__node_set_ints(y->producer, "pads", pads, 4)))
        return pith__hf_made(b, NULL);
    return y;
}

static pith_status resnet_build(pith__graph *graph, const void *layout,
                                const pith__hf_config *config, const pith__weights *weights,
                                const char *weights_name, pith_error *err) {
    (void)layout;
    pith__hf_builder b;
    resnet r = { 0 };
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name,
                            "embedder.embedder.convolution.weight", err));
    pith__hf_config own = *config;
    own.hidden_act = pith__hf_string(&b, "hidden_act", "relu");
    b.config = &own;
    resnet_read(&b, &r);
    if (b.status) return b.status;
    pith__value *x = pith__hf_pixels(&b, pith__hf_int(&b, "num_channels", 3, 3, 3), 0);
    x = resnet_block(&b, "embedder.embedder.", x, 3, r.stem, 7, 2, true);
    x = resnet_pool(&b, x);
    for (int64_t s = 0, in = r.stem; s < r.stages && !b.status; in = r.widths[s++])
        for (int64_t i = 0; i < r.depths[s] && !b.status; i++) {
            pith__hf_set_layer(&b,
                               pith__arena_printf(graph->arena, "encoder.stages.%lld.layers.%lld.",
                                                  (long long)s, (long long)i));
            bool halves = i == 0 && (s > 0 || r.first_halves);
            x = resnet_layer(&b, &r, x, i ? r.widths[s] : in, r.widths[s], halves ? 2 : 1);
        }
    pith__hf_go_to(&b, "pooler");
    pith__value *mean = PITH_HF_PUT(&b, "GlobalAveragePool", x);
    pith__hf_output(&b, pith__hf_reshape(&b, mean, (int64_t[]){ 0, -1 }, 2), "pooler_output");
    return b.status;
}

static const pith__hf_keys resnet_keys = {
    .reads = "num_channels embedding_size hidden_sizes depths layer_type hidden_act "
             "downsample_in_first_stage "
             "downsample_in_bottleneck",
    .ignores = "out_features out_indices stage_names",
};

const pith__hf_family pith__hf_family_resnet = { .model_type = "resnet",
                                                 .build = resnet_build,
                                                 .keys = &resnet_keys };
