/* family_xlm_roberta.c - XLM-RoBERTa: RoBERTa. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout xlm_roberta_layout = { PITH_HF_BERT_NAMES, .relative_keys = true, .has_types = true,
                                                           .padded_positions = true };

const pith_hf_family pith_hf_family_xlm_roberta = { .model_type = "xlm-roberta",
                                                    .build = pith_hf_encoder_build,
                                                    .layout = &xlm_roberta_layout };
