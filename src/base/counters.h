/* counters.h - what one model counts while it works, for pith_model_statistics.
 *
 * The list is counters.def. Any thread may count. A count costs one atomic addition, so the places
 * that count are those that work on a run, a chunk or a call, never on a number. */
#ifndef PITH_BASE_COUNTERS_H
#define PITH_BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum pith__counter {
#define COUNTER(name, unit) PITH_COUNT_##name,
#include "base/counters.def"
#undef COUNTER
    PITH_COUNTER_COUNT
} pith__counter;

typedef struct pith__counters {
    _Atomic uint64_t values[PITH_COUNTER_COUNT];
} pith__counters;

/* Adds n. counters may be NULL. */
static inline void pith__count(pith__counters *counters, pith__counter which, uint64_t n) {
    if (counters) atomic_fetch_add_explicit(&counters->values[which], n, memory_order_relaxed);
}

/* Keeps the largest n. counters may be NULL. */
static inline void pith__count_most(pith__counters *counters, pith__counter which, uint64_t n) {
    if (!counters) return;
    uint64_t most = atomic_load_explicit(&counters->values[which], memory_order_relaxed);
    while (most < n &&
           !atomic_compare_exchange_weak_explicit(&counters->values[which], &most, n,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

static inline uint64_t pith__counted(const pith__counters *counters, pith__counter which) {
    return atomic_load_explicit(&counters->values[which], memory_order_relaxed);
}

#endif
