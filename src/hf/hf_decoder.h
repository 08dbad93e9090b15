/* hf_decoder.h - decoders as encoders: rotary positions, RMS norms before each block, keys that heads share. */
#ifndef PITH_HF_HF_DECODER_H
#define PITH_HF_HF_DECODER_H

#include "hf/hf_attention.h"

/* Where families differ; settings of config.json that all have are read in hf_decoder.c. */
typedef struct pith_hf_decoder_layout {
    int64_t head_size;    /* if config.json has no head_dim; 0: hidden_size / num_attention_heads */
    double theta;         /* if config.json has no rope_theta */
    bool head_norms;      /* q_norm and k_norm over each head */
    bool projection_bias; /* of query, key and value, whatever attention_bias says */
    bool gemma;           /* scaled embeddings, norms after blocks too, gains counted from 1, local rotary base */
} pith_hf_decoder_layout;

/* For pith_hf_family.build; layout is a pith_hf_decoder_layout. */
pith_status pith_hf_decoder_build(pith_graph *graph, const void *layout, const pith_hf_config *config,
                                  const pith_weights *weights, const char *weights_name, pith_error *err);

#endif
