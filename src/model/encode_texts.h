/* encode_texts.h - the implementation of pith/encode.h. The caller has set the floating-point mode. */
#ifndef PITH_MODEL_ENCODE_TEXTS_H
#define PITH_MODEL_ENCODE_TEXTS_H

#include "model/model.h"
#include "pith/encode.h"

uint32_t pith_model_encode_can(const pith_model *model);
pith_status pith_model_encode(pith_encoded **encoded, const pith_model *model, const pith_str *texts, size_t count,
                              const pith_encode_options *options, pith_error *err);
void pith_model_free_encoded(pith_encoded *encoded);

#endif
