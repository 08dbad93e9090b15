/* family_siglip.c - SigLIP: both towers. */
#include "hf/hf_siglip.h"

static const pith_hf_towers siglip_towers = { .text = true, .vision = true };

const pith_hf_family pith_hf_family_siglip = { .model_type = "siglip",
                                               .build = pith_hf_siglip_build,
                                               .layout = &siglip_towers };
