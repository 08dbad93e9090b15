/* family_llama.c - Llama, of which embedders take the last token, or all of them. LLM2Vec's code
 * beside its weights is Llama without the causal mask:
 * McGill-NLP/LLM2Vec-Meta-Llama-3-8B-Instruct-mntp, modeling_llama_encoder.py. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout llama_layout = { .theta = 10000 };

static const pith__hf_keys llama_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=32000 hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 "
    "num_attention_heads=32 num_key_value_heads hidden_act=silu "
    "max_position_embeddings=2048 attention_bias=false mlp_bias=false "
    "use_bidirectional_attention",
    .ignores = PITH_HF_DECODER_IGNORES,
    .two_ways = "modeling_llama_encoder.LlamaEncoderModel",
};

const pith__hf_family pith__hf_family_llama = { .model_type = "llama",
                                                .build = pith__hf_decoder_build,
                                                .layout = &llama_layout,
                                                .keys = &llama_keys };
