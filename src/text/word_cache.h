/* word_cache.h - the tokens of words seen before, for models whose tokens lie end to end.
 *
 * A direct-mapped table of 512 KiB in the call's scratch: a word has one place, a newer word takes it. Larger tables
 * leave L2, smaller ones miss more; doubling either way costs some percent. Longer words come back too seldom. */
#ifndef PITH_TEXT_WORD_CACHE_H
#define PITH_TEXT_WORD_CACHE_H

#include "text/pipeline.h"

enum { PITH_WORD_SLOT = 4, PITH_WORD_COUNT = 4096, PITH_WORD_BYTES = 46, PITH_WORD_TOKENS = 16 };

typedef struct pith_word {
    uint8_t size, count; /* size 0: empty */
    char bytes[PITH_WORD_BYTES];
    uint8_t end[PITH_WORD_TOKENS];
    int32_t ids[PITH_WORD_TOKENS];
} pith_word;

static inline uint64_t pith_word_load(const char *bytes, size_t size) {
    uint64_t eight;
    uint32_t low, high;
    if (size >= 8) {
        memcpy(&eight, bytes, 8);
        return eight;
    }
    if (size >= 4) {
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + size - 4, 4);
        return (uint64_t)high << 32 | low;
    }
    return (uint64_t)(unsigned char)bytes[0] | (uint64_t)(unsigned char)bytes[size / 2] << 8 |
           (uint64_t)(unsigned char)bytes[size - 1] << 16;
}

/* The place of a word of 1 to PITH_WORD_BYTES bytes; NULL: out of memory, noted in the call. */
static inline pith_word *pith_word_place(pith_call *call, const char *bytes, size_t size) {
    pith_word *words = pith_call_scratch(call, PITH_WORD_SLOT, PITH_WORD_COUNT * sizeof *words);
    size_t tail = size < 8 ? size : 8;
    uint64_t hash = pith_word_load(bytes, size) * 0x9E3779B97F4A7C15u;
    hash ^= (pith_word_load(bytes + size - tail, tail) + size) * 0xD6E8FEB86659FD93u;
    for (size_t i = 8; i + 8 < size; i += 8) hash = (hash ^ pith_word_load(bytes + i, 8)) * 0xA0761D6478BD642Fu;
    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15u;
    return words ? &words[hash >> 52] : NULL;
}

/* Emits the word's tokens if it is there; begin: of the word in call->text. */
static inline bool pith_word_emit(const pith_word *word, pith_call *call, uint32_t begin, size_t size) {
    if (word->size != size || memcmp(word->bytes, call->text.data + begin, size) != 0) return false;
    uint32_t at = begin;
    for (unsigned i = 0; i < word->count; i++) {
        pith_call_token(call, word->ids[i], at, begin + word->end[i]);
        at = begin + word->end[i];
    }
    return true;
}

/* Remembers the tokens emitted since `first`, if they fit. */
static inline void pith_word_store(pith_word *word, const pith_call *call, size_t first, uint32_t begin, size_t size) {
    size_t count = call->count - first;
    if (count > PITH_WORD_TOKENS) return;
    for (size_t i = 0; i < count; i++)
        if (call->begin[first + i] != (i ? call->end[first + i - 1] : begin)) return;
    word->size = (uint8_t)size;
    word->count = (uint8_t)count;
    memcpy(word->bytes, call->text.data + begin, size);
    for (size_t i = 0; i < count; i++) {
        word->ids[i] = call->ids[first + i];
        word->end[i] = (uint8_t)(call->end[first + i] - begin);
    }
}

#endif
