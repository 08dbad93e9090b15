/* idle_runners.h - runners that wait for the next call.
 *
 * The runner that came back last goes out first, since its memory is most likely still in the
 * caches. The one that has waited longest is ended when there are too many. Thread-safe. */
#ifndef PITH_ENGINE_RUNTIME_IDLE_RUNNERS_H
#define PITH_ENGINE_RUNTIME_IDLE_RUNNERS_H

#include <pthread.h>

#include "engine/runtime/runtime.h"

typedef struct pith__idle_runner {
    pith__runner runner;
    uint64_t since; /* pith__clock_ns */
} pith__idle_runner;

typedef struct pith__idle_runners {
    pthread_mutex_t lock;     /* guards the items and their count */
    pith__idle_runner *items; /* [most], the longest idle first */
    size_t count, most;
    uint64_t patience; /* nanoseconds that a runner may be idle; 0: any time */
    pith__counters *counters;
} pith__idle_runners;

/* The items are in the arena. */
pith_status pith__idle_runners_init(pith__idle_runners *idle, size_t most, uint64_t patience,
                                    pith__counters *counters, pith__arena *arena, pith_error *err);
/* Ends all runners; the arena keeps the items. */
void pith__idle_runners_destroy(pith__idle_runners *idle);

/* Takes a runner out; runner->runtime stays NULL if there is none. */
void pith__idle_runners_take(pith__runner *runner, pith__idle_runners *idle);
/* Gives a runner back, and ends those that are too many or have been idle for too long. */
void pith__idle_runners_give(pith__idle_runners *idle, pith__runner *runner);
/* Ends all idle runners. */
void pith__idle_runners_empty(pith__idle_runners *idle);
size_t pith__idle_runners_count(pith__idle_runners *idle);

#endif
