/* family_siglip_text_model.c - SigLIP: the tower for texts. */
#include "models/architectures/hf_siglip.h"

static const pith__hf_towers siglip_text_model_towers = { .text = true, .vision = false };

const pith__hf_family pith__hf_family_siglip_text_model = { .model_type = "siglip_text_model",
                                                            .build = pith__hf_siglip_build,
                                                            .layout = &siglip_text_model_towers,
                                                            .keys = &pith__hf_siglip_text_keys };
