/* bpe_merges.h - byte-pair encoding: building a model from any file that has one, and the merging
 * itself. */
#ifndef PITH_TEXT_MODELS_BPE_MERGES_H
#define PITH_TEXT_MODELS_BPE_MERGES_H

#include "text/vocab.h"

/* Two symbols that become a third. */
typedef struct pith__merge {
    int32_t left, right, id;
} pith__merge;

/* The merges by rank, and a hash table that finds the rank of a pair. A slot is 32 bits: the low
 * bits hold the rank, the high bits a fragment of the pair's hash; 0xFFFFFFFF means empty.
 * Four-byte slots keep real vocabularies within L2. A pair is in the bucket that its hash selects,
 * or in the next one if that is full. One comparison of a whole bucket shows whether it can hold a
 * merge below some rank; mostly it cannot. */
enum { PITH_MERGE_BUCKET = 8 };

typedef struct pith__merges {
    const pith__merge *merges; /* [count] */
    const uint32_t *slots;     /* [buckets][PITH_MERGE_BUCKET], filled from the front */
    uint32_t count;
    uint32_t last;  /* the last bucket's index, 2^n - 1 */
    uint32_t ranks; /* mask of a slot's rank bits, 2^n - 1 >= count, so no used slot is
                       0xFFFFFFFF */
} pith__merges;

/* Builds the table. merges[i] has rank i. Encoding merges the pair of lowest rank first, of equal
 * ones the leftmost. merges must live as long as the table. Two merges of one pair, and merges that
 * were made to collide, give PITH_ERR_FORMAT. */
pith_status pith__merges_build(pith__merges *table, const pith__merge *merges, size_t count,
                               pith__arena *arena, pith__stop *stop, pith_error *err);
/* Write the table to a frozen tokenizer, and open it from one. Fails if an id is not below
 * id_count. */
void pith__merges_save(const pith__merges *table, pith__frozen_writer *writer);
pith_status pith__merges_open(pith__merges *table, int32_t id_count, pith__loader *loader);

static inline uint64_t pith__merges_hash(int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return pith__vocab_mix(pair * 0x9E3779B97F4A7C15u);
}

/* Returns the rank of a pair if it is below limit, which is at most count; else UINT32_MAX. */
static inline uint32_t pith__merges_find(const pith__merges *table, int32_t left, int32_t right,
                                         uint32_t limit) {
    uint64_t hash = pith__merges_hash(left, right);
    uint32_t tag = (uint32_t)hash & ~table->ranks;
    for (uint32_t bucket = (uint32_t)(hash >> 32);; bucket++) {
        const uint32_t *slots = table->slots + (size_t)(bucket & table->last) * PITH_MERGE_BUCKET;
        uint32_t found = 0;
        for (int i = 0; i < PITH_MERGE_BUCKET; i++) found |= -(uint32_t)((slots[i] ^ tag) < limit);
        if (__builtin_expect(found != 0, 0))
            for (int i = 0; i < PITH_MERGE_BUCKET; i++) {
                uint32_t rank = slots[i] ^ tag;
                if (rank < limit && table->merges[rank].left == left &&
                    table->merges[rank].right == right)
                    return rank;
            }
        if (__builtin_expect(slots[PITH_MERGE_BUCKET - 1] == UINT32_MAX, 1)) return UINT32_MAX;
    }
}

/* A symbol; size is that of its text in bytes. */
typedef struct pith__symbol {
    int32_t id;
    uint32_t size;
} pith__symbol;

/* Merges the symbols in place until no pair merges, and returns how many are left. Takes O(n log n)
 * for any merges. Uses scratch slots 1 and 2 for long words. Returns SIZE_MAX if memory is out,
 * which is noted in the encoding. */
size_t pith__bpe_merge(const pith__merges *table, pith__encoding *enc, pith__symbol *symbols,
                       size_t count);

/* ---- building a model ---- */

typedef struct pith__bpe_pair {
    pith_str left, right;
} pith__bpe_pair;

/* The contents of a file. Strings are spans that must live until the model is built. */
typedef struct pith__bpe_spec {
    pith__vocab_builder vocab;
    pith__bpe_pair *merges; /* by rank */
    size_t merge_count, merge_capacity;
    pith_str unk_token, prefix, suffix; /* size 0: none */
    bool fuse_unk, byte_fallback, ignore_merges;
} pith__bpe_spec;

/* Adds a merge, in spec->vocab.scratch. Returns false if memory is out. */
bool pith__bpe_add_merge(pith__bpe_spec *spec, pith_str left, pith_str right);
/* Splits a line "left right" into its two tokens. Returns false if it has another form. */
bool pith__bpe_split_merge(pith_str line, pith_str *left, pith_str *right);
/* Builds the model. If loader->frozen is set, vocabulary and merges come from there. */
pith_status pith__bpe_build(const void **model, const pith__bpe_spec *spec, pith__loader *loader);

extern const pith__model_desc pith__model_BPE;

#endif
