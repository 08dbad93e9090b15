/* hf_siglip.h - SigLIP, for the families that have both of its towers or one of them. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_SIGLIP_H
#define PITH_MODELS_ARCHITECTURES_HF_SIGLIP_H

#include "models/architectures/hf_keys.h"
#include "models/architectures/hf_tower.h"

/* For pith_hf_family.build; layout is a pith_hf_towers. */
pith_status pith_hf_siglip_build(pith_graph *graph, const void *layout, const pith_hf_config *config,
                                 const pith_weights *weights, const char *weights_name, pith_error *err);

extern const pith_hf_keys pith_hf_siglip_text_keys;   /* of config.json, or of its part text_config */
extern const pith_hf_keys pith_hf_siglip_vision_keys; /* of config.json, or of its part vision_config */

#endif
