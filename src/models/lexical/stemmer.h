/* stemmer.h - Snowball stemmers, from libstemmer, which is loaded when the first one is asked for.
 *
 * Newer versions of Snowball treat two letters in another way than the one that py_rust_stemmers,
 * and so fastembed, has: Russian "ё" becomes "е", and French "ï" and "ë" are rewritten. Here they
 * are hidden from libstemmer behind letters that it treats as the older version treats them, and
 * put back into the stem. */
#ifndef PITH_MODELS_LEXICAL_STEMMER_H
#define PITH_MODELS_LEXICAL_STEMMER_H

#include "pith/types.h"

/* Bytes of a word in which letters are hidden; longer words are stemmed as they are. */
enum { PITH_STEMMER_BYTES = 1024 };

typedef struct pith__stemmer {
    struct sb_stemmer *snowball; /* NULL: none */
    const struct stemmer_hidden *hidden;
    char word[PITH_STEMMER_BYTES];
} pith__stemmer;

/* Languages with commas between them: those that fastembed knows. */
extern const char pith__stemmer_languages[];

/* PITH_ERR_NOT_FOUND: there is no libstemmer here. PITH_ERR_ARGUMENT: it does not know the
 * language. */
pith_status pith__stemmer_create(pith__stemmer *stemmer, const char *language, pith_error *err);
void pith__stemmer_destroy(pith__stemmer *stemmer);
/* The stem of a word in lower case, valid until the next call; data is NULL if memory is out. One
 * thread at a time. */
pith_str pith__stemmer_run(pith__stemmer *stemmer, pith_str word);
/* True for a name of the list. */
int pith__stemmer_knows(const char *language);

#endif
