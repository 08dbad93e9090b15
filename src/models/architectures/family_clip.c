/* family_clip.c - CLIP: both towers. */
#include "models/architectures/hf_clip.h"
#include "models/architectures/hf_keys.h"

static const pith__hf_towers clip_towers = { .text = true, .vision = true };

static const pith__hf_keys clip_keys = {
    .text = &pith__hf_clip_text_keys,
    .vision = &pith__hf_clip_vision_keys,
    .reads = "projection_dim text_config vision_config",
    .ignores = "logit_scale_init_value text_config_dict vision_config_dict",
};

const pith__hf_family pith__hf_family_clip = {
    .model_type = "clip", .build = pith__hf_clip_build, .layout = &clip_towers, .keys = &clip_keys
};
