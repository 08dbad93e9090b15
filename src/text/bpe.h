/* bpe.h - byte-pair encoding: building a model from any file that has one, and the merging itself. */
#ifndef PITH_TEXT_BPE_H
#define PITH_TEXT_BPE_H

#include "text/vocab.h"

/* The pair of symbols becomes id. The lower rank goes first, then the one further left. */
typedef struct pith_merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX: an empty slot of the table */
    int32_t id;
    uint32_t rank;
} pith_merge;

static inline uint64_t pith_pair(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

typedef struct pith_merges {
    const pith_merge *slots; /* [mask + 1], open addressing, at most two thirds full */
    uint32_t mask;
} pith_merges;

/* merges[i] has rank i. Two merges of one pair, or merges made to collide: PITH_ERR_FORMAT. */
pith_status pith_merges_build(pith_merges *table, const pith_merge *merges, size_t count, pith_arena *arena,
                              pith_error *err);
/* The table into an image, and out of one; ids must be below id_count. */
void pith_merges_save(const pith_merges *table, pith_image_writer *writer);
pith_status pith_merges_open(pith_merges *table, int32_t id_count, pith_loader *loader);

static inline uint32_t pith_merges_home(const pith_merges *table, uint64_t pair) {
    return (uint32_t)(pith_vocab_mix(pair * 0x9E3779B97F4A7C15u) >> 32) & table->mask;
}

/* NULL: the pair does not merge. */
static inline const pith_merge *pith_merges_find(const pith_merges *table, uint64_t pair) {
    for (uint32_t i = pith_merges_home(table, pair);; i = (i + 1) & table->mask) {
        const pith_merge *slot = &table->slots[i];
        if (slot->pair == pair) return slot;
        if (slot->pair == UINT64_MAX) return NULL;
    }
}

/* size: of the text it stands for. */
typedef struct pith_symbol {
    int32_t id;
    uint32_t size;
} pith_symbol;

/* Merges until nothing merges and returns how many symbols are left, in place. O(n log n) whatever the merges. Uses
 * scratch slots 1 and 2 for long words. SIZE_MAX: out of memory, noted in the call. */
size_t pith_bpe_merge(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count);

/* ---- building a model ---- */

typedef struct pith_bpe_pair {
    pith_str left, right;
} pith_bpe_pair;

/* What a file says; strings are spans that live until the model is built. */
typedef struct pith_bpe_spec {
    pith_vocab_builder vocab;
    pith_bpe_pair *merges; /* by rank */
    size_t merge_count, merge_capacity;
    pith_str unk_token, prefix, suffix; /* size 0: none */
    bool fuse_unk, byte_fallback, ignore_merges;
} pith_bpe_spec;

/* In spec->vocab.scratch. False: out of memory. */
bool pith_bpe_add_merge(pith_bpe_spec *spec, pith_str left, pith_str right);
/* "left right" into its two tokens; false if it is not of that form. */
bool pith_bpe_split_merge(pith_str line, pith_str *left, pith_str *right);
/* Where loader->image is, vocabulary and merges come from there. */
pith_status pith_bpe_build(const void **model, const pith_bpe_spec *spec, pith_loader *loader);

extern const pith_model_desc pith_model_BPE;

#endif
