/* murmur.h - MurmurHash3, x86, 32 bits. Source: Austin Appleby, smhasher, MurmurHash3.cpp (public
 * domain). */
#ifndef PITH_BASE_MURMUR_H
#define PITH_BASE_MURMUR_H

#include <stddef.h>
#include <stdint.h>

uint32_t pith__murmur3_32(const void *data, size_t size, uint32_t seed);

/* The absolute value of a hash as a signed number; at most 2^31. */
static inline uint32_t pith__murmur3_abs(uint32_t hash) { return hash >> 31 ? 0u - hash : hash; }

/* The number of a word: that value. Of the one hash for which it is 2^31, the largest that fits 31
 * bits. */
static inline uint32_t pith__murmur3_number(uint32_t hash) {
    return hash == 0x80000000u ? INT32_MAX : pith__murmur3_abs(hash);
}

#endif
