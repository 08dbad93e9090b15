/* made_texts.h - texts made of a vocabulary: what a model may meet when nobody has said what it will.
 *
 * Every script of which the vocabulary has letters or words gets some texts of 8 to 96 pieces, four times as many the
 * one with most of them. Words are pieces that begin one and pieces that go on; in one text of three they are taken as
 * often as their place in the vocabulary, which is sorted by use as a rule, lets expect. The same vocabulary gives the
 * same texts. */
#ifndef PITH_QUANTIZE_MADE_TEXTS_H
#define PITH_QUANTIZE_MADE_TEXTS_H

#include "text/tokenizer.h"

/* Into arena. Errors: memory; PITH_ERR_UNSUPPORTED: no piece is legible. */
pith_status pith_made_texts(pith_str **texts, size_t *count, const pith_tokenizer *tokenizer, pith_arena *arena,
                            pith_error *err);

#endif
