/* spm_merges.h - the merges of a SentencePiece model of type bpe, whose file has none. */
#ifndef PITH_TEXT_SOURCES_SPM_MERGES_H
#define PITH_TEXT_SOURCES_SPM_MERGES_H

#include "text/models/bpe_merges.h"

/* Adds the pieces to the vocabulary, with ids in order, and merges: a piece can be made from every
 * two pieces it can be cut into, the best score first. merges: which pieces take part, [count];
 * NULL: all. */
pith_status pith__spm_merges(pith__bpe_spec *spec, pith__loader *loader, const pith_str *pieces,
                             const double *scores, const bool *merges, size_t count);

#endif
