/* family_bert.c - BERT. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout bert_layout = { PITH_HF_BERT_NAMES, .relative_keys = true,
                                                     .type_input = true, .has_types = true };

static const pith__hf_keys bert_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=30522",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_bert = { .model_type = "bert",
                                               .build = pith__hf_encoder_build,
                                               .layout = &bert_layout,
                                               .keys = &bert_keys };
