/* hash.h - a fast 64-bit checksum, XXH64 with seed 0: finds damage, does not resist an attacker.
 * Source: the xxHash specification (xxhash_spec.md, XXH64). */
#ifndef PITH_BASE_HASH_H
#define PITH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that come in pieces; how they are cut does not matter. */
typedef struct pith_hash {
    uint64_t lanes[4], total;
    unsigned char block[32]; /* what is left of the pieces so far, total % 32 bytes */
} pith_hash;

void pith_hash_init(pith_hash *hash);
void pith_hash_add(pith_hash *hash, const void *data, size_t size);
uint64_t pith_hash_end(const pith_hash *hash);

/* All at once. */
uint64_t pith_hash_of(const void *data, size_t size);

#endif
