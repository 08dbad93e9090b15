/* family_mpnet.c - MPNet: RoBERTa with relative positions. */
#include "hf/hf_encoder.h"

static const pith_hf_encoder_layout mpnet_layout = { .layer = "encoder.layer.",
                                                     .query = "attention.attn.q",
                                                     .key = "attention.attn.k",
                                                     .value = "attention.attn.v",
                                                     .attention_out = "attention.attn.o",
                                                     .attention_norm = "attention.LayerNorm",
                                                     .up = "intermediate.dense",
                                                     .down = "output.dense",
                                                     .norm = "output.LayerNorm",
                                                     .padded_positions = true,
                                                     .relative_bias = true };

const pith_hf_family pith_hf_family_mpnet = { .model_type = "mpnet",
                                              .build = pith_hf_encoder_build,
                                              .layout = &mpnet_layout };
