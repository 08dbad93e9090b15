/* hash_words.h - texts as vectors without a model: each word adds or subtracts 1 in four places
 * that its hash names. */
#ifndef PITH_TABLES_DATABASE_HASH_WORDS_H
#define PITH_TABLES_DATABASE_HASH_WORDS_H

#include "pith/types.h"

enum { PITH_HASH_WORDS_DIM = 384 };

/* Fills vector[PITH_HASH_WORDS_DIM], of length 1, or zeros for a text without words. Words are runs
 * of ASCII letters, digits and bytes above 127; the case of ASCII letters does not count. */
void pith__hash_words(float *vector, pith_str text);

#endif
