/* hf_siglip.h - SigLIP, for the families that have both of its towers or one of them. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_SIGLIP_H
#define PITH_MODELS_ARCHITECTURES_HF_SIGLIP_H

#include "models/architectures/hf_keys.h"
#include "models/architectures/hf_tower.h"

/* For pith__hf_family.build; layout is a pith__hf_towers. */
pith_status pith__hf_siglip_build(pith__graph *graph, const void *layout,
                                  const pith__hf_config *config, const pith__weights *weights,
                                  const char *weights_name, pith_error *err);

/* of config.json, or of its part text_config */
extern const pith__hf_keys pith__hf_siglip_text_keys;
/* of config.json, or of its part vision_config */
extern const pith__hf_keys pith__hf_siglip_vision_keys;

#endif
