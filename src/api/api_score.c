/* api_score.c - the public functions of pith/score.h. */
#include "api/entry.h"
#include "models/texts/score_pairs.h"

size_t pith_label_count(const pith_model *model) { return pith__model_label_count(model); }
const char *pith_label_name(const pith_model *model, size_t label) {
    return pith__model_label_name(model, label);
}

pith_status pith_classify(float *scores, const pith_model *model, const pith_str *texts,
                          const pith_str *pairs, size_t count, const pith_score_options *options,
                          pith_error *err) {
    PITH_ENTRY(pith__model_classify(scores, model, texts, pairs, count, options, err));
}

pith_status pith_rerank(float *scores, const pith_model *model, pith_str query,
                        const pith_str *documents, size_t count, const pith_score_options *options,
                        pith_error *err) {
    PITH_ENTRY(pith__model_rerank(scores, model, query, documents, count, options, err));
}

pith_status pith_classify_tokens(float *scores, const pith_model *model,
                                 const pith_token_ids *texts, size_t count,
                                 const pith_score_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_classify_tokens(scores, model, texts, count, options, err));
}

pith_status pith_rerank_tokens(float *scores, const pith_model *model, const pith_token_ids *pairs,
                               size_t count, const pith_score_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_rerank_tokens(scores, model, pairs, count, options, err));
}
