/* busy_time.c - see busy_time.h. */
#include "base/os/busy_time.h"

#include "base/os/clock.h"

void pith__busy_begin(pith__busy *busy, int threads) {
    pthread_mutex_lock(&busy->lock);
    if (!busy->calls++) {
        busy->threads = 0;
        busy->wall = pith__clock_ns();
        busy->cpu = pith__clock_process_ns();
    }
    if (threads > busy->threads) busy->threads = threads;
    pthread_mutex_unlock(&busy->lock);
}

void pith__busy_end(pith__busy *busy, pith__counters *counters) {
    pthread_mutex_lock(&busy->lock);
    if (!--busy->calls) {
        uint64_t wall = pith__clock_ns() - busy->wall;
        pith__count(counters, PITH_COUNT_busy_ns, wall);
        pith__count(counters, PITH_COUNT_cpu_ns, pith__clock_process_ns() - busy->cpu);
        pith__count(counters, PITH_COUNT_thread_ns, wall * (uint64_t)busy->threads);
    }
    pthread_mutex_unlock(&busy->lock);
}
