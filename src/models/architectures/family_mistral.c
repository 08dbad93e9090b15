/* family_mistral.c - Mistral: Llama whose layers all attend to a window. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout mistral_layout = { .theta = 10000, .windows = true };

static const pith__hf_keys mistral_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=32000 hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 "
    "num_attention_heads=32 num_key_value_heads=8 hidden_act=silu "
    "max_position_embeddings=131072 sliding_window=4096 use_bidirectional_attention",
    .ignores = PITH_HF_DECODER_IGNORES,
};

const pith__hf_family pith__hf_family_mistral = { .model_type = "mistral",
                                                  .build = pith__hf_decoder_build,
                                                  .layout = &mistral_layout,
                                                  .keys = &mistral_keys };
