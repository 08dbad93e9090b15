/* account.c - see account.h. Each block begins with its size, because free is not given one. */
#include "base/account.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"

/* Bytes before each block that hold its size. 16 keeps the alignment of malloc. */
#define HEAD ((size_t)16)

static void *refuse(pith_account *a, size_t bytes, bool limited) {
    atomic_store_explicit(&a->refused, bytes, memory_order_relaxed);
    if (limited) atomic_store_explicit(&a->limited, true, memory_order_relaxed);
    return NULL;
}

static void *account_alloc(void *user, size_t bytes) {
    pith_account *a = user;
    size_t total, held = atomic_load_explicit(&a->held, memory_order_relaxed);
    if (pith_add_overflows(bytes, HEAD, &total)) return refuse(a, bytes, false);
    do {
        if (a->limit && (held > a->limit || total > a->limit - held)) return refuse(a, bytes, true);
    } while (!atomic_compare_exchange_weak_explicit(&a->held, &held, held + total, memory_order_relaxed,
                                                    memory_order_relaxed));
    uint64_t began = pith_clock_ns();
    char *block = a->host.alloc(a->host.user, total);
    pith_count(&a->counters, PITH_COUNT_allocations, 1);
    pith_count(&a->counters, PITH_COUNT_allocation_ns, pith_clock_ns() - began);
    if (!block) {
        atomic_fetch_sub_explicit(&a->held, total, memory_order_relaxed);
        return refuse(a, bytes, false);
    }
    size_t peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
    while (held + total > peak && !atomic_compare_exchange_weak_explicit(&a->peak, &peak, held + total,
                                                                         memory_order_relaxed, memory_order_relaxed)) {}
    memcpy(block, &total, sizeof total);
    return block + HEAD;
}

static void account_free(void *user, void *memory) {
    pith_account *a = user;
    if (!memory) return;
    char *block = (char *)memory - HEAD;
    size_t total;
    memcpy(&total, block, sizeof total);
    atomic_fetch_sub_explicit(&a->held, total, memory_order_relaxed);
    a->host.free(a->host.user, block);
}

void pith_account_init(pith_account *account, const pith_allocator *host, size_t limit, size_t own) {
    *account = (pith_account){ .allocator = { account_alloc, account_free, account }, .host = *host, .limit = limit };
    atomic_init(&account->held, own);
    atomic_init(&account->peak, own);
}

pith_status pith_account_explain(const pith_account *account, pith_status status, pith_error *err) {
    if (status != PITH_ERR_MEMORY || !atomic_load_explicit(&account->limited, memory_order_relaxed)) return status;
    return pith_fail_at(err, status, "the memory limit is %zu bytes: ", account->limit);
}

pith_status pith_account_settle(pith_account *account, pith_status status, pith_error *err) {
    size_t refused = atomic_load_explicit(&account->refused, memory_order_relaxed);
    if (!status && refused) status = pith_fail_memory(err, refused);
    return pith_account_explain(account, status, err);
}

pith_status pith_account_explain_for(const pith_allocator *allocator, pith_status status, pith_error *err) {
    return allocator->alloc == account_alloc ? pith_account_explain(allocator->user, status, err) : status;
}

bool pith_account_admits(const pith_allocator *allocator, size_t bytes) {
    if (allocator->alloc != account_alloc) return true;
    pith_account *a = allocator->user;
    size_t held = atomic_load_explicit(&a->held, memory_order_relaxed);
    if (!a->limit || (held <= a->limit && bytes <= a->limit - held)) return true;
    refuse(a, bytes, true);
    return false;
}

const pith_allocator *pith_account_host(const pith_allocator *allocator) {
    return allocator->alloc == account_alloc ? &((const pith_account *)allocator->user)->host : allocator;
}
