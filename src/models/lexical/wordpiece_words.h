/* wordpiece_words.h - the pieces of a WordPiece tokenizer, put together again to words: "em ##bed
 * ##ding" to "embedding". */
#ifndef PITH_MODELS_LEXICAL_WORDPIECE_WORDS_H
#define PITH_MODELS_LEXICAL_WORDPIECE_WORDS_H

#include "base/memory/memory.h"

typedef struct pith__wordpiece_word {
    pith_str word;     /* in the arena */
    size_t begin, end; /* its tokens are order[begin] up to order[end] */
} pith__wordpiece_word;

typedef struct pith__wordpiece_words {
    pith__wordpiece_word *words; /* [count] */
    size_t *order;               /* indices of tokens */
    size_t count;
} pith__wordpiece_words;

/* How the tokens of ids are found. */
typedef struct pith__wordpiece_source {
    /* data NULL: there is no such id */
    pith_str (*token)(const void *tokenizer, int32_t id, bool *special);
    const void *tokenizer;
} pith__wordpiece_source;

/* The words of a text of `count` tokens; a piece that begins with "##" goes on with the word before
 * it. Special tokens are passed over, or are words if keep_special is set. Memory is in the
 * arena. */
pith_status pith__wordpiece_words_join(pith__wordpiece_words *pieces,
                                       const pith__wordpiece_source *source, const int32_t *ids,
                                       size_t count, bool keep_special, pith__arena *arena,
                                       pith_error *err);

#endif
