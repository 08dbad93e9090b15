/* save_words.h - the section "words" of a compiled file: what BM42 and miniCOIL know of words. */
#ifndef PITH_MODELS_SAVE_SAVE_WORDS_H
#define PITH_MODELS_SAVE_SAVE_WORDS_H

#include "formats/compiled/weights.h"
#include "formats/compiled/wire_bytes.h"
#include "models/lexical/word_models.h"

/* hybrid->kind is not PITH_HYBRID_NONE. The matrices go to the weights. */
pith_status pith_saved_write_words(pith_bytes_out *out, pith_weights_out *weights, const pith_hybrid *hybrid,
                                   pith_error *err);
/* An empty section leaves *hybrid as it is. Strings and matrices stay in the file. */
pith_status pith_saved_read_words(pith_hybrid *hybrid, pith_str section, const pith_weights_in *weights,
                                  pith_arena *arena, pith_error *err);

#endif
