/* save_words.h - the section "words" of a compiled file: what BM42 and miniCOIL know of words. */
#ifndef PITH_MODELS_SAVE_SAVE_WORDS_H
#define PITH_MODELS_SAVE_SAVE_WORDS_H

#include "formats/compiled/weights.h"
#include "formats/compiled/wire_bytes.h"
#include "models/lexical/word_models.h"

/* hybrid->kind is not PITH_HYBRID_NONE. The matrices go to the weights. */
pith_status pith__saved_write_words(pith__bytes_out *out, pith__weights_out *weights,
                                    const pith__hybrid *hybrid, pith_error *err);
/* An empty section leaves *hybrid as it is. Strings and matrices stay in the file. */
pith_status pith__saved_read_words(pith__hybrid *hybrid, pith_str section,
                                   const pith__weights_in *weights, pith__arena *arena,
                                   pith_error *err);

#endif
