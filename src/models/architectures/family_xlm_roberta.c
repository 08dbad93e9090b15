/* family_xlm_roberta.c - XLM-RoBERTa: RoBERTa. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout xlm_roberta_layout = {
    PITH_HF_BERT_NAMES, .relative_keys = true, .has_types = true, .padded_positions = true
};

static const pith__hf_keys xlm_roberta_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=30522 pad_token_id=1",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_xlm_roberta = { .model_type = "xlm-roberta",
                                                      .build = pith__hf_encoder_build,
                                                      .layout = &xlm_roberta_layout,
                                                      .keys = &xlm_roberta_keys };
