/* hf_t5.h - the encoders of T5, mT5 and UMT5. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_T5_H
#define PITH_MODELS_ARCHITECTURES_HF_T5_H

#include "models/architectures/hf_attention.h"
#include "models/architectures/hf_keys.h"

typedef struct pith__hf_t5_layout {
    bool bias_in_each; /* layers have a bias by distance each; else the first one's serves all */
} pith__hf_t5_layout;

/* For pith__hf_family.build; layout is a pith__hf_t5_layout. A decoder in the same file is left
 * alone. */
pith_status pith__hf_t5_build(pith__graph *graph, const void *layout, const pith__hf_config *config,
                              const pith__weights *weights, const char *weights_name,
                              pith_error *err);

/* What the three read, but for their sizes. */
#define PITH_HF_T5_READS                                                                           \
    "d_model=512 d_kv=64 relative_attention_num_buckets=32 relative_attention_max_distance=128 "   \
    "layer_norm_epsilon=1e-6 dense_act_fn is_gated_act "
#define PITH_HF_T5_IGNORES                                                                         \
    "classifier_dropout dropout_rate n_positions num_decoder_layers output_past "                  \
    "scalable_attention "                                                                          \
    "scale_decoder_outputs tokenizer_class "

#endif
