/* idle_runners.c - see idle_runners.h. A runner is destroyed while the lock is not held. */
#include "engine/runtime/idle_runners.h"

#include "base/error.h"
#include "base/os/clock.h"

pith_status pith__idle_runners_init(pith__idle_runners *idle, size_t most, uint64_t patience,
                                    pith__counters *counters, pith__arena *arena, pith_error *err) {
    *idle = (pith__idle_runners){ .most = most, .patience = patience, .counters = counters };
    idle->items = pith__arena_array(arena, most, sizeof *idle->items);
    if (!idle->items) return pith__fail_memory(err, most * sizeof *idle->items);
    return pthread_mutex_init(&idle->lock, NULL) ? pith__fail_memory(err, sizeof idle->lock)
                                                 : PITH_OK;
}

void pith__idle_runners_destroy(pith__idle_runners *idle) {
    pith__idle_runners_empty(idle);
    pthread_mutex_destroy(&idle->lock);
}

void pith__idle_runners_take(pith__runner *runner, pith__idle_runners *idle) {
    runner->runtime = NULL;
    pthread_mutex_lock(&idle->lock);
    if (idle->count) *runner = idle->items[--idle->count].runner;
    pthread_mutex_unlock(&idle->lock);
    if (runner->runtime) pith__count(idle->counters, PITH_COUNT_sessions_borrowed, 1);
}

/* Takes the longest idle runner out if there is no room for another one, or if it has waited too
 * long. */
static pith__runner idle_take_old(pith__idle_runners *idle, uint64_t now) {
    pith__runner old = { 0 };
    pthread_mutex_lock(&idle->lock);
    bool late = idle->count && idle->patience && now - idle->items[0].since > idle->patience;
    if (idle->count && (late || idle->count == idle->most)) {
        old = idle->items[0].runner;
        idle->count--;
        for (size_t i = 0; i < idle->count; i++) idle->items[i] = idle->items[i + 1];
    }
    pthread_mutex_unlock(&idle->lock);
    return old;
}

void pith__idle_runners_give(pith__idle_runners *idle, pith__runner *runner) {
    uint64_t now = pith__clock_ns();
    for (pith__runner old = idle_take_old(idle, now); old.runtime; old = idle_take_old(idle, now)) {
        pith__runner_destroy(&old);
        pith__count(idle->counters, PITH_COUNT_sessions_evicted, 1);
    }
    pthread_mutex_lock(&idle->lock);
    if (idle->count < idle->most) {
        idle->items[idle->count++] = (pith__idle_runner){ *runner, now };
        runner->runtime = NULL;
    }
    pthread_mutex_unlock(&idle->lock);
    if (runner->runtime) pith__count(idle->counters, PITH_COUNT_sessions_evicted, 1);
    pith__runner_destroy(runner);
}

void pith__idle_runners_empty(pith__idle_runners *idle) {
    pith__runner runner;
    pthread_mutex_lock(&idle->lock);
    while (idle->count) {
        runner = idle->items[--idle->count].runner;
        pthread_mutex_unlock(&idle->lock);
        pith__runner_destroy(&runner);
        pthread_mutex_lock(&idle->lock);
    }
    pthread_mutex_unlock(&idle->lock);
}

size_t pith__idle_runners_count(pith__idle_runners *idle) {
    pthread_mutex_lock(&idle->lock);
    size_t count = idle->count;
    pthread_mutex_unlock(&idle->lock);
    return count;
}
