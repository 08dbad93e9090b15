/* embed_texts.h - the implementation of pith_embed, pith_embed_dim, pith_embed_predict,
 * pith_embed_max_length, pith_chunk_text, pith_chunk_mean and pith_model_calibrate. The caller has
 * set the floating-point mode. */
#ifndef PITH_MODELS_TEXTS_EMBED_TEXTS_H
#define PITH_MODELS_TEXTS_EMBED_TEXTS_H

#include "models/model.h"
#include "pith/chunk.h"

/* PITH_ERR_UNSUPPORTED, or the reason why texts cannot run, if the model has no dense vectors of
 * texts. */
pith_status pith__model_check_dense(const pith_model *model, pith_error *err);
size_t pith__model_embed_dim(const pith_model *model, const pith_embed_options *options);
size_t pith__model_embed_max_length(const pith_model *model, const pith_embed_options *options);
pith_status pith__model_embed(float *vectors, const pith_model *model, const pith_str *texts,
                              size_t count, const pith_embed_options *options, pith_error *err);
pith_status pith__model_embed_tokens(float *vectors, const pith_model *model,
                                     const pith_token_ids *texts, size_t count,
                                     const pith_embed_options *options, pith_error *err);
pith_status pith__model_predict(pith_memory_need *need, const pith_model *model, size_t count,
                                size_t tokens, const pith_embed_options *options, pith_error *err);
pith_status pith__model_next_chunk(pith_chunk *chunk, const pith_model *model, pith_str text,
                                   const pith_chunk_options *options, pith_error *err);
pith_status pith__model_mean_chunks(float *mean, const pith_model *model, const double *sums,
                                    uint64_t tokens, const pith_embed_options *options,
                                    pith_error *err);
pith_status pith__model_round(pith_model *model, const pith_calibrate_options *options,
                              pith_error *err);

#endif
