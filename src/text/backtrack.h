/* backtrack.h - the tokens of byte-pair encoding by longest matches instead of merges.
 *
 * What merging leaves is the one sequence of tokens in which each two neighbours would also stay apart if their text
 * were encoded alone. So the longest token that fits is taken; if it would not stay apart from the one before it, the
 * next shorter one; if there is none, the one before it is made shorter. A token is read once instead of being built
 * up from its bytes. Source: the crate bpe of github.com/github/rust-gems and its article "So many tokens, so little
 * time". That needs merges whose parts are made by merges of lower rank, as those of trained vocabularies are. */
#ifndef PITH_TEXT_BACKTRACK_H
#define PITH_TEXT_BACKTRACK_H

#include "text/bpe.h"
#include "text/trie.h"

/* A symbol that no merge makes, and what it stands for. */
typedef struct pith_bpe_letter {
    pith_str text;
    int32_t id; /* -1: there is none */
} pith_bpe_letter;

/* The merge that makes a token when its text is encoded alone. */
typedef struct pith_bpe_split {
    int32_t left, right;
    uint32_t rank;   /* of the merge, counted from 1; 0: a letter; UINT32_MAX: the text becomes several tokens */
    int32_t shorter; /* the longest other token that this one begins with; -1: none */
} pith_bpe_split;

typedef struct pith_backtrack {
    pith_trie trie;               /* texts of the tokens that encoding can give; its keys are their ids */
    const pith_bpe_split *splits; /* [trie.key_count] by id; NULL: not with these merges */
} pith_backtrack;

/* Leaves splits NULL where the merges are not of the kind described, or a token has several texts. Tables lie in arena.
 * Texts need not stay. */
pith_status pith_backtrack_build(pith_backtrack *b, const pith_merges *merges, const pith_bpe_letter *letters,
                                 size_t letter_count, int32_t id_count, pith_arena *arena, pith_arena *scratch,
                                 pith_error *err);
/* The tables into a frozen tokenizer, and out of one; where there were none, there are none. */
void pith_backtrack_save(const pith_backtrack *b, pith_frozen_writer *writer);
pith_status pith_backtrack_open(pith_backtrack *b, const pith_merges *merges, int32_t id_count, pith_loader *loader);

/* Words that dead has for a text of so many bytes. */
static inline size_t pith_backtrack_words(size_t size) { return size / 64 + 1; }

/* The tokens of a text of letters; symbols has room for one a byte, dead is working memory. 0: a letter is missing, or
 * this would take more than linear time: merge instead. */
size_t pith_backtrack_encode(const pith_backtrack *b, const pith_merges *merges, pith_str text, pith_symbol *symbols,
                             uint64_t *dead);

#endif
