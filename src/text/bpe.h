/* bpe.h - byte-pair encoding: building a model from any file that has one, and the merging itself. */
#ifndef PITH_TEXT_BPE_H
#define PITH_TEXT_BPE_H

#include "text/vocab.h"

/* Two symbols that become a third. */
typedef struct pith_merge {
    int32_t left, right, id;
} pith_merge;

/* Merges by rank, and a way to find that of a pair. Slots are four bytes, so that the tables of honest vocabularies
 * stay in L2: the rank below, as much of the pair's hash as there is room for above it, all ones where a slot is empty.
 * A pair's slot is in the bucket its hash leads to, or where that is full, in the next; one comparison of all of a
 * bucket tells whether there is a merge below some rank, and mostly there is none. */
enum { PITH_MERGE_BUCKET = 8 };

typedef struct pith_merges {
    const pith_merge *merges; /* [count] */
    const uint32_t *slots;    /* [buckets][PITH_MERGE_BUCKET], filled from the front */
    uint32_t count;
    uint32_t last;  /* bucket, 2^n - 1 */
    uint32_t ranks; /* the bits of a slot that are the rank, 2^n - 1, count at least: no used slot is all ones */
} pith_merges;

/* The lower rank goes first, then the pair further left. merges[i] has rank i; they must stay as long as the table. Two
 * merges of one pair, or merges made to collide: PITH_ERR_FORMAT. */
pith_status pith_merges_build(pith_merges *table, const pith_merge *merges, size_t count, pith_arena *arena,
                              pith_error *err);
/* The table into a frozen tokenizer, and out of one; ids must be below id_count. */
void pith_merges_save(const pith_merges *table, pith_frozen_writer *writer);
pith_status pith_merges_open(pith_merges *table, int32_t id_count, pith_loader *loader);

static inline uint64_t pith_merges_hash(int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return pith_vocab_mix(pair * 0x9E3779B97F4A7C15u);
}

/* The rank of a pair that is below the limit, at most count; UINT32_MAX: there is none. */
static inline uint32_t pith_merges_find(const pith_merges *table, int32_t left, int32_t right, uint32_t limit) {
    uint64_t hash = pith_merges_hash(left, right);
    uint32_t tag = (uint32_t)hash & ~table->ranks;
    for (uint32_t bucket = (uint32_t)(hash >> 32);; bucket++) {
        const uint32_t *slots = table->slots + (size_t)(bucket & table->last) * PITH_MERGE_BUCKET;
        uint32_t found = 0;
        for (int i = 0; i < PITH_MERGE_BUCKET; i++) found |= -(uint32_t)((slots[i] ^ tag) < limit);
        if (__builtin_expect(found != 0, 0))
            for (int i = 0; i < PITH_MERGE_BUCKET; i++) {
                uint32_t rank = slots[i] ^ tag;
                if (rank < limit && table->merges[rank].left == left && table->merges[rank].right == right) return rank;
            }
        if (__builtin_expect(slots[PITH_MERGE_BUCKET - 1] == UINT32_MAX, 1)) return UINT32_MAX;
    }
}

/* size: of the text it stands for. */
typedef struct pith_symbol {
    int32_t id;
    uint32_t size;
} pith_symbol;

/* Merges until nothing merges and returns how many symbols are left, in place. O(n log n) whatever the merges. Uses
 * scratch slots 1 and 2 for long words. SIZE_MAX: out of memory, noted in the encoding. */
size_t pith_bpe_merge(const pith_merges *table, pith_encoding *enc, pith_symbol *symbols, size_t count);

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
/* Where loader->frozen is, vocabulary and merges come from there. */
pith_status pith_bpe_build(const void **model, const pith_bpe_spec *spec, pith_loader *loader);

extern const pith_model_desc pith_model_BPE;

#endif
