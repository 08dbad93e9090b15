/* save_words.h - the section "words" of a compiled file: what BM42 and miniCOIL know of words. */
#ifndef PITH_MODELS_SAVE_SAVE_WORDS_H
#define PITH_MODELS_SAVE_SAVE_WORDS_H

#include "formats/compiled/constant_spans.h"
#include "formats/compiled/wire_bytes.h"
#include "models/lexical/word_models.h"

/* word_model->kind is not PITH_WORD_MODEL_NONE. The matrices go to the weights. */
pith_status pith__save_words_write(pith__bytes_out *out, pith__constant_spans_out *weights,
                                   const pith__word_model *word_model, pith_error *err);
/* An empty section leaves *word_model as it is. Strings and matrices stay in the file. */
pith_status pith__save_words_read(pith__word_model *word_model, pith_str section,
                                  const pith__constant_spans_in *weights, pith__arena *arena,
                                  pith_error *err);

#endif
