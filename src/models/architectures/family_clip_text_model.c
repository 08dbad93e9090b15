/* family_clip_text_model.c - CLIP: the tower for texts. */
#include "models/architectures/hf_clip.h"

static const pith__hf_towers clip_text_model_towers = { .text = true, .vision = false };

const pith__hf_family pith__hf_family_clip_text_model = { .model_type = "clip_text_model",
                                                          .build = pith__hf_clip_build,
                                                          .layout = &clip_text_model_towers,
                                                          .keys = &pith__hf_clip_text_keys };
