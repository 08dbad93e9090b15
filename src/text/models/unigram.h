/* unigram.h - building a Unigram model from pieces, for every loader that has them. */
#ifndef PITH_TEXT_MODELS_UNIGRAM_H
#define PITH_TEXT_MODELS_UNIGRAM_H

#include "text/pipeline.h"

typedef struct pith_unigram pith_unigram;

/* Piece i has id i. unk_id: -1 for none. The pieces are copied. Returns NULL after a failure, which is in loader->err.
 */
const pith_unigram *pith_unigram_build(const pith_str *pieces, const double *scores, size_t count, int32_t unk_id,
                                       bool byte_fallback, pith_loader *loader);

extern const pith_model_desc pith_model_Unigram;

#endif
