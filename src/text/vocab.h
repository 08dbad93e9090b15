/* vocab.h - token strings and their ids, both ways, as tables without pointers.
 *
 * The hash of a string is a polynomial, so the hash of any part of a word follows from two prefix
 * hashes:
 *   H(s) = sum of (byte + 1) * P^(n - 1 - i), mod 2^64;   H(a + b) = H(a) * P^|b| + H(b).
 * One look-up costs one slot and one comparison. Tables are read-only after they are built and
 * shared by threads. */
#ifndef PITH_TEXT_VOCAB_H
#define PITH_TEXT_VOCAB_H

#include "text/pipeline.h"

/* The number of readable bytes behind the strings. */
enum { PITH_VOCAB_TAIL = 16 };

#define PITH_VOCAB_PRIME 0x9E3779B97F4A7C55u

typedef struct pith__vocab_slot {
    uint32_t tag;   /* high half of the mixed hash */
    uint32_t begin; /* in the pool */
    uint32_t size;  /* bytes; UINT32_MAX: an empty slot */
    int32_t id;
} pith__vocab_slot;

typedef struct pith__vocab {
    const pith__vocab_slot *slots; /* [mask + 1], at most half full */
    uint32_t mask;
    uint32_t count;   /* different strings */
    const char *pool; /* all strings, one behind the other, and 16 zeros */
    uint32_t pool_size;
    const uint32_t *by_id; /* [id_count] slot index, UINT32_MAX: no such token */
    int32_t id_count;      /* largest id + 1 */
    uint32_t longest;      /* bytes of the longest string */
} pith__vocab;

typedef struct pith__vocab_entry {
    const char *text;
    uint32_t size;
    int32_t id;
} pith__vocab_entry;

/* Collects entries, then builds. Later entries with the same string win, as in a JSON object. */
typedef struct pith__vocab_builder {
    pith__arena *scratch;
    pith__vocab_entry *entries;
    size_t count, capacity, bytes;
} pith__vocab_builder;

/* Adds an entry; text must stay valid until the vocabulary is built. Returns false if memory is
 * out, or beyond 2^24 entries or 2^30 bytes. */
bool pith__vocab_add(pith__vocab_builder *builder, pith_str text, int32_t id);
/* Builds the tables in arena. Fails if memory is out, and for strings that were made to collide. */
pith_status pith__vocab_build(pith__vocab *vocab, const pith__vocab_builder *builder,
                              pith__arena *arena, pith__stop *stop, pith_error *err);
/* Write the tables to a frozen tokenizer, and open them from one, with all checks. */
void pith__vocab_save(const pith__vocab *vocab, pith__frozen_writer *writer);
pith_status pith__vocab_open(pith__vocab *vocab, pith__loader *loader);
/* The last step of a model's parse: pith__vocab_open if there is a frozen tokenizer, else
 * pith__vocab_build. */
pith_status pith__vocab_take(pith__vocab *vocab, const pith__vocab_builder *builder,
                             pith__loader *loader);
/* Parses {"token": id, …}. Faults are left in j. The caller must set builder->scratch. */
void pith__vocab_parse(pith__vocab_builder *builder, pith__json *j);

int32_t pith__vocab_id(const pith__vocab *vocab, pith_str text);  /* -1: none */
pith_str pith__vocab_token(const pith__vocab *vocab, int32_t id); /* data NULL: none */

/* For the descriptors of models whose data begin with their vocabulary. */
int32_t pith__vocab_model_id(const void *model, pith_str token);
pith_str pith__vocab_model_token(const void *model, int32_t id);
int32_t pith__vocab_model_size(const void *model);
int32_t pith__vocab_model_count(const void *model);

static inline uint64_t pith__vocab_step(uint64_t hash, unsigned char byte) {
    return hash * PITH_VOCAB_PRIME + byte + 1;
}
static inline uint64_t pith__vocab_hash(uint64_t hash, const char *p, size_t size) {
    for (size_t i = 0; i < size; i++) hash = pith__vocab_step(hash, (unsigned char)p[i]);
    return hash;
}
/* Mixes a hash: the low half selects the first slot of the search, the high half is the tag. */
static inline uint64_t pith__vocab_mix(uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 29;
}
/* Returns the id of the string prefix + p[0, size), whose hash is given, or -1. */
static inline int32_t pith__vocab_find(const pith__vocab *vocab, uint64_t hash, pith_str prefix,
                                       const char *p, uint32_t size) {
    uint64_t mixed = pith__vocab_mix(hash);
    uint32_t tag = (uint32_t)(mixed >> 32);
    for (uint32_t i = (uint32_t)mixed & vocab->mask;; i = (i + 1) & vocab->mask) {
        const pith__vocab_slot *slot = &vocab->slots[i];
        if (slot->tag == tag && slot->size == prefix.size + size &&
            memcmp(vocab->pool + slot->begin + prefix.size, p, size) == 0 &&
            (!prefix.size || memcmp(vocab->pool + slot->begin, prefix.data, prefix.size) == 0))
            return slot->id;
        if (slot->size == UINT32_MAX) return -1;
    }
}

#endif
