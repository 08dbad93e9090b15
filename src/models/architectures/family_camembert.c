/* family_camembert.c - CamemBERT: RoBERTa. */
#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_encoder_layout camembert_layout = { PITH_HF_BERT_NAMES, .relative_keys = true,
                                                          .has_types = true,
                                                          .padded_positions = true };

static const pith__hf_keys camembert_keys = {
    .reads = PITH_HF_BERT_READS "vocab_size=30522 pad_token_id=1",
    .ignores = PITH_HF_BERT_IGNORES,
};

const pith__hf_family pith__hf_family_camembert = { .model_type = "camembert",
                                                    .build = pith__hf_encoder_build,
                                                    .layout = &camembert_layout,
                                                    .keys = &camembert_keys };
