/* hf_attention.h - what architectures have between their projections: heads, masks, biases, rotary
 * positions. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_ATTENTION_H
#define PITH_MODELS_ARCHITECTURES_HF_ATTENTION_H

#include "models/architectures/hf_builder.h"

/* ---- heads ---- */

/* Rows [batch, sequence, heads * size] as [batch, heads, sequence, size]. */
pith__value *pith__hf_heads(pith__hf_builder *b, pith__value *rows, int64_t heads, int64_t size);
/* [batch, heads, sequence, size] with each head `times` times in a row, for keys and values that
 * queries share. */
pith__value *pith__hf_repeat_heads(pith__hf_builder *b, pith__value *x, int64_t heads,
                                   int64_t times, int64_t size);
/* scale * q k, [batch, heads, sequence, sequence]. */
pith__value *pith__hf_scores(pith__hf_builder *b, pith__value *q, pith__value *k, double scale);
/* softmax(scores + each bias) v, as rows [batch, sequence, width]. Biases broadcast to the scores;
 * NULL: none. */
pith__value *pith__hf_attend(pith__hf_builder *b, pith__value *scores, pith__value *const *biases,
                             int bias_count, pith__value *v, int64_t width);

/* Which layers attend to a window, by layer_types; NULL if config.json does not have them. */
const bool *pith__hf_local_layers(pith__hf_builder *b);

/* ---- masks and biases: added to scores; what is masked gets the lowest f32 ---- */

/* [batch, 1, 1, sequence] from the attention mask. */
pith__value *pith__hf_padding_bias(pith__hf_builder *b, pith__value *mask);
/* [sequence, sequence]: position of the key minus position of the query, i64. */
pith__value *pith__hf_distances(pith__hf_builder *b, pith__value *ids);
/* [1, 1, sequence, sequence]: keys from `before` places before the query to `after` after it are
 * taken; negative: no limit. NULL if there is no limit at all. */
pith__value *pith__hf_window_bias(pith__hf_builder *b, pith__value *ids, int64_t before,
                                  int64_t after);
/* [1, heads, sequence, sequence]: minus the distance times the slope of the head. Press et al.
 * 2021, "Train Short, Test Long"; where the number of heads is no power of 2, the slopes of the
 * next power are taken two apart. */
pith__value *pith__hf_alibi_bias(pith__hf_builder *b, pith__value *ids, int64_t heads);

/* A learned bias by distance, in buckets: exact near by, logarithmic further off, for each
 * direction. */
typedef struct pith__hf_relative {
    int64_t rows;         /* of the table [rows, heads] at the place; more than there are buckets do
                             nothing */
    int64_t buckets;      /* at least 4 */
    int64_t distance_max; /* from here on all distances are in the last bucket of their direction */
    int64_t reach;        /* the largest distance that occurs; … */
    bool clips;           /* … with this, distances beyond it count as it */
} pith__hf_relative;

/* [1, heads, sequence, sequence]. Raffel et al. 2020, "Exploring the Limits of Transfer Learning",
 * as T5Attention and MPNetEncoder of transformers compute it. */
pith__value *pith__hf_relative_bias(pith__hf_builder *b, pith__value *ids,
                                    const pith__hf_relative *r);

/* For each query and key, the product of x's row and the column of `table` that index [sequence,
 * sequence] says: row i of the result takes columns index[i], [batch, heads, sequence, sequence].
 * x: [batch, heads, sequence, size]. table: [size, columns], or [heads, size, columns] if each head
 * has its own. */
pith__value *pith__hf_pick(pith__hf_builder *b, pith__value *x, int64_t heads, int64_t size,
                           pith__value *table, bool by_head, pith__value *index);

/* ---- rotary positions ---- */

/* Tables [1 or batch, 1, sequence, size] for the first `size` elements of each head. */
typedef struct pith__hf_rotary {
    pith__value *cosine, *sine;
    int64_t size;
    bool interleaved; /* pairs lie side by side; else an element and the one half a size after it
                         are a pair */
} pith__hf_rotary;

typedef struct pith__hf_rotary_settings {
    double theta; /* frequencies are theta^(-2i/size), … */
    int64_t size;
    const char *scaling; /* … changed as this object of config.json says; NULL: not at all */
    double stretch;      /* above 0: for texts longer than `trained` tokens, as "dynamic" says it */
    int64_t trained;
    bool interleaved;
} pith__hf_rotary_settings;

/* Scalings are default, linear, dynamic, llama3, yarn (modeling_rope_utils of transformers) and ntk
 * (Alibaba-NLP/new-impl). mask: the attention mask, from which "dynamic" takes the lengths of the
 * texts. */
pith__hf_rotary pith__hf_rotary_tables(pith__hf_builder *b, pith__value *ids, pith__value *mask,
                                       const pith__hf_rotary_settings *settings);
/* Sets theta and scaling as config.json says them, in the form of transformers 4 (rope_theta,
 * rope_scaling) or 5 (rope_parameters, which may have a part for each type of layer). layer_type:
 * of the layers that are meant, "full_attention". settings->theta is the class's default before the
 * call. */
void pith__hf_rotary_read(pith__hf_builder *b, pith__hf_rotary_settings *settings,
                          const char *layer_type);
/* x [batch, heads, sequence, head_size] turned. */
pith__value *pith__hf_turn(pith__hf_builder *b, const pith__hf_rotary *r, pith__value *x,
                           int64_t heads, int64_t head_size);

#endif
