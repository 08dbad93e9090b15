/* junctions.h - where a text may be cut before byte-pair encoding without changing what comes out.
 *
 * A merge (A, B) joins the last character of A and the first of B. Where two neighbouring characters of a text are
 * joined by no merge at all, no token reaches across, and the parts on both sides merge as if they stood alone. Models
 * without pre-tokenizers take a whole text for one word: cut at its spaces, the parts are words that come again. The
 * pairs lie in a hashed set of bits: one that is in it by chance costs a cut, nothing else. */
#ifndef PITH_TEXT_JUNCTIONS_H
#define PITH_TEXT_JUNCTIONS_H

#include "text/bpe.h"

typedef struct pith_junctions {
    const uint64_t *bits; /* 2^(64 - shift) of them; NULL: nothing may be cut */
    uint32_t shift;
} pith_junctions;

/* Of all merges, whose tokens are spelled as the text is. */
pith_status pith_junctions_build(pith_junctions *junctions, const pith_merges *merges, const pith_vocab *vocab,
                                 pith_arena *arena, pith_error *err);
/* Into a frozen tokenizer, and out of one, where they may be missing. */
void pith_junctions_save(const pith_junctions *junctions, pith_frozen_writer *writer);
pith_status pith_junctions_open(pith_junctions *junctions, pith_loader *loader);

/* The same for two bytes of a text that is read by byte, where the merges are spelled in byte-level characters. */
bool pith_junctions_join_bytes(const pith_junctions *junctions, unsigned char left, unsigned char right);

/* Whether a merge may join the character that begins at `at`, which is not the first, to the one before it. */
bool pith_junctions_join(const pith_junctions *junctions, const char *text, uint32_t at);

#endif
