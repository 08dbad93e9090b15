/* family_gemma2.c - Gemma 2: norms after blocks too, scores that are capped, every other layer with
 * a window. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout gemma2_layout = { .head_size = 256,
                                                       .theta = 10000,
                                                       .gemma = true,
                                                       .norms_after = true,
                                                       .windows = true,
                                                       .pattern = 2,
                                                       .activation = "hidden_activation" };

static const pith__hf_keys gemma2_keys = {
    .reads = PITH_HF_DECODER_READS
    "vocab_size=256000 hidden_size=2304 intermediate_size=9216 num_hidden_layers=26 "
    "num_attention_heads=8 num_key_value_heads=4 hidden_activation=gelu_pytorch_tanh "
    "max_position_embeddings=8192 sliding_window=4096 query_pre_attn_scalar=256 "
    "attention_bias=false attn_logit_softcapping=50 final_logit_softcapping=30",
    .fixed = "use_bidirectional_attention=false", /* what transformers does then depends on its kind
                                                     of attention */
    .ignores = PITH_HF_DECODER_IGNORES "cache_implementation hidden_act",
};

const pith__hf_family pith__hf_family_gemma2 = { .model_type = "gemma2",
                                                 .build = pith__hf_decoder_build,
                                                 .layout = &gemma2_layout,
                                                 .keys = &gemma2_keys };
