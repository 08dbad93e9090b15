/* bpe.h - the merging of byte-pair encoding, apart from where symbols come from and what they are called. */
#ifndef PITH_TEXT_BPE_H
#define PITH_TEXT_BPE_H

#include "text/pipeline.h"

/* The pair (left, right) becomes id. The lower rank goes first, then the one further left. */
typedef struct pith_merge {
    int32_t left, right, id; /* left < 0: an empty slot of the table */
    uint32_t rank;
} pith_merge;

typedef struct pith_merges {
    const pith_merge *slots; /* open addressing */
    uint32_t slot_count;
    uint32_t rank_count;
    uint64_t seed;
} pith_merges;

/* merges[i] has rank i; seed: anything a file cannot foresee. Two merges of one pair: PITH_ERR_FORMAT. */
pith_status pith_merges_build(pith_merges *table, const pith_merge *merges, size_t count, uint64_t seed,
                              pith_arena *arena, pith_error *err);

static inline uint32_t pith_merges_home(const pith_merges *table, int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) ^ table->seed;
    hash *= 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
    return (uint32_t)((hash >> 32) * table->slot_count >> 32);
}

/* NULL: the pair does not merge. */
static inline const pith_merge *pith_merges_find(const pith_merges *table, int32_t left, int32_t right) {
    for (uint32_t i = pith_merges_home(table, left, right);;) {
        const pith_merge *slot = &table->slots[i];
        if (slot->left == left && slot->right == right) return slot;
        if (slot->left < 0) return NULL;
        if (++i == table->slot_count) i = 0;
    }
}

/* size: of the text it stands for. */
typedef struct pith_symbol {
    int32_t id;
    uint32_t size;
} pith_symbol;

/* Merges until nothing merges and returns how many symbols are left, in place. O(n log n) whatever the merges. Uses
 * scratch slots 1 to 3 for long words. SIZE_MAX: out of memory, noted in the call. */
size_t pith_bpe_merge(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count);

#endif
