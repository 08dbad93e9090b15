/* model_unigram.h - building a Unigram model from pieces, for every loader that has them. */
#ifndef PITH_TEXT_MODELS_MODEL_UNIGRAM_H
#define PITH_TEXT_MODELS_MODEL_UNIGRAM_H

#include "text/pipeline.h"

typedef struct pith__unigram pith__unigram;

/* Piece i has id i. unk_id: -1 for none. The pieces are copied. Returns NULL after a failure, which
 * is in loader->err. */
const pith__unigram *pith__unigram_build(const pith_str *pieces, const double *scores, size_t count,
                                         int32_t unk_id, bool byte_fallback, pith__loader *loader);

extern const pith__model_desc pith__model_Unigram;

#endif
