/* family_siglip_text_model.c - SigLIP: the tower for texts. */
#include "hf/hf_siglip.h"
#include "hf/hf_keys.h"

static const pith_hf_towers siglip_text_model_towers = { .text = true, .vision = false };

static const pith_hf_keys siglip_text_model_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "vocab_size max_position_embeddings projection_size",
    .ignores = "attention_dropout",
};

const pith_hf_family pith_hf_family_siglip_text_model = { .model_type = "siglip_text_model",
                                                          .build = pith_hf_siglip_build,
                                                          .layout = &siglip_text_model_towers,
                                                          .keys = &siglip_text_model_keys };
