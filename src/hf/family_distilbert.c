/* family_distilbert.c - DistilBERT: BERT without token types. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout distilbert_layout = { .layer = "transformer.layer.",
                                                          .query = "attention.q_lin",
                                                          .key = "attention.k_lin",
                                                          .value = "attention.v_lin",
                                                          .attention_out = "attention.out_lin",
                                                          .attention_norm = "sa_layer_norm",
                                                          .up = "ffn.lin1",
                                                          .down = "ffn.lin2",
                                                          .norm = "output_layer_norm" };

const pith_hf_family pith_hf_family_distilbert = { .model_type = "distilbert",
                                                   .build = pith_hf_encoder_build,
                                                   .layout = &distilbert_layout };
