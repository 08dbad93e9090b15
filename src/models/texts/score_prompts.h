/* score_prompts.h - what the encoder gets for a query and its documents: as pairs, or with the
 * model's own words around them. */
#ifndef PITH_MODELS_TEXTS_SCORE_PROMPTS_H
#define PITH_MODELS_TEXTS_SCORE_PROMPTS_H

#include "models/encode/encoder.h"
#include "models/model.h"
#include "text/token_rows.h"

typedef struct pith__score_prompts {
    pith__arena arena;
    const pith_str *texts; /* one for each document */
    const pith_str *pairs; /* the same; NULL: each text is query and document */
    pith__encode_frame frame;
    int32_t max_length;   /* of the job; 0: the model's own limit */
    pith_tokens words[3]; /* of the model, and of the query */
    pith__stop *stop;     /* may be NULL */
} pith__score_prompts;

/* Prepares a call. The query is UTF-8. The options' instruction, or else the model's default
 * prompt, says what makes a document a good one. An instruction that is no UTF-8 or that the model
 * has no place for gives PITH_ERR_ARGUMENT. Call pith__score_prompts_end in any case. The documents
 * must live until then. */
pith_status pith__score_prompts_begin(pith__score_prompts *j, const pith_model *model,
                                      pith_str query, const pith_str *documents, size_t count,
                                      const pith_score_options *options, pith__stop *stop,
                                      pith_error *err);
void pith__score_prompts_end(pith__score_prompts *j);
/* Whether the model is one that takes an instruction at all. */
bool pith__score_prompts_takes_instruction(const pith_model *model);

#endif
