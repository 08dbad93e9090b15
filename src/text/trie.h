/* trie.h - a double-array trie over byte strings: the longest walk of a text from any byte costs one load per byte.
 *
 * A node is a slot; the child of a node under byte c lies in slot base ^ c and is there if its label is c. Bases are
 * unique and 256-aligned blocks hold all children of a node, so base ^ c never leaves the array. Slots 0 to 255 match
 * nothing: they are the children of leaves. The array holds indices only and may be mapped as it is. */
#ifndef PITH_TEXT_TRIE_H
#define PITH_TEXT_TRIE_H

#include "text/pipeline.h"

#define PITH_TRIE_NONE UINT32_MAX
#define PITH_TRIE_ROOT 256u

typedef struct pith_trie_slot {
    uint32_t base_label; /* base << 8 | label */
    uint32_t value;      /* of the key that ends here, or PITH_TRIE_NONE */
} pith_trie_slot;

typedef struct pith_trie {
    const pith_trie_slot *slots;
    uint32_t count; /* of slots, a multiple of 256, at most 2^24 */
} pith_trie;

/* Values are the keys' indices; of equal keys the last one counts; empty keys are left out. The slots lie in arena,
 * what building needs in scratch. PITH_ERR_UNSUPPORTED beyond 2^24 slots. */
pith_status pith_trie_build(pith_trie *trie, const pith_str *keys, size_t count, pith_arena *arena, pith_arena *scratch,
                            pith_error *err);

/* The array into an image, and out of one; values must be below value_count. */
void pith_trie_save(const pith_trie *trie, pith_image_writer *writer);
pith_status pith_trie_open(pith_trie *trie, uint32_t value_count, pith_loader *loader);

/* Steps from *slot to its child under the byte; false: there is none. */
static inline int pith_trie_step(const pith_trie_slot *slots, pith_trie_slot *slot, unsigned char byte) {
    *slot = slots[(slot->base_label >> 8) ^ byte];
    return (unsigned char)slot->base_label == byte;
}

static inline uint32_t pith_trie_get(const pith_trie *trie, pith_str key) {
    pith_trie_slot slot = trie->slots[PITH_TRIE_ROOT];
    for (size_t i = 0; i < key.size; i++)
        if (!pith_trie_step(trie->slots, &slot, (unsigned char)key.data[i])) return PITH_TRIE_NONE;
    return slot.value;
}

#endif
