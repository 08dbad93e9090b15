/* family_siglip_vision_model.c - SigLIP: the tower for pictures. */
#include "models/architectures/hf_siglip.h"

static const pith__hf_towers siglip_vision_model_towers = { .text = false, .vision = true };

const pith__hf_family pith__hf_family_siglip_vision_model = { .model_type = "siglip_vision_model",
                                                              .build = pith__hf_siglip_build,
                                                              .layout = &siglip_vision_model_towers,
                                                              .keys =
                                                                  &pith__hf_siglip_vision_keys };
