/* family_siglip.c - SigLIP: both towers. */
#include "models/architectures/hf_keys.h"
#include "models/architectures/hf_siglip.h"

static const pith__hf_towers siglip_towers = { .text = true, .vision = true };

static const pith__hf_keys siglip_keys = {
    .text = &pith__hf_siglip_text_keys,
    .vision = &pith__hf_siglip_vision_keys,
    .reads = "text_config vision_config",
    .ignores = "logit_scale_init_value",
};

const pith__hf_family pith__hf_family_siglip = { .model_type = "siglip",
                                                 .build = pith__hf_siglip_build,
                                                 .layout = &siglip_towers,
                                                 .keys = &siglip_keys };
