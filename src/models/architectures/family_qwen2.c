/* family_qwen2.c - Qwen2: Qwen3 without norms of heads, with biases of query, key and value.
 * Source: modeling_qwen2 of transformers. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout qwen2_layout = { .theta = 10000, .projection_bias = true };

static const pith__hf_keys qwen2_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=151936 hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 "
    "num_attention_heads=32 num_key_value_heads=32 hidden_act=silu max_position_embeddings=32768 "
    "use_sliding_window=false sliding_window=4096 max_window_layers=28 attention_bias "
    "use_bidirectional_attention",
    .ignores = PITH_HF_DECODER_IGNORES "use_mrope",
    .two_ways = "modeling_qwen.Qwen2Model",
};

const pith__hf_family pith__hf_family_qwen2 = { .model_type = "qwen2",
                                                .build = pith__hf_decoder_build,
                                                .layout = &qwen2_layout,
                                                .keys = &qwen2_keys };
