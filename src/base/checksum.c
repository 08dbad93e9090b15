/* checksum.c - see checksum.h. Four lanes of 64 bits take 32 bytes per round. The tail is added in
 * steps of 8, 4 and 1 bytes. */
#include "base/checksum.h"

#include <string.h>

#include "base/error.h"

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static uint64_t read32(const unsigned char *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t read64(const unsigned char *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static uint64_t mix(uint64_t lane, uint64_t x) { return rotate(lane + x * P2, 31) * P1; }

static uint64_t hash_merge(uint64_t h, uint64_t lane) { return (h ^ mix(0, lane)) * P1 + P4; }

void pith__hash_init(pith__hash *h) { *h = (pith__hash){ .lanes = { P1 + P2, P2, 0, 0 - P1 } }; }

static void take_blocks(pith__hash *h, const unsigned char *p, size_t blocks) {
    uint64_t a = h->lanes[0], b = h->lanes[1], c = h->lanes[2], d = h->lanes[3];
    for (; blocks; blocks--, p += 32) {
        a = mix(a, read64(p));
        b = mix(b, read64(p + 8));
        c = mix(c, read64(p + 16));
        d = mix(d, read64(p + 24));
    }
    h->lanes[0] = a, h->lanes[1] = b, h->lanes[2] = c, h->lanes[3] = d;
}

void pith__hash_add(pith__hash *h, const void *data, size_t size) {
    const unsigned char *p = data;
    size_t filled = h->total % 32, rest = 32 - filled;
    h->total += size;
    if (filled && size >= rest) {
        memcpy(h->block + filled, p, rest);
        take_blocks(h, h->block, 1);
        p += rest, size -= rest, filled = 0;
    }
    if (!filled) {
        take_blocks(h, p, size / 32);
        p += size / 32 * 32, size %= 32;
    }
    if (size) memcpy(h->block + filled, p, size);
}

/* The last steps: the four lanes become one (with fewer than 32 bytes there is only the third,
 * which holds the seed), then come the length, the tail, and a mixing in which every bit of the sum
 * reaches every bit of the result. */
uint64_t pith__hash_end(const pith__hash *hash) {
    const uint64_t *lanes = hash->lanes;
    const unsigned char *p = hash->block;
    size_t left = hash->total % 32;
    uint64_t h = lanes[2] + P5;
    if (hash->total >= 32) {
        h = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
        for (int i = 0; i < 4; i++) h = hash_merge(h, lanes[i]);
    }
    h += hash->total;
    for (; left >= 8; left -= 8, p += 8) h = rotate(h ^ mix(0, read64(p)), 27) * P1 + P4;
    for (; left >= 4; left -= 4, p += 4) h = rotate(h ^ read32(p) * P1, 23) * P2 + P3;
    for (; left; left--, p++) h = rotate(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

uint64_t pith__hash_of(const void *data, size_t size) {
    pith__hash hash;
    pith__hash_init(&hash);
    pith__hash_add(&hash, data, size);
    return pith__hash_end(&hash);
}

pith_status pith__hash_add_until(pith__hash *hash, const void *data, size_t size, pith__stop *stop,
                                 pith_error *err) {
    enum { PIECE = 4 << 20 };
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < PIECE ? size - at : PIECE;
        PITH_TRY(pith__stop_check(stop, err));
        pith__hash_add(hash, (const char *)data + at, n);
    }
    return PITH_OK;
}
