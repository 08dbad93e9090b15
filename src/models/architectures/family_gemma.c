/* family_gemma.c - Gemma. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout gemma_layout = { .head_size = 256,
                                                      .theta = 10000,
                                                      .gemma = true };

static const pith__hf_keys gemma_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=256000 hidden_size=3072 intermediate_size=24576 num_hidden_layers=28 "
    "num_attention_heads=16 num_key_value_heads=16 hidden_act=gelu_pytorch_tanh "
    "max_position_embeddings=8192 attention_bias=false",
    .fixed = "use_bidirectional_attention=false", /* what transformers does then depends on its kind
                                                     of attention */
    .ignores = PITH_HF_DECODER_IGNORES "hidden_activation",
};

const pith__hf_family pith__hf_family_gemma = { .model_type = "gemma",
                                                .build = pith__hf_decoder_build,
                                                .layout = &gemma_layout,
                                                .keys = &gemma_keys };
