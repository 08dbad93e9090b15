/* bpe_longest.h - byte-pair encoding by longest matches instead of merges.
 *
 * Merging gives the only sequence of tokens in which any two neighbours would also stay apart if
 * their text were encoded alone. So this algorithm takes the longest token that matches. If that
 * token would merge with the one before it, it takes the next shorter one; if there is none, it
 * shortens the one before. A token is read once instead of being built from its bytes. Source: the
 * crate bpe of github.com/github/rust-gems and its article "So many tokens, so little time". That
 * needs merges whose parts are made by merges of lower rank, as those of trained vocabularies
 * are. */
#ifndef PITH_TEXT_MODELS_BPE_LONGEST_H
#define PITH_TEXT_MODELS_BPE_LONGEST_H

#include "text/models/bpe_merges.h"
#include "text/trie.h"

/* A symbol that no merge makes, and its text. */
typedef struct pith__bpe_letter {
    pith_str text;
    int32_t id; /* -1: there is none */
} pith__bpe_letter;

/* The merge that makes a token when its text is encoded alone. */
typedef struct pith__bpe_split {
    int32_t left, right;
    uint32_t rank;   /* of the merge, counted from 1; 0: a letter; UINT32_MAX: the text becomes
                        several tokens */
    int32_t shorter; /* the longest other token that this one begins with; -1: none */
} pith__bpe_split;

typedef struct pith__bpe_longest {
    pith__trie trie;               /* texts of the tokens that encoding can give, by id */
    const pith__bpe_split *splits; /* [trie.key_count] by id; NULL: the merges are not of this
                                      kind */
} pith__bpe_longest;

/* Builds the tables, in arena. Leaves splits NULL if the merges are not of the kind above, or if a
 * token has several texts. The texts may be freed afterwards. */
pith_status pith__bpe_longest_build(pith__bpe_longest *b, const pith__merges *merges,
                                    const pith__bpe_letter *letters, size_t letter_count,
                                    int32_t id_count, pith__arena *arena, pith__arena *scratch,
                                    pith__stop *stop, pith_error *err);
/* Write the tables to a frozen tokenizer, and open them from one. Missing tables stay missing. */
void pith__bpe_longest_save(const pith__bpe_longest *b, pith__frozen_writer *writer);
pith_status pith__bpe_longest_open(pith__bpe_longest *b, const pith__merges *merges,
                                   int32_t id_count, pith__loader *loader);

/* Returns the number of words of `dead` for a text of this size. */
static inline size_t pith__bpe_longest_words(size_t size) { return size / 64 + 1; }

/* Encodes a text of letters and returns the number of tokens. symbols has room for one per byte;
 * dead is working memory. Returns 0 if a letter is missing, if this would take more than linear
 * time, or if the call must end, which the encoding then notes. In the other cases the caller
 * merges instead. */
size_t pith__bpe_longest_encode(const pith__bpe_longest *b, const pith__merges *merges,
                                pith_str text, pith__symbol *symbols, uint64_t *dead,
                                pith__encoding *enc);

#endif
