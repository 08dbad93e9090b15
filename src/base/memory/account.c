/* account.c - see account.h. Each block begins with its size, because free is not given one. */
#include "base/memory/account.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/os/clock.h"

/* Bytes before each block that hold its size. 16 keeps the alignment of malloc. */
#define HEAD ((size_t)16)

static void *refuse(pith__account *a, size_t bytes, bool limited) {
    atomic_store_explicit(&a->refused, bytes, memory_order_relaxed);
    if (limited) atomic_store_explicit(&a->limited, true, memory_order_relaxed);
    return NULL;
}

/* Frees what the pool holds; returns its bytes. */
static size_t account_empty_pool(pith__account *a) {
    size_t freed = pith__pool_empty(&a->pool);
    atomic_fetch_sub_explicit(&a->held, freed, memory_order_relaxed);
    return freed;
}

/* Counts `total` bytes as held, within the limit. */
static bool account_hold(pith__account *a, size_t total) {
    size_t held = atomic_load_explicit(&a->held, memory_order_relaxed);
    do {
        while (a->limit && (held > a->limit || total > a->limit - held)) {
            if (!account_empty_pool(a)) return false;
            held = atomic_load_explicit(&a->held, memory_order_relaxed);
        }
    } while (!atomic_compare_exchange_weak_explicit(&a->held, &held, held + total,
                                                    memory_order_relaxed, memory_order_relaxed));
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (held + total > peak &&
           !atomic_compare_exchange_weak_explicit(&a->peak, &peak, held + total,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    return true;
}

static char *account_ask_host(pith__account *a, size_t total) {
    uint64_t began = pith__clock_ns();
    char *block = a->host.alloc(a->host.user, total);
    pith__count(&a->counters, PITH_COUNT_allocations, 1);
    pith__count(&a->counters, PITH_COUNT_allocation_ns, pith__clock_ns() - began);
    return block;
}

/* A block from the pool counts as held already. A new one is counted first and asked for then, so
 * that threads together stay within the limit. If the host has none, the pool is given back to it,
 * and it is asked once more. */
static void *account_alloc(void *user, size_t bytes) {
    pith__account *a = user;
    size_t total;
    if (pith__add_overflows(bytes, HEAD, &total)) return refuse(a, bytes, false);
    char *block = pith__pool_take(&a->pool, total, &total);
    if (!block) {
        if (!account_hold(a, total)) return refuse(a, bytes, true);
        block = account_ask_host(a, total);
        if (!block && account_empty_pool(a)) block = account_ask_host(a, total);
        if (!block) {
            atomic_fetch_sub_explicit(&a->held, total, memory_order_relaxed);
            return refuse(a, bytes, false);
        }
    }
    memcpy(block, &total, sizeof total);
    return block + HEAD;
}

static void account_release(pith__account *a, char *block, size_t total) {
    atomic_fetch_sub_explicit(&a->held, total, memory_order_relaxed);
    a->host.free(a->host.user, block);
}

static void account_free(void *user, void *memory) {
    pith__account *a = user;
    if (!memory) return;
    char *block = (char *)memory - HEAD;
    size_t total, evicted;
    memcpy(&total, block, sizeof total);
    if (pith__pool_keep(&a->pool, block, total, &evicted))
        atomic_fetch_sub_explicit(&a->held, evicted, memory_order_relaxed);
    else
        account_release(a, block, total);
}

void pith__account_discard(const pith_allocator *allocator, void *memory) {
    size_t total;
    if (!memory || allocator->alloc != account_alloc) {
        pith__memory_free(allocator, memory);
        return;
    }
    char *block = (char *)pith__memory_base(memory) - HEAD;
    memcpy(&total, block, sizeof total);
    account_release(allocator->user, block, total);
}

pith_status pith__account_begin_pool(pith__account *a, size_t blocks, size_t bytes,
                                     pith_error *err) {
    size_t own = pith__pool_own_bytes(blocks, bytes);
    if (own && !account_hold(a, own)) {
        refuse(a, own, true);
        return pith__account_explain(a, pith__fail_memory(err, own), err);
    }
    pith_status status = pith__pool_init(&a->pool, &a->host, blocks, bytes, &a->counters, err);
    if (status) atomic_fetch_sub_explicit(&a->held, own, memory_order_relaxed);
    return status;
}

void pith__account_end(pith__account *a) {
    account_empty_pool(a);
    if (a->pool.items)
        atomic_fetch_sub_explicit(&a->held,
                                  pith__pool_own_bytes(a->pool.count_most, a->pool.bytes_most),
                                  memory_order_relaxed);
    pith__pool_destroy(&a->pool);
}

size_t pith__account_trim(const pith_allocator *allocator) {
    return allocator->alloc == account_alloc ? account_empty_pool(allocator->user) : 0;
}

void pith__account_init(pith__account *account, const pith_allocator *host, size_t limit,
                        size_t own) {
    *account = (pith__account){ .allocator = { account_alloc, account_free, account },
                                .host = *host,
                                .limit = limit,
                                .files = pith__account_files(host) };
    atomic_init(&account->held, own);
    atomic_init(&account->peak, own);
}

struct pith__held *pith__account_files(const pith_allocator *allocator) {
    const pith__account *a = allocator->alloc == account_alloc ? allocator->user : NULL;
    return a ? a->files : NULL;
}

struct pith__stop *pith__account_stop(const pith_allocator *allocator) {
    while (allocator && allocator->alloc == account_alloc) {
        const pith__account *a = allocator->user;
        if (a->stop) return a->stop;
        allocator = &a->host;
    }
    return NULL;
}

pith_status pith__account_explain(const pith__account *account, pith_status status,
                                  pith_error *err) {
    if (status != PITH_ERR_MEMORY || !atomic_load_explicit(&account->limited, memory_order_relaxed))
        return status;
    return pith__fail_at(
        err, status,
        "raise pith_open_options.memory_limit: the memory limit is %zu bytes: ", account->limit);
}

pith_status pith__account_settle(pith__account *account, pith_status status, pith_error *err) {
    size_t refused = atomic_load_explicit(&account->refused, memory_order_relaxed);
    if (!status && refused) status = pith__fail_memory(err, refused);
    return pith__account_explain(account, status, err);
}

pith_status pith__account_explain_for(const pith_allocator *allocator, pith_status status,
                                      pith_error *err) {
    return allocator->alloc == account_alloc ? pith__account_explain(allocator->user, status, err)
                                             : status;
}

bool pith__account_admits(const pith_allocator *allocator, size_t bytes) {
    if (allocator->alloc != account_alloc) return true;
    pith__account *a = allocator->user;
    size_t held;
    do {
        held = atomic_load_explicit(&a->held, memory_order_relaxed);
        if (!a->limit || (held <= a->limit && bytes <= a->limit - held)) return true;
    } while (account_empty_pool(a));
    refuse(a, bytes, true);
    return false;
}

size_t pith__account_room(const pith_allocator *allocator) {
    if (allocator->alloc != account_alloc) return SIZE_MAX;
    const pith__account *a = allocator->user;
    size_t held = atomic_load_explicit(&a->held, memory_order_relaxed),
           pooled = atomic_load_explicit(&a->pool.bytes, memory_order_relaxed);
    if (!a->limit) return SIZE_MAX;
    held -= pooled < held ? pooled : held;
    return held < a->limit ? a->limit - held : 0;
}

const pith_allocator *pith__account_host(const pith_allocator *allocator) {
    return allocator->alloc == account_alloc ? &((const pith__account *)allocator->user)->host
                                             : allocator;
}
