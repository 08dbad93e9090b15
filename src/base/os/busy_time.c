/* busy_time.c - see busy_time.h. */
#include "base/os/busy_time.h"

#include "base/os/clock.h"

void pith_busy_begin(pith_busy *busy, int threads) {
    pthread_mutex_lock(&busy->lock);
    if (!busy->calls++) {
        busy->threads = 0;
        busy->wall = pith_clock_ns();
        busy->cpu = pith_clock_process_ns();
    }
    if (threads > busy->threads) busy->threads = threads;
    pthread_mutex_unlock(&busy->lock);
}

void pith_busy_end(pith_busy *busy, pith_counters *counters) {
    pthread_mutex_lock(&busy->lock);
    if (!--busy->calls) {
        uint64_t wall = pith_clock_ns() - busy->wall;
        pith_count(counters, PITH_COUNT_busy_ns, wall);
        pith_count(counters, PITH_COUNT_cpu_ns, pith_clock_process_ns() - busy->cpu);
        pith_count(counters, PITH_COUNT_thread_ns, wall * (uint64_t)busy->threads);
    }
    pthread_mutex_unlock(&busy->lock);
}
