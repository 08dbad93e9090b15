/* api_chunk.c - the public functions of pith/chunk.h. */
#include "api/entry.h"
#include "models/texts/embed_texts.h"

pith_status pith_chunk_text(pith_chunk *chunk, const pith_model *model, pith_str text,
                            const pith_chunk_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_next_chunk(chunk, model, text, options, err));
}

pith_status pith_chunk_mean(float *mean, const pith_model *model, const double *sums,
                            uint64_t tokens, const pith_embed_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_mean_chunks(mean, model, sums, tokens, options, err));
}
