/* family_qwen3.c - Qwen3, of which embedders take the last token. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout qwen3_layout = { .head_size = 128,
                                                      .theta = 10000,
                                                      .head_norms = true };

static const pith__hf_keys qwen3_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=151936 hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
    "num_attention_heads=32 num_key_value_heads=32 hidden_act=silu max_position_embeddings=32768 "
    "use_sliding_window=false sliding_window=4096 max_window_layers=28 attention_bias=false "
    "use_bidirectional_attention",
    .ignores = PITH_HF_DECODER_IGNORES "use_mrope",
};

const pith__hf_family pith__hf_family_qwen3 = { .model_type = "qwen3",
                                                .build = pith__hf_decoder_build,
                                                .layout = &qwen3_layout,
                                                .keys = &qwen3_keys };
