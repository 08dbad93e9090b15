/* family_gte.c - the same network under the name that arctic-embed-m v2 gives it. */
#include "models/architectures/hf_gte.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_keys gte_keys = {
    .reads = PITH_HF_ROPE_READS
    "hidden_size=768 num_hidden_layers=12 num_attention_heads=12 intermediate_size=3072 "
    "hidden_act=gelu layer_norm_eps=1e-12 type_vocab_size=1 "
    "vocab_size=250048 max_position_embeddings=8192 pad_token_id=1 "
    "layer_norm_type logn_attention_clip1 logn_attention_scale pack_qkv position_embedding_type",
    .ignores = PITH_HF_BERT_IGNORES "unpad_inputs use_memory_efficient_attention",
    .code = "NewModel GteModel NewForSequenceClassification GteForSequenceClassification",
};

const pith__hf_family pith__hf_family_gte = { .model_type = "gte",
                                              .build = pith__hf_gte_build,
                                              .keys = &gte_keys };
