/* words.h - the words of a text, as Python's re has them: runs of \w in the text's lower case. */
#ifndef PITH_MODELS_LEXICAL_WORDS_H
#define PITH_MODELS_LEXICAL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "pith/types.h"

enum { PITH_WORD_CHARS = 255, PITH_WORD_BYTES = 4 * PITH_WORD_CHARS };

typedef struct pith__words {
    const char *at, *end; /* of the text, which is valid UTF-8 */
    uint32_t before;      /* the last cased letter or other character, for the final sigma; 0:
                             none */
    char word[PITH_WORD_BYTES];
    size_t size;
    int32_t characters; /* may be more than PITH_WORD_CHARS: then word holds only the first of
                           them */
} pith__words;

/* Whether a character is \w of Python's re: a letter, a number of any kind or "_". */
bool pith__words_has(uint32_t character);
void pith__words_begin(pith__words *words, pith_str text);
/* The next word; false at the end. */
bool pith__words_next(pith__words *words);
/* Puts the lower case of a word, without more ado, into `to`, which has room for PITH_WORD_BYTES;
 * returns its size. */
size_t pith__words_lower(char *to, pith_str word);

#endif
