/* embedding.h - the implementation of pith_embed, pith_embed_dim, pith_embed_max_length and pith_model_calibrate. The
 * caller has set the floating-point mode. */
#ifndef PITH_MODEL_EMBEDDING_H
#define PITH_MODEL_EMBEDDING_H

#include "model/model.h"
#include "pith/embed.h"

size_t pith_model_embed_dim(const pith_model *model, const pith_embed_options *options);
size_t pith_model_embed_max_length(const pith_model *model, const pith_embed_options *options);
pith_status pith_model_embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                             const pith_embed_options *options, pith_error *err);
pith_status pith_model_round(pith_model *model, const pith_calibrate_options *options, pith_error *err);

#endif
