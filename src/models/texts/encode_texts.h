/* encode_texts.h - the implementation of pith/encode.h. The caller has set the floating-point mode.
 */
#ifndef PITH_MODELS_TEXTS_ENCODE_TEXTS_H
#define PITH_MODELS_TEXTS_ENCODE_TEXTS_H

#include "models/model.h"
#include "models/texts/text_task.h"
#include "pith/encode.h"

/* Kinds of results: bit i of PITH_ENCODE_*. */
enum { PITH_ENCODE_KINDS = 4 };

uint32_t pith__model_encode_can(const pith_model *model);
/* Returns the output of the model's graph that a kind is made of; -1: the model cannot make it. */
int pith__model_encode_output(const pith_model *model, int kind);
pith_status pith__model_encode(pith_encoded **encoded, const pith_model *model,
                               const pith_str *texts, size_t count,
                               const pith_encode_options *options, pith_error *err);
pith_status pith__model_encode_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                    const pith_model *model, const pith_str *texts, size_t count,
                                    const pith_encode_options *options, pith_error *err);
pith_status pith__model_encode_tokens(pith_encoded **encoded, const pith_model *model,
                                      const pith_token_ids *texts, size_t count,
                                      const pith_encode_options *options, pith_error *err);
pith_status pith__model_encode_tokens_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                           const pith_model *model, const pith_token_ids *texts,
                                           size_t count, const pith_encode_options *options,
                                           pith_error *err);
/* A call of pith_encode, or of pith_encode_tokens if texts is NULL, that others run. What is given
 * and what the options point to is the caller's until the task is dropped. */
pith_status pith__model_encode_task(pith__text_task **task, const pith_model *model,
                                    const pith_str *texts, const pith_token_ids *tokens,
                                    size_t count, const pith_encode_options *options,
                                    pith_error *err);
void pith__model_free_encoded(pith_encoded *encoded);

#endif
