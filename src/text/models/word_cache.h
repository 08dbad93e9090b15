/* word_cache.h - a cache of the tokens of recent words, for models whose tokens cover the text
 * without gaps.
 *
 * Two direct-mapped tables in the encoding's scratch: a word has one possible place, and a newer
 * word replaces the older. The table for short words has 512 KiB: a larger one leaves L2, a smaller
 * one misses more, and either costs some percent. The table for long words has 256 KiB; these are
 * mostly clauses of languages without spaces. A place is a few cache lines. The word's bytes and
 * the ends of its tokens grow from its beginning, the ids from its end. Words that do not fit are
 * not cached. */
#ifndef PITH_TEXT_MODELS_WORD_CACHE_H
#define PITH_TEXT_MODELS_WORD_CACHE_H

#include "text/pipeline.h"

enum {
    PITH_WORD_SLOT = 4,
    PITH_WORD_SHORT = 32, /* bytes */
    PITH_WORD_LONG = 255,
    PITH_WORD_SHORT_PLACE = 128, /* bytes of a place */
    PITH_WORD_LONG_PLACE = 512,
    PITH_WORD_SHORT_LOG2 = 12, /* places */
    PITH_WORD_LONG_LOG2 = 9
};

typedef struct pith__word {
    uint8_t size, count; /* size 0: empty */
    char room[];
} pith__word;

/* Returns the bytes of room for a word of this size. */
static inline size_t pith__word_room(size_t size) {
    return (size > PITH_WORD_SHORT ? PITH_WORD_LONG_PLACE : PITH_WORD_SHORT_PLACE) -
           sizeof(pith__word);
}

static inline uint64_t pith__word_load(const char *bytes, size_t size) {
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

/* Returns the place of a word of 1 to PITH_WORD_LONG bytes, or NULL if memory is out, which is
 * noted in the encoding. */
static inline pith__word *pith__word_place(pith__encoding *enc, const char *bytes, size_t size) {
    const size_t shorts = (size_t)PITH_WORD_SHORT_PLACE << PITH_WORD_SHORT_LOG2,
                 longs = (size_t)PITH_WORD_LONG_PLACE << PITH_WORD_LONG_LOG2;
    char *places = pith__encoding_scratch(enc, PITH_WORD_SLOT, shorts + longs);
    size_t tail = size < 8 ? size : 8;
    uint64_t hash = pith__word_load(bytes, size) * 0x9E3779B97F4A7C15u;
    hash ^= (pith__word_load(bytes + size - tail, tail) + size) * 0xD6E8FEB86659FD93u;
    for (size_t i = 8; i + 8 < size; i += 8)
        hash = (hash ^ pith__word_load(bytes + i, 8)) * 0xA0761D6478BD642Fu;
    hash ^= hash >> 32;
    hash *= 0x9E3779B97F4A7C15u;
    size_t place = size > PITH_WORD_SHORT
                       ? shorts + (hash >> (64 - PITH_WORD_LONG_LOG2)) * PITH_WORD_LONG_PLACE
                       : (hash >> (64 - PITH_WORD_SHORT_LOG2)) * PITH_WORD_SHORT_PLACE;
    return places ? (pith__word *)(void *)(places + place) : NULL;
}

/* Returns the offset of a token's id in a room of this size. */
static inline size_t pith__word_id_at(size_t room, unsigned token) {
    return room - (token + 1) * sizeof(int32_t);
}

/* Emits the word's tokens if they are cached. begin is the word's offset in enc->text. */
static inline bool pith__word_emit(const pith__word *word, pith__encoding *enc, uint32_t begin,
                                   size_t size) {
    if (word->size != size || memcmp(word->room, enc->text.data + begin, size) != 0) return false;
    uint32_t at = begin;
    size_t room = pith__word_room(size);
    for (unsigned i = 0; i < word->count; i++) {
        int32_t id;
        memcpy(&id, word->room + pith__word_id_at(room, i), sizeof id);
        uint32_t end = begin + (uint8_t)word->room[size + i];
        pith__encoding_token(enc, id, at, end);
        at = end;
    }
    return true;
}

/* Caches the tokens emitted since `first`, if they fit. */
static inline void pith__word_store(pith__word *word, const pith__encoding *enc, size_t first,
                                    uint32_t begin, size_t size) {
    size_t count = enc->count - first, room = pith__word_room(size);
    if (size + count * (1 + sizeof(int32_t)) > room) return;
    for (size_t i = 0; i < count; i++)
        if (enc->begin[first + i] != (i ? enc->end[first + i - 1] : begin)) return;
    word->size = (uint8_t)size;
    word->count = (uint8_t)count;
    memcpy(word->room, enc->text.data + begin, size);
    for (size_t i = 0; i < count; i++) {
        word->room[size + i] = (char)(enc->end[first + i] - begin);
        memcpy(word->room + pith__word_id_at(room, (unsigned)i), &enc->ids[first + i],
               sizeof(int32_t));
    }
}

/* The tokens of a word: those remembered, or what encode emits. */
static inline pith_status pith__word_encode(
    const void *model, pith__encoding *enc, pith__piece piece,
    pith_status (*encode)(const void *model, pith__encoding *enc, pith__piece piece)) {
    size_t size = piece.end - piece.begin, first = enc->count;
    if (size > PITH_WORD_LONG) return encode(model, enc, piece);
    pith__word *word = pith__word_place(enc, enc->text.data + piece.begin, size);
    if (!word) return PITH_ERR_MEMORY;
    if (pith__word_emit(word, enc, piece.begin, size)) return PITH_OK;
    PITH_TRY(encode(model, enc, piece));
    pith__word_store(word, enc, first, piece.begin, size);
    return PITH_OK;
}

#endif
