/* family_umt5.c - the encoder of UMT5: T5 whose layers have biases by distance of their own. */
#include "models/architectures/hf_t5.h"

static const pith__hf_t5_layout umt5_layout = { .bias_in_each = true };

static const pith__hf_keys umt5_keys = {
    .reads = PITH_HF_T5_READS
    "vocab_size=250112 d_ff=1024 num_layers=8 num_heads=6 feed_forward_proj=gated-gelu",
    .ignores = PITH_HF_T5_IGNORES
};

const pith__hf_family pith__hf_family_umt5 = {
    .model_type = "umt5", .build = pith__hf_t5_build, .layout = &umt5_layout, .keys = &umt5_keys
};
