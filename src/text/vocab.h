/* vocab.h - token strings and their ids, both ways, as tables without pointers.
 *
 * The hash of a string is a polynomial, so the hash of any part of a word follows from two prefix hashes:
 *   H(s) = sum of (byte + 1) * P^(n - 1 - i), mod 2^64;   H(a + b) = H(a) * P^|b| + H(b).
 * One look-up costs one slot and one comparison. Tables are read-only after they are built and shared by threads. */
#ifndef PITH_TEXT_VOCAB_H
#define PITH_TEXT_VOCAB_H

#include "text/pipeline.h"

/* The number of readable bytes behind the strings. */
enum { PITH_VOCAB_TAIL = 16 };

#define PITH_VOCAB_PRIME 0x9E3779B97F4A7C55u

typedef struct pith_vocab_slot {
    uint32_t tag;   /* high half of the mixed hash */
    uint32_t begin; /* in the pool */
    uint32_t size;  /* bytes; UINT32_MAX: an empty slot */
    int32_t id;
} pith_vocab_slot;

typedef struct pith_vocab {
    const pith_vocab_slot *slots; /* [mask + 1], at most half full */
    uint32_t mask;
    uint32_t count;   /* different strings */
    const char *pool; /* all strings, one behind the other, and 16 zeros */
    uint32_t pool_size;
    const uint32_t *by_id; /* [id_count] slot index, UINT32_MAX: no such token */
    int32_t id_count;      /* largest id + 1 */
    uint32_t longest;      /* bytes of the longest string */
} pith_vocab;

typedef struct pith_vocab_entry {
    const char *text;
    uint32_t size;
    int32_t id;
} pith_vocab_entry;

/* Collects entries, then builds. Later entries with the same string win, as in a JSON object. */
typedef struct pith_vocab_builder {
    pith_arena *scratch;
    pith_vocab_entry *entries;
    size_t count, capacity, bytes;
} pith_vocab_builder;

/* Adds an entry; text must stay valid until the vocabulary is built. Returns false if memory is out, or beyond 2^24
 * entries or 2^30 bytes. */
bool pith_vocab_add(pith_vocab_builder *builder, pith_str text, int32_t id);
/* Builds the tables in arena. Fails if memory is out, and for strings that were made to collide. */
pith_status pith_vocab_build(pith_vocab *vocab, const pith_vocab_builder *builder, pith_arena *arena, pith_error *err);
/* Write the tables to a frozen tokenizer, and open them from one, with all checks. */
void pith_vocab_save(const pith_vocab *vocab, pith_frozen_writer *writer);
pith_status pith_vocab_open(pith_vocab *vocab, pith_loader *loader);
/* The last step of a model's parse: pith_vocab_open if there is a frozen tokenizer, else pith_vocab_build. */
pith_status pith_vocab_take(pith_vocab *vocab, const pith_vocab_builder *builder, pith_loader *loader);
/* Parses {"token": id, …}. Faults are left in j. The caller must set builder->scratch. */
void pith_vocab_parse(pith_vocab_builder *builder, pith_json *j);

int32_t pith_vocab_id(const pith_vocab *vocab, pith_str text);  /* -1: none */
pith_str pith_vocab_token(const pith_vocab *vocab, int32_t id); /* data NULL: none */

/* For the descriptors of models whose data begin with their vocabulary. */
int32_t pith_vocab_model_id(const void *model, pith_str token);
pith_str pith_vocab_model_token(const void *model, int32_t id);
int32_t pith_vocab_model_size(const void *model);
int32_t pith_vocab_model_count(const void *model);

static inline uint64_t pith_vocab_step(uint64_t hash, unsigned char byte) { return hash * PITH_VOCAB_PRIME + byte + 1; }
static inline uint64_t pith_vocab_hash(uint64_t hash, const char *p, size_t size) {
    for (size_t i = 0; i < size; i++) hash = pith_vocab_step(hash, (unsigned char)p[i]);
    return hash;
}
/* Mixes a hash: the low half selects the first slot of the search, the high half is the tag. */
static inline uint64_t pith_vocab_mix(uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 29;
}
/* Returns the id of the string prefix + p[0, size), whose hash is given, or -1. */
static inline int32_t pith_vocab_find(const pith_vocab *vocab, uint64_t hash, pith_str prefix, const char *p,
                                      uint32_t size) {
    uint64_t mixed = pith_vocab_mix(hash);
    uint32_t tag = (uint32_t)(mixed >> 32);
    for (uint32_t i = (uint32_t)mixed & vocab->mask;; i = (i + 1) & vocab->mask) {
        const pith_vocab_slot *slot = &vocab->slots[i];
        if (slot->tag == tag && slot->size == prefix.size + size &&
            memcmp(vocab->pool + slot->begin + prefix.size, p, size) == 0 &&
            (!prefix.size || memcmp(vocab->pool + slot->begin, prefix.data, prefix.size) == 0))
            return slot->id;
        if (slot->size == UINT32_MAX) return -1;
    }
}

#endif
