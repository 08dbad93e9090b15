/* family_mt5.c - the encoder of mT5, which is T5's. */
#include "models/architectures/hf_t5.h"

static const pith__hf_t5_layout mt5_layout = { .bias_in_each = false };

static const pith__hf_keys mt5_keys = {
    .reads = PITH_HF_T5_READS
    "vocab_size=250112 d_ff=1024 num_layers=8 num_heads=6 feed_forward_proj=gated-gelu",
    .ignores = PITH_HF_T5_IGNORES
};

const pith__hf_family pith__hf_family_mt5 = {
    .model_type = "mt5", .build = pith__hf_t5_build, .layout = &mt5_layout, .keys = &mt5_keys
};
