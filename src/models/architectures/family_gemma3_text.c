/* family_gemma3_text.c - the text part of Gemma 3, and EmbeddingGemma, which attends in both
 * directions. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout gemma3_layout = { .head_size = 256,
                                                       .theta = 1000000,
                                                       .head_norms = true,
                                                       .gemma = true,
                                                       .norms_after = true,
                                                       .local_base = true,
                                                       .windows = true,
                                                       .pattern = 6,
                                                       .activation = "hidden_activation" };

static const pith__hf_keys gemma3_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=262208 hidden_size=2304 intermediate_size=9216 num_hidden_layers=26 "
    "num_attention_heads=8 num_key_value_heads=4 hidden_activation=gelu_pytorch_tanh "
    "max_position_embeddings=131072 sliding_window=4096 sliding_window_pattern "
    "_sliding_window_pattern query_pre_attn_scalar=256 rope_local_base_freq attention_bias=false "
    "use_bidirectional_attention=false final_logit_softcapping",
    .fixed = "attn_logit_softcapping=null",
    .ignores = PITH_HF_DECODER_IGNORES "hidden_act cache_implementation",
};

const pith__hf_family pith__hf_family_gemma3_text = { .model_type = "gemma3_text",
                                                      .build = pith__hf_decoder_build,
                                                      .layout = &gemma3_layout,
                                                      .keys = &gemma3_keys };
