/* family_clip_vision_model.c - CLIP: the tower for pictures. */
#include "hf/hf_clip.h"
#include "hf/hf_keys.h"

static const pith_hf_towers clip_vision_model_towers = { .text = false, .vision = true };

static const pith_hf_keys clip_vision_model_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "projection_dim image_size patch_size num_channels",
    .ignores = "attention_dropout dropout",
};

const pith_hf_family pith_hf_family_clip_vision_model = { .model_type = "clip_vision_model",
                                                          .build = pith_hf_clip_build,
                                                          .layout = &clip_vision_model_towers,
                                                          .keys = &clip_vision_model_keys };
