/* block_pool.c - see block_pool.h. A pool holds few blocks, so it looks through all of them. */
#include "base/memory/block_pool.h"

#include "base/error.h"

/* A block answers a request if it is at most this part of the request larger; one of less than
 * SMALL bytes, if it is at most SPARE_SMALL times larger. More wastes memory. Less leaves requests
 * unanswered whose size changes from call to call, such as those of plans; for small ones the waste
 * does not matter. */
#define SPARE_PART 4
#define SMALL ((size_t)32 << 10)
#define SPARE_SMALL 3

#ifdef PITH_SANITIZED
/* The sanitizers watch the ends of blocks. A block that is larger than the request would hide an
 * access behind its end, and a block that waits in the pool must not be touched. */
#include <sanitizer/asan_interface.h>
#define POOL_EXACT 1
#define POOL_HIDE(block, bytes) ASAN_POISON_MEMORY_REGION(block, bytes)
#define POOL_SHOW(block, bytes) ASAN_UNPOISON_MEMORY_REGION(block, bytes)
#else
#define POOL_EXACT 0
#define POOL_HIDE(block, bytes) ((void)(block))
#define POOL_SHOW(block, bytes) ((void)(block))
#endif

size_t pith__pool_own_bytes(size_t blocks, size_t bytes) {
    return bytes ? blocks * sizeof(pith__pooled) : 0;
}

pith_status pith__pool_init(pith__pool *pool, const pith_allocator *host, size_t blocks,
                            size_t bytes, pith__counters *counters, pith_error *err) {
    *pool = (pith__pool){
        .host = *host, .count_most = blocks, .bytes_most = bytes, .counters = counters
    };
    size_t own = pith__pool_own_bytes(blocks, bytes);
    if (!own) return PITH_OK;
    pith__pooled *items = host->alloc(host->user, own);
    if (!items) return pith__fail_memory(err, own);
    if (pthread_mutex_init(&pool->lock, NULL)) {
        host->free(host->user, items);
        return pith__fail_memory(err, sizeof pool->lock);
    }
    pool->items = items;
    return PITH_OK;
}

void pith__pool_destroy(pith__pool *pool) {
    if (!pool->items) return;
    pith__pool_empty(pool);
    pthread_mutex_destroy(&pool->lock);
    pool->host.free(pool->host.user, pool->items);
    pool->items = NULL;
}

/* Takes an item out; the lock is held. */
static pith__pooled pool_remove(pith__pool *pool, size_t index) {
    pith__pooled item = pool->items[index];
    pool->items[index] = pool->items[--pool->count];
    pool->bytes -= item.bytes;
    POOL_SHOW(item.block, item.bytes);
    return item;
}

static size_t pool_fit(const pith__pool *pool, size_t bytes) {
    size_t spare = bytes < SMALL ? bytes * SPARE_SMALL : bytes / SPARE_PART;
    if (POOL_EXACT) spare = 0;
    size_t most = bytes + spare, best = pool->count;
    for (size_t i = 0; i < pool->count; i++) {
        size_t has = pool->items[i].bytes;
        if (has >= bytes && has <= most && (best == pool->count || has < pool->items[best].bytes))
            best = i;
    }
    return best;
}

void *pith__pool_take(pith__pool *pool, size_t bytes, size_t *got) {
    if (!pool->items || bytes < PITH_POOL_SMALLEST || bytes > pool->bytes_most) return NULL;
    pith__pooled item = { 0 };
    pthread_mutex_lock(&pool->lock);
    size_t fit = pool_fit(pool, bytes);
    if (fit < pool->count) item = pool_remove(pool, fit);
    pthread_mutex_unlock(&pool->lock);
    pith__count(pool->counters, item.block ? PITH_COUNT_pool_hits : PITH_COUNT_pool_misses, 1);
    if (item.block) *got = item.bytes;
    return item.block;
}

static size_t pool_oldest(const pith__pool *pool) {
    size_t oldest = 0;
    for (size_t i = 1; i < pool->count; i++)
        if (pool->items[i].freed < pool->items[oldest].freed) oldest = i;
    return oldest;
}

bool pith__pool_keep(pith__pool *pool, void *block, size_t bytes, size_t *evicted) {
    *evicted = 0;
    if (!pool->items || bytes < PITH_POOL_SMALLEST || bytes > pool->bytes_most) return false;
    pthread_mutex_lock(&pool->lock);
    while (pool->count &&
           (pool->count == pool->count_most || pool->bytes > pool->bytes_most - bytes)) {
        pith__pooled old = pool_remove(pool, pool_oldest(pool));
        *evicted += old.bytes;
        pool->host.free(pool->host.user, old.block);
        pith__count(pool->counters, PITH_COUNT_pool_evictions, 1);
    }
    POOL_HIDE(block, bytes);
    pool->items[pool->count++] = (pith__pooled){ block, bytes, ++pool->clock };
    pool->bytes += bytes;
    pthread_mutex_unlock(&pool->lock);
    return true;
}

size_t pith__pool_count(const pith__pool *pool) {
    return atomic_load_explicit(&pool->count, memory_order_relaxed);
}

size_t pith__pool_empty(pith__pool *pool) {
    if (!pool->items) return 0;
    size_t freed = 0;
    pthread_mutex_lock(&pool->lock);
    while (pool->count) {
        pith__pooled item = pool_remove(pool, pool->count - 1);
        freed += item.bytes;
        pool->host.free(pool->host.user, item.block);
    }
    pthread_mutex_unlock(&pool->lock);
    return freed;
}
