/* block_pool.h - freed blocks of memory that are kept for the next request.
 *
 * Work on texts frees blocks and soon asks for blocks of about the same size. A pool answers such a
 * request with the smallest block that is large enough and not much too large: at most a quarter,
 * for small requests four times as large. It keeps at most so many blocks and bytes; the block that
 * was freed longest ago goes first. Thread-safe. */
#ifndef PITH_BASE_MEMORY_BLOCK_POOL_H
#define PITH_BASE_MEMORY_BLOCK_POOL_H

#include <pthread.h>

#include "base/counters.h"
#include "base/memory/memory.h"

enum { PITH_POOL_BLOCKS = 32, PITH_POOL_BLOCKS_MOST = 4096 };
#define PITH_POOL_BYTES ((size_t)16 << 20)
/* Smaller blocks are left to the host's allocator, so that they do not push the others out. */
#define PITH_POOL_SMALLEST ((size_t)256)

typedef struct pith__pooled {
    void *block;
    size_t bytes;
    uint64_t freed; /* when, in the pool's own count */
} pith__pooled;

typedef struct pith__pool {
    pthread_mutex_t lock; /* guards the members below */
    pith__pooled *items;  /* [count_most]; NULL: the pool keeps nothing */
    size_t count_most, bytes_most;
    atomic_size_t count, bytes; /* may be read without the lock */
    uint64_t clock;
    pith_allocator host;
    pith__counters *counters;
} pith__pool;

/* Returns the bytes that such a pool takes for itself. */
size_t pith__pool_own_bytes(size_t blocks, size_t bytes);
/* A pool that keeps nothing if blocks or bytes is 0. Blocks come from, and go back to, the host's
 * allocator. */
pith_status pith__pool_init(pith__pool *pool, const pith_allocator *host, size_t blocks,
                            size_t bytes, pith__counters *counters, pith_error *err);
void pith__pool_destroy(pith__pool *pool);

/* Returns a block of at least `bytes`, and sets *got to its size; NULL: there is none, and *got is
 * unchanged. */
void *pith__pool_take(pith__pool *pool, size_t bytes, size_t *got);
/* Keeps the block of this size, or returns false: the caller frees it. *evicted is set to the bytes
 * of the blocks that were freed to make room. */
bool pith__pool_keep(pith__pool *pool, void *block, size_t bytes, size_t *evicted);
size_t pith__pool_count(const pith__pool *pool);
/* Frees all blocks. Returns their bytes. */
size_t pith__pool_empty(pith__pool *pool);

#endif
