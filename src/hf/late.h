/* late.h - what a directory says about late interaction: markers, lengths and the tokens without a vector. */
#ifndef PITH_HF_LATE_H
#define PITH_HF_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct pith_hf_late {
    pith_str markers[2];     /* tokens, by pith_role; size 0: none */
    int32_t lengths[2];      /* tokens at which a text is cut, by pith_role; 0: no limit */
    bool expands;            /* queries are filled up with mask tokens to their length */
    bool attends;            /* other tokens attend to those */
    const pith_str *skipped; /* [skipped_count] tokens of documents that have no vector */
    size_t skipped_count;
} pith_hf_late;

/* Reads config_sentence_transformers.json, if it has keys of PyLate, else artifact.metadata (ColBERT). Without them
 * there are no markers, no lengths and no expansion. Strings are in the arena. PITH_ERR_FORMAT names the file and the
 * place of what is wrong. */
pith_status pith_hf_late_read(pith_hf_late *late, const char *dir, const pith_allocator *allocator, pith_arena *arena,
                              pith_error *err);

#endif
