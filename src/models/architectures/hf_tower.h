/* hf_tower.h - the towers of models of pictures and text: layers that normalise before each block,
 * and rows made of pictures.
 *
 * A layer is x + attention(norm(x)), then x + feed_forward(norm(x)). Sources: modeling_clip,
 * modeling_siglip and modeling_vit of transformers. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_TOWER_H
#define PITH_MODELS_ARCHITECTURES_HF_TOWER_H

#include "models/architectures/hf_attention.h"

/* The names of a layer's tensors; each names a pair of .weight and .bias. */
typedef struct pith__hf_tower_names {
    const char *layer; /* before the number: "encoder.layers." */
    const char *query, *key, *value, *attention_out, *norm_before, *norm_after, *up, *down;
} pith__hf_tower_names;

/* Which towers a checkpoint has: both, with a section of config.json each, or one, which
 * config.json describes. */
typedef struct pith__hf_towers {
    bool text, vision;
} pith__hf_towers;

extern const pith__hf_tower_names pith__hf_clip_names; /* of CLIP and SigLIP */

/* Sizes that a section of config.json may leave out, because they are the defaults of its class. */
typedef struct pith__hf_tower_defaults {
    int64_t hidden, inner, layers, heads, positions, vocabulary, image, patch;
    double eps;
    const char *act;
} pith__hf_tower_defaults;

/* A tower while it is built. */
typedef struct pith__hf_tower {
    pith__hf_config config;
    const char *section; /* of config.json: "text_config."; "": the file itself */
    const char *prefix;  /* of its tensors: "text_model." */
    int64_t image, patch, channels;
    bool query_bias; /* query, key and value have biases */
} pith__hf_tower;

/* Begins a graph of towers, which CLIP and SigLIP store alike; *text and *vision get their sections
 * and prefixes. */
pith_status pith__hf_towers_begin(pith__hf_builder *b, pith__hf_tower *text, pith__hf_tower *vision,
                                  const pith__hf_towers *towers, pith__graph *graph,
                                  const pith__hf_config *config, const pith__weights *weights,
                                  const char *weights_name, pith_error *err);
/* Reads the sizes of a tower, and makes it what the builder works on: b->config is its config from
 * now on. */
void pith__hf_tower_begin(pith__hf_builder *b, pith__hf_tower *t,
                          const pith__hf_tower_defaults *defaults);
/* A setting of the tower's section. */
int64_t pith__hf_tower_int(pith__hf_builder *b, const pith__hf_tower *t, const char *key,
                           int64_t fallback, int64_t min, int64_t max);
/* Goes to a tensor of the tower: prefix and name. */
void pith__hf_tower_go_to(pith__hf_builder *b, const pith__hf_tower *t, const char *name);

/* All layers. bias [.., sequence, sequence] and padding are added to the scores; NULL: none. */
pith__value *pith__hf_tower_layers(pith__hf_builder *b, const pith__hf_tower *t,
                                   const pith__hf_tower_names *names, pith__value *x,
                                   pith__value *bias, pith__value *padding);

/* The input pixel_values [batch, channels, image, image] f32; image 0: of any height and width. */
pith__value *pith__hf_pixels(pith__hf_builder *b, int64_t channels, int64_t image);
/* A convolution with the weights at the place: [out, in, kernel, kernel]. */
pith__value *pith__hf_convolve(pith__hf_builder *b, pith__value *x, int64_t in, int64_t out,
                               int64_t kernel, int64_t stride, int64_t pad, bool has_bias);
/* Rows [batch, patches, hidden] of the tower's pictures, by the convolution at this name; *count:
 * patches. */
pith__value *pith__hf_patches(pith__hf_builder *b, const pith__hf_tower *t, pith__value *pixels,
                              const char *name, bool has_bias, int64_t *count);
/* x [batch, n, hidden] behind the learned row [hidden] `first`. */
pith__value *pith__hf_put_first(pith__hf_builder *b, pith__value *x, pith__value *first);
/* Row `index` (negative: from the end) of x [batch, n, hidden], as [batch, hidden]. */
pith__value *pith__hf_row(pith__hf_builder *b, pith__value *x, int64_t index);

/* Makes x an output of the graph. A value may have one name only. */
void pith__hf_output(pith__hf_builder *b, pith__value *x, const char *name);

#endif
