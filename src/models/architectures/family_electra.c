/* family_electra.c - ELECTRA: BERT with tables of embedding_size. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout electra_layout = { PITH_HF_BERT_NAMES,
                                                        .projection = "embeddings_project",
                                                        .relative_keys = true, .type_input = true,
                                                        .has_types = true };

static const pith__hf_keys electra_keys = {
    .reads = "vocab_size=30522 embedding_size=128 hidden_size=256 num_hidden_layers=12 "
             "num_attention_heads=4 "
             "intermediate_size=1024 hidden_act=gelu max_position_embeddings=512 type_vocab_size=2 "
             "layer_norm_eps=1e-12 position_embedding_type=absolute",
    .ignores = PITH_HF_BERT_IGNORES
    "summary_activation summary_last_dropout summary_type summary_use_proj",
};

const pith__hf_family pith__hf_family_electra = { .model_type = "electra",
                                                  .build = pith__hf_encoder_build,
                                                  .layout = &electra_layout,
                                                  .keys = &electra_keys };
