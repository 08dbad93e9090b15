/* family_siglip.c - SigLIP: both towers. */
#include "models/architectures/hf_siglip.h"
#include "models/architectures/hf_keys.h"

static const pith_hf_towers siglip_towers = { .text = true, .vision = true };

static const pith_hf_keys siglip_keys = {
    .text = &pith_hf_siglip_text_keys,
    .vision = &pith_hf_siglip_vision_keys,
    .reads = "text_config vision_config",
    .ignores = "logit_scale_init_value",
};

const pith_hf_family pith_hf_family_siglip = {
    .model_type = "siglip", .build = pith_hf_siglip_build, .layout = &siglip_towers, .keys = &siglip_keys
};
