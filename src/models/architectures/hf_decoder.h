/* hf_decoder.h - decoders as encoders: rotary positions, RMS norms before each block, keys that
 * heads share. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_DECODER_H
#define PITH_MODELS_ARCHITECTURES_HF_DECODER_H

#include "models/architectures/hf_attention.h"

/* Where families differ; settings of config.json that all have are read in hf_decoder.c. */
typedef struct pith__hf_decoder_layout {
    int64_t head_size;    /* if config.json has no head_dim; 0: hidden_size /
                               num_attention_heads */
    double theta;         /* if config.json has no rope_theta */
    bool head_norms;      /* q_norm and k_norm over each head */
    bool projection_bias; /* of query, key and value, whatever attention_bias says */
    bool both_ways;       /* not causal */
    bool gemma;           /* scaled embeddings, gains counted from 1 */
    bool norms_after;     /* norms after blocks too, and query_pre_attn_scalar */
    bool local_base;      /* a rotary base of its own for layers with a window */
    bool windows;         /* sliding_window counts without use_sliding_window; … */
    int64_t pattern;      /* … then each pattern-th layer has none, unless layer_types says it; 0:
                               all have it */
    const char *activation; /* the key of the activation; NULL: hidden_act */
} pith__hf_decoder_layout;

/* For pith__hf_family.build; layout is a pith__hf_decoder_layout. */
pith_status pith__hf_decoder_build(pith__graph *graph, const void *layout,
                                   const pith__hf_config *config, const pith__weights *weights,
                                   const char *weights_name, pith_error *err);

#endif
