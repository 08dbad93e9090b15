/* late_interaction.h - what a directory says about late interaction: markers, lengths and the
 * tokens without a vector. */
#ifndef PITH_MODELS_MODULES_LATE_INTERACTION_H
#define PITH_MODELS_MODULES_LATE_INTERACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

/* The module HierarchicalTokenPooling: vectors of a text that are alike become their mean
 * (models/heads/token_pooling.h). */
typedef struct pith__token_pool_settings {
    double factor;    /* at least 1: about one vector of so many stays; 0: there is no such
                         module */
    int32_t protects; /* the first so many vectors stay as they are */
    bool normalizes;  /* the results are scaled to length 1 */
    uint32_t roles;   /* 1 << pith_role: whose vectors these are */
} pith__token_pool_settings;

typedef struct pith__late_interaction {
    pith_str markers[2];     /* tokens, by pith_role; size 0: none */
    bool texts;              /* a marker that the vocabulary does not have is put in front of the
                                text, as text */
    int32_t lengths[2];      /* tokens at which a text is cut, by pith_role; 0: no limit */
    bool expands;            /* queries are filled up with mask tokens to their length */
    bool in_front;           /* that would be at the front of queries (padding_side), which is not
                                done */
    bool attends;            /* other tokens attend to those */
    int32_t filled;          /* queries are filled up to so many tokens; 0: to their length */
    pith_str filler;         /* the token that they are filled with; size 0: the mask token */
    const pith_str *skipped; /* [skipped_count] tokens that have no vector */
    size_t skipped_count;
    uint32_t skips;      /* 1 << pith_role: whose tokens these are */
    const int32_t *kept; /* [kept_count] ids of the only tokens of documents that have vectors;
                            none: all have */
    size_t kept_count;
    bool masked; /* by the module MultiVectorMask: vectors stay as the modules make them, words that
                    the vocabulary does not have are not skipped, and each role has a prompt of its
                    name */
    pith__token_pool_settings pool;
} pith__late_interaction;

/* Reads config_sentence_transformers.json, if it has keys of PyLate; else takes the settings that
 * the modules gave (pith__modules.late), if MultiVectorMask is one of them; else reads
 * artifact.metadata (ColBERT). Without them there are no markers, no lengths and no expansion.
 * Strings are in the arena. PITH_ERR_FORMAT names the file and the place of what is wrong;
 * PITH_ERR_UNSUPPORTED: keys of PyLate are beside a module that PyLate does not have. */
pith_status pith__late_interaction_read(pith__late_interaction *late,
                                        const pith__late_interaction *modules, const char *dir,
                                        const pith_allocator *allocator, pith__arena *arena,
                                        pith_error *err);

/* The tokens by which the tokenizer's files say what queries are filled up with. */
typedef struct pith__late_fillers {
    pith_str mask, end; /* mask_token, eos_token; size 0: not named */
    bool no_mask;       /* a file says that there is no mask token */
    bool in_front;      /* padding_side is left */
} pith__late_fillers;

/* Reads tokenizer_config.json of the tokenizer's directory, and special_tokens_map.json, which goes
 * before it and counts only if the first has no added_tokens_decoder (see
 * text/sources/config_files.h). Strings are in the arena. PITH_ERR_FORMAT names the file and the
 * place of what is wrong. */
pith_status pith__late_fillers_read(pith__late_fillers *fillers, const char *dir,
                                    const pith_allocator *allocator, pith__arena *arena,
                                    pith_error *err);

#endif
