/* api_embed.c - the public functions of pith/embed.h. */
#include "api/entry.h"
#include "models/texts/embed_texts.h"

size_t pith_embed_dim(const pith_model *model, const pith_embed_options *options) {
    return pith__model_embed_dim(model, options);
}

size_t pith_embed_max_length(const pith_model *model, const pith_embed_options *options) {
    return pith__model_embed_max_length(model, options);
}

pith_status pith_embed_predict(pith_memory_need *need, const pith_model *model, size_t count,
                               size_t tokens, const pith_embed_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_predict(need, model, count, tokens, options, err));
}

pith_status pith_embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                       const pith_embed_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_embed(vectors, model, texts, count, options, err));
}

pith_status pith_embed_tokens(float *vectors, const pith_model *model, const pith_token_ids *texts,
                              size_t count, const pith_embed_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_embed_tokens(vectors, model, texts, count, options, err));
}
