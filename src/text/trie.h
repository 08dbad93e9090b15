/* trie.h - a double-array trie over byte strings: the longest walk of a text from any byte costs
 * one load per byte.
 *
 * A node is a slot; the child of a node under byte c is slot base ^ c, and exists if its label is
 * c. Bases are unique and 256-aligned blocks hold all children of a node, so base ^ c never leaves
 * the array. Slots 0 to 255 match nothing: they are the children of leaves. If only one key
 * continues, there are no further nodes: the slot's value is that key with PITH_TRIE_TAIL set, and
 * the rest of the text is compared with the key itself. The arrays hold indices only, so a frozen
 * tokenizer uses them in place. */
#ifndef PITH_TEXT_TRIE_H
#define PITH_TEXT_TRIE_H

#include "text/pipeline.h"

#define PITH_TRIE_NONE UINT32_MAX
#define PITH_TRIE_TAIL 0x80000000u
#define PITH_TRIE_ROOT 256u

typedef struct pith__trie_slot {
    uint32_t base_label; /* base << 8 | label */
    uint32_t value;      /* the key that ends here, or PITH_TRIE_TAIL and the only key below, or
                            PITH_TRIE_NONE */
} pith__trie_slot;

typedef struct pith__trie {
    const pith__trie_slot *slots;
    uint32_t slot_count; /* a multiple of 256, at most 2^24 */
    uint32_t key_count;
    const uint32_t *starts; /* [key_count + 1]: key i is text[starts[i], starts[i + 1]) */
    const char *text;
} pith__trie;

/* Builds a trie whose values are the keys' indices. Of equal keys the last one counts; empty keys
 * are never found. The tables are in arena; scratch is for building. Returns PITH_ERR_UNSUPPORTED
 * beyond 2^24 slots or 2^31 bytes. */
pith_status pith__trie_build(pith__trie *trie, const pith_str *keys, size_t count,
                             pith__arena *arena, pith__arena *scratch, pith__stop *stop,
                             pith_error *err);
/* Write the tables to a frozen tokenizer, and open them from one. */
void pith__trie_save(const pith__trie *trie, pith__frozen_writer *writer);
pith_status pith__trie_open(pith__trie *trie, pith__loader *loader);

static inline pith_str pith__trie_key(const pith__trie *trie, uint32_t i) {
    return (pith_str){ trie->text + trie->starts[i], trie->starts[i + 1] - trie->starts[i] };
}

/* Steps from *slot to its child under the byte. Returns 0 if there is none. */
static inline int pith__trie_step(const pith__trie_slot *slots, pith__trie_slot *slot,
                                  unsigned char byte) {
    *slot = slots[(slot->base_label >> 8) ^ byte];
    return (unsigned char)slot->base_label == byte;
}

/* Returns the size of key i if the text begins with it, else 0. The first `known` bytes are known
 * to be equal. */
static inline uint32_t pith__trie_tail(const pith__trie *trie, uint32_t i, const char *text,
                                       uint32_t known, uint32_t size) {
    pith_str key = pith__trie_key(trie, i);
    bool fits = key.size > known && key.size <= size;
    return fits && memcmp(key.data + known, text + known, key.size - known) == 0
               ? (uint32_t)key.size
               : 0;
}

/* Returns the index of a key, or PITH_TRIE_NONE. */
static inline uint32_t pith__trie_get(const pith__trie *trie, pith_str key) {
    pith__trie_slot slot = trie->slots[PITH_TRIE_ROOT];
    for (size_t i = 0; i < key.size; i++) {
        if (!pith__trie_step(trie->slots, &slot, (unsigned char)key.data[i])) return PITH_TRIE_NONE;
        if (slot.value == PITH_TRIE_NONE || !(slot.value & PITH_TRIE_TAIL)) continue;
        return pith__str_eq(key, pith__trie_key(trie, slot.value ^ PITH_TRIE_TAIL))
                   ? slot.value ^ PITH_TRIE_TAIL
                   : PITH_TRIE_NONE;
    }
    return slot.value;
}

#endif
