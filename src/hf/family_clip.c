/* family_clip.c - CLIP: both towers. */
#include "hf/hf_clip.h"

static const pith_hf_towers clip_towers = { .text = true, .vision = true };

const pith_hf_family pith_hf_family_clip = { .model_type = "clip",
                                             .build = pith_hf_clip_build,
                                             .layout = &clip_towers };
