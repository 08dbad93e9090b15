/* backtrack.h - the tokens of byte-pair encoding by longest matches instead of merges.
 *
 * Merging decides at every place between two tokens by itself: what it leaves is the one sequence in which each two
 * neighbours would also stay apart alone. So the longest token that fits is taken; if it would not stay apart from the
 * one before it, the next shorter one; if there is none, the one before it is made shorter. That reads a token once
 * instead of building it up from its bytes. Source: github.com/github/rust-gems, crate bpe. */
#ifndef PITH_TEXT_BACKTRACK_H
#define PITH_TEXT_BACKTRACK_H

#include "text/bpe.h"
#include "text/trie.h"

/* The merge that makes a token when it is encoded alone. */
typedef struct pith_bpe_split {
    int32_t left, right;
    uint32_t rank; /* of the merge, from 1 on; 0: a symbol; UINT32_MAX: encoding it gives several tokens */
} pith_bpe_split;

typedef struct pith_backtrack {
    pith_trie trie;               /* tokens that come out of encoding, as bytes; its keys are their ids */
    const pith_bpe_split *splits; /* [trie.key_count] by id; NULL: the merges are not of a kind that this can follow */
} pith_backtrack;

/* symbols: the ids of the 256 bytes. Leaves splits NULL where a merge of low rank needs the result of a higher one. */
pith_status pith_backtrack_build(pith_backtrack *b, const pith_merges *merges, const int32_t symbols[256], int32_t id_count, pith_arena *arena, pith_arena *scratch,
                                 pith_error *err);

/* Returns how many symbols it found, at most size; 0: too much to try, merge instead. */
size_t pith_backtrack_encode(const pith_backtrack *b, const pith_merges *merges, const char *text, uint32_t size,
                             pith_symbol *symbols);

#endif
