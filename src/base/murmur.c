/* murmur.c - see murmur.h. */
#include "base/murmur.h"

static uint32_t murmur_turn(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

static uint32_t murmur_scramble(uint32_t k) {
    return murmur_turn(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t pith__murmur3_32(const void *data, size_t size, uint32_t seed) {
    const uint8_t *p = data;
    uint32_t h = seed, tail = 0;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        uint32_t k = (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 |
                     (uint32_t)p[i + 3] << 24;
        h = murmur_turn(h ^ murmur_scramble(k), 13) * 5 + 0xe6546b64u;
    }
    for (size_t left = size - i; left > 0; left--) tail = tail << 8 | p[i + left - 1];
    h ^= murmur_scramble(tail) ^ (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}
