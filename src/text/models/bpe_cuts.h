/* bpe_cuts.h - places where a text may be cut before byte-pair encoding without changing its
 * tokens.
 *
 * A merge (A, B) joins the last character of A and the first of B. If no merge joins two
 * neighbouring characters of a text, no token spans them, and both sides can be encoded alone.
 * Models without pre-tokenizers treat a whole text as one word; cut at its spaces, it becomes words
 * that occur often and are cached. The pairs are in a hashed bit set. A pair that is in it by
 * chance only loses a possible cut. */
#ifndef PITH_TEXT_MODELS_BPE_CUTS_H
#define PITH_TEXT_MODELS_BPE_CUTS_H

#include "text/models/bpe_merges.h"

typedef struct pith__bpe_cuts {
    const uint64_t *bits; /* 2^(64 - shift) of them; NULL: nothing may be cut */
    uint32_t shift;
} pith__bpe_cuts;

/* Builds the set from all merges. Their tokens must be spelled like the text. */
pith_status pith__bpe_cuts_build(pith__bpe_cuts *cuts, const pith__merges *merges,
                                 const pith__vocab *vocab, pith__arena *arena, pith_error *err);
/* Write the set to a frozen tokenizer, and open it from one, where it may be missing. */
void pith__bpe_cuts_save(const pith__bpe_cuts *cuts, pith__frozen_writer *writer);
pith_status pith__bpe_cuts_open(pith__bpe_cuts *cuts, pith__loader *loader);

/* The same for two bytes of a text that is read by byte, where the merges are spelled in byte-level
 * characters. */
bool pith__bpe_cuts_join_bytes(const pith__bpe_cuts *cuts, unsigned char left, unsigned char right);

/* True if a merge may join the character that begins at `at` to the one before it. `at` is not the
 * first character. */
bool pith__bpe_cuts_join(const pith__bpe_cuts *cuts, const char *text, uint32_t at);

#endif
