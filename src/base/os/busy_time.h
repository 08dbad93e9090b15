/* busy_time.h - the time during which at least one call is under way, and the CPU time the process
 * uses in it. */
#ifndef PITH_BASE_OS_BUSY_TIME_H
#define PITH_BASE_OS_BUSY_TIME_H

#include <pthread.h>

#include "base/counters.h"

typedef struct pith__busy {
    pthread_mutex_t lock; /* guards the members below */
    int calls;            /* under way */
    int threads;          /* the most that one of them asked for */
    uint64_t wall, cpu;   /* when the first of them began, in nanoseconds */
} pith__busy;

/* A call begins and ends. When the last one ends, busy_ns, cpu_ns and thread_ns are counted.
 * Thread-safe. */
void pith__busy_begin(pith__busy *busy, int threads);
void pith__busy_end(pith__busy *busy, pith__counters *counters);

#endif
