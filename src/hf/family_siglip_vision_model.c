/* family_siglip_vision_model.c - SigLIP: the tower for pictures. */
#include "hf/hf_siglip.h"
#include "hf/hf_keys.h"

static const pith_hf_towers siglip_vision_model_towers = { .text = false, .vision = true };

static const pith_hf_keys siglip_vision_model_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "image_size patch_size num_channels",
    .fixed = "vision_use_head=true",
    .ignores = "attention_dropout",
};

const pith_hf_family pith_hf_family_siglip_vision_model = { .model_type = "siglip_vision_model",
                                                            .build = pith_hf_siglip_build,
                                                            .layout = &siglip_vision_model_towers,
                                                            .keys = &siglip_vision_model_keys };
