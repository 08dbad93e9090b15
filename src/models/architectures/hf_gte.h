/* hf_gte.h - the encoder of GTE, which goes by two names. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_GTE_H
#define PITH_MODELS_ARCHITECTURES_HF_GTE_H

#include "models/architectures/family.h"

/* For pith_hf_family.build; layout is NULL. */
pith_status pith_hf_gte_build(pith_graph *graph, const void *layout, const pith_hf_config *config,
                              const pith_weights *weights, const char *weights_name, pith_error *err);

#endif
