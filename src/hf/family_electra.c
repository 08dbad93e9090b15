/* family_electra.c - ELECTRA: BERT with tables of embedding_size. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout electra_layout = { PITH_HF_BERT_NAMES, .projection = "embeddings_project",
                                                       .relative_keys = true, .type_input = true, .has_types = true };

const pith_hf_family pith_hf_family_electra = { .model_type = "electra",
                                                .build = pith_hf_encoder_build,
                                                .layout = &electra_layout };
