/* family_t5.c - the encoder of T5: sentence-t5, GTR, Instructor. */
#include "models/architectures/hf_t5.h"

static const pith__hf_t5_layout t5_layout = { .bias_in_each = false };

static const pith__hf_keys t5_keys = {
    .reads = PITH_HF_T5_READS
    "vocab_size=32128 d_ff=2048 num_layers=6 num_heads=8 feed_forward_proj=relu",
    .ignores = PITH_HF_T5_IGNORES
};

const pith__hf_family pith__hf_family_t5 = {
    .model_type = "t5", .build = pith__hf_t5_build, .layout = &t5_layout, .keys = &t5_keys
};
