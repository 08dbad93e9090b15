/* family_roberta.c - RoBERTa: BERT whose positions count real tokens. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout roberta_layout = { PITH_HF_BERT_NAMES, .relative_keys = true, .has_types = true,
                                                       .padded_positions = true };

const pith_hf_family pith_hf_family_roberta = { .model_type = "roberta",
                                                .build = pith_hf_encoder_build,
                                                .layout = &roberta_layout };
