/* family_clip_vision_model.c - CLIP: the tower for pictures. */
#include "models/architectures/hf_clip.h"

static const pith__hf_towers clip_vision_model_towers = { .text = false, .vision = true };

const pith__hf_family pith__hf_family_clip_vision_model = { .model_type = "clip_vision_model",
                                                            .build = pith__hf_clip_build,
                                                            .layout = &clip_vision_model_towers,
                                                            .keys = &pith__hf_clip_vision_keys };
