/* checksum.h - a fast 64-bit checksum, XXH64 with seed 0: it finds damage but does not resist an
 * attacker.
 * Source: the xxHash specification (xxhash_spec.md, XXH64). */
#ifndef PITH_BASE_CHECKSUM_H
#define PITH_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/private_symbol.h"
#include "base/stop.h"

/* A hash of bytes that arrive in pieces. The result does not depend on where they are cut. */
typedef struct pith__hash {
    uint64_t lanes[4], total;
    unsigned char block[32]; /* the last total % 32 bytes, not yet hashed */
} pith__hash;

PITH_PRIVATE void pith__hash_init(pith__hash *hash);
PITH_PRIVATE void pith__hash_add(pith__hash *hash, const void *data, size_t size);
PITH_PRIVATE uint64_t pith__hash_end(const pith__hash *hash);

/* The same of many bytes, piece by piece, until the call must end. */
PITH_PRIVATE pith_status pith__hash_add_until(pith__hash *hash, const void *data, size_t size,
                                              pith__stop *stop, pith_error *err);

/* The hash of bytes that are all in memory. */
PITH_PRIVATE uint64_t pith__hash_of(const void *data, size_t size);

#endif
