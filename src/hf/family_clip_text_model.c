/* family_clip_text_model.c - CLIP: the tower for texts. */
#include "hf/hf_clip.h"
#include "hf/hf_keys.h"

static const pith_hf_towers clip_text_model_towers = { .text = true, .vision = false };

static const pith_hf_keys clip_text_model_keys = {
    .reads = "hidden_size intermediate_size num_hidden_layers num_attention_heads layer_norm_eps hidden_act "
             "vocab_size max_position_embeddings projection_dim",
    .ignores = "attention_dropout dropout",
};

const pith_hf_family pith_hf_family_clip_text_model = { .model_type = "clip_text_model",
                                                        .build = pith_hf_clip_build,
                                                        .layout = &clip_text_model_towers,
                                                        .keys = &clip_text_model_keys };
