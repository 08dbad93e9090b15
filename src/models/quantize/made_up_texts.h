/* made_up_texts.h - texts made up from a vocabulary, for calibration without sample texts.
 *
 * Every script that the vocabulary covers gets some texts of 8 to 96 pieces; the script with the
 * most pieces gets four times as many. A word is a piece that begins one, followed by pieces that
 * continue it. Vocabularies are usually sorted by frequency, so in every third text pieces are
 * drawn by their rank, frequent ones more often. The same vocabulary gives the same texts. */
#ifndef PITH_MODELS_QUANTIZE_MADE_UP_TEXTS_H
#define PITH_MODELS_QUANTIZE_MADE_UP_TEXTS_H

#include "text/tokenizer.h"

/* Makes *count texts in arena. Returns PITH_ERR_UNSUPPORTED if the vocabulary has no readable
 * piece. */
pith_status pith__made_up_texts(pith_str **texts, size_t *count, const pith_tokenizer *tokenizer,
                                pith__arena *arena, pith_error *err);

#endif
