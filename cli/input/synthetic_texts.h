/* synthetic_texts.h - made-up English for measuring: the same texts for the same seed on every
 * machine. */
#ifndef PITH_CLI_INPUT_SYNTHETIC_TEXTS_H
#define PITH_CLI_INPUT_SYNTHETIC_TEXTS_H

#include "cli/base/text_input.h"

/* Appends so many common words, most of which are one token of a BERT vocabulary. *seed moves on.
 */
void synthetic_words(bytes *out, int words, uint64_t *seed);
/* A number of words as texts of mixed lengths have it: log-normal (3.0, 0.7), held between 3 and
 * 60. */
int synthetic_length(uint64_t *seed);

#endif
