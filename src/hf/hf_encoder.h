/* hf_encoder.h - the BERT family: encoders that normalise after each block. */
#ifndef PITH_HF_HF_ENCODER_H
#define PITH_HF_HF_ENCODER_H

#include "hf/family.h"

/* The names a family gives to its tensors, and where it differs from BERT. Names of a layer follow `layer`; each names
 * a pair of .weight and .bias. */
typedef struct pith_hf_encoder_layout {
    const char *layer, *query, *key, *value, *attention_out, *attention_norm, *up, *down, *norm;
    bool type_input; /* token_type_ids is an input; else every token has type 0, where there are types */
    bool has_types;
    bool padded_positions; /* position of the i-th token that is no padding: pad_token_id + 1 + i */
    bool relative_bias;    /* one bias per head and distance, added to the scores of every layer */
} pith_hf_encoder_layout;

/* The names of BERT's layers. */
#define PITH_HF_BERT_NAMES                                                                                             \
    .layer = "encoder.layer.", .query = "attention.self.query", .key = "attention.self.key",                           \
    .value = "attention.self.value", .attention_out = "attention.output.dense",                                        \
    .attention_norm = "attention.output.LayerNorm", .up = "intermediate.dense", .down = "output.dense",                \
    .norm = "output.LayerNorm"

/* For pith_hf_family.build; layout is a pith_hf_encoder_layout. */
pith_status pith_hf_encoder_build(pith_graph *graph, const void *layout, const pith_hf_config *config,
                                  const pith_weights *weights, const char *weights_name, pith_error *err);

#endif
