/* family_eurobert.c - EuroBERT: Llama in both directions. Source: modeling_eurobert of transformers
 * 5, which is the code that lies beside its weights. */
#include "models/architectures/hf_decoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_decoder_layout eurobert_layout = { .theta = 10000, .both_ways = true };

static const pith__hf_keys eurobert_keys = {
    .reads = PITH_HF_ROPE_READS
    "vocab_size=128256 hidden_size=768 intermediate_size=3072 num_hidden_layers=12 "
    "num_attention_heads=12 num_key_value_heads hidden_act=silu "
    "max_position_embeddings=8192 rms_norm_eps=1e-5 head_dim attention_bias=false "
    "mlp_bias=false pad_token_id=128001",
    .ignores = PITH_HF_DECODER_IGNORES "classifier_pooling clf_pooling mask_token",
    .code = "EuroBertModel",
};

const pith__hf_family pith__hf_family_eurobert = { .model_type = "eurobert",
                                                   .build = pith__hf_decoder_build,
                                                   .layout = &eurobert_layout,
                                                   .keys = &eurobert_keys };
