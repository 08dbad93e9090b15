/* family_camembert.c - CamemBERT: RoBERTa. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout camembert_layout = { PITH_HF_BERT_NAMES, .relative_keys = true, .has_types = true,
                                                         .padded_positions = true };

const pith_hf_family pith_hf_family_camembert = { .model_type = "camembert",
                                                  .build = pith_hf_encoder_build,
                                                  .layout = &camembert_layout };
