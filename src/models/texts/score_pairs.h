/* score_pairs.h - the implementation of pith/score.h. The caller has set the floating-point mode.
 */
#ifndef PITH_MODELS_TEXTS_SCORE_PAIRS_H
#define PITH_MODELS_TEXTS_SCORE_PAIRS_H

#include "models/model.h"
#include "models/texts/text_task.h"

size_t pith__model_label_count(const pith_model *model);
/* Returns the output of the model's graph that scores are made of; -1: the model is no classifier.
 */
int pith__model_score_output(const pith_model *model);
const char *pith__model_label_name(const pith_model *model, size_t label);
pith_status pith__model_classify(float *scores, const pith_model *model, const pith_str *texts,
                                 const pith_str *pairs, size_t count,
                                 const pith_score_options *options, pith_error *err);
pith_status pith__model_rerank(float *scores, const pith_model *model, pith_str query,
                               const pith_str *documents, size_t count,
                               const pith_score_options *options, pith_error *err);
pith_status pith__model_classify_tokens(float *scores, const pith_model *model,
                                        const pith_token_ids *texts, size_t count,
                                        const pith_score_options *options, pith_error *err);
pith_status pith__model_rerank_tokens(float *scores, const pith_model *model,
                                      const pith_token_ids *pairs, size_t count,
                                      const pith_score_options *options, pith_error *err);
/* What a call that others run scores. */
typedef struct pith__score_ask {
    const pith_str *texts;        /* [count]; or */
    const pith_token_ids *tokens; /* [count] */
    size_t count;
    bool reranks;   /* as pith_rerank; else as pith_classify without pairs */
    pith_str query; /* of pith_rerank with texts */
} pith__score_ask;

/* A call of pith_rerank or pith_classify that others run. What `ask` and the options point to is
 * the caller's until the task is dropped. */
pith_status pith__model_score_task(pith__text_task **task, const pith_model *model,
                                   const pith__score_ask *ask, const pith_score_options *options,
                                   pith_error *err);

#endif
