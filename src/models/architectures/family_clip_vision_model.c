/* family_clip_vision_model.c - CLIP: the tower for pictures. */
#include "models/architectures/hf_clip.h"

static const pith_hf_towers clip_vision_model_towers = { .text = false, .vision = true };

const pith_hf_family pith_hf_family_clip_vision_model = { .model_type = "clip_vision_model",
                                                          .build = pith_hf_clip_build,
                                                          .layout = &clip_vision_model_towers,
                                                          .keys = &pith_hf_clip_vision_keys };
