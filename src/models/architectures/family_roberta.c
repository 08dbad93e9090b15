/* family_roberta.c - RoBERTa: BERT whose positions count real tokens. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout roberta_layout = { PITH_HF_BERT_NAMES, .relative_keys = true,
                                                        .has_types = true,
                                                        .padded_positions = true };

static const pith__hf_keys roberta_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=50265 pad_token_id=1",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_roberta = { .model_type = "roberta",
                                                  .build = pith__hf_encoder_build,
                                                  .layout = &roberta_layout,
                                                  .keys = &roberta_keys };
