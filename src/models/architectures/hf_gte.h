/* hf_gte.h - the encoder of GTE, which goes by two names. */
#ifndef PITH_MODELS_ARCHITECTURES_HF_GTE_H
#define PITH_MODELS_ARCHITECTURES_HF_GTE_H

#include "models/architectures/family.h"

/* For pith__hf_family.build; layout is NULL. */
pith_status pith__hf_gte_build(pith__graph *graph, const void *layout,
                               const pith__hf_config *config, const pith__weights *weights,
                               const char *weights_name, pith_error *err);

#endif
