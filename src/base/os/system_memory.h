/* system_memory.h - the implementation of pith/memory.h, and a gauge that says when memory is
 * short. */
#ifndef PITH_BASE_OS_SYSTEM_MEMORY_H
#define PITH_BASE_OS_SYSTEM_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "pith/memory.h"

pith_status pith__system_memory(pith_memory_info *info, const char *root, pith_error *err);

/* Every task waited for memory for this share of ten seconds: memory is short whatever the sizes
 * say. */
#define PITH_MEMORY_STALLED 0.1

typedef struct pith__memory_gauge {
    double threshold; /* memory is short when this share of it is used; 0: never */
    const char *root; /* see pith_memory_report */
    uint64_t pause;   /* nanoseconds between two looks at the files, which take about 0.1 ms */
    _Atomic uint64_t next;
} pith__memory_gauge;

/* Looks at the system, unless the last look was a short time ago; then, and if memory is not short,
 * returns false. text receives what is short, for a message. Thread-safe. */
bool pith__memory_gauge_short(pith__memory_gauge *gauge, char *text, size_t size);

#endif
