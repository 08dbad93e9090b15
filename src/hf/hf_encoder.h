/* hf_encoder.h - the BERT family: encoders that normalise after each block. */
#ifndef PITH_HF_HF_ENCODER_H
#define PITH_HF_HF_ENCODER_H

#include "graph/graph.h"
#include "hf/hf_config.h"
#include "hf/safetensors.h"

/* The names a family gives to its tensors, and where it differs from BERT. Names of a layer follow `layer`; each names
 * a pair of .weight and .bias. */
typedef struct pith_hf_family {
    const char *model_type, *layer, *query, *key, *value, *attention_out, *attention_norm, *up, *down, *norm;
    bool type_input; /* token_type_ids is an input; else every token has type 0, where there are types */
    bool has_types;
    bool padded_positions; /* position of the i-th token that is no padding: pad_token_id + 1 + i */
    bool relative_bias;
} pith_hf_family;

extern const pith_hf_family pith_hf_families[];
extern const size_t pith_hf_family_count;

/* Adds inputs, nodes and the output last_hidden_state to an empty graph. weights_name is for messages. */
pith_status pith_hf_encoder_build(pith_graph *graph, const pith_hf_family *family, const pith_hf_config *config,
                                  const pith_weights *weights, const char *weights_name, pith_error *err);

#endif
