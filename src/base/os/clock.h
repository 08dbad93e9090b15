/* clock.h - time that passes, in nanoseconds; only differences mean anything. */
#ifndef PITH_BASE_OS_CLOCK_H
#define PITH_BASE_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pith__clock_read(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Time in the world; it is never set back. */
static inline uint64_t pith__clock_ns(void) { return pith__clock_read(CLOCK_MONOTONIC); }
/* What this thread, or all threads of the process, had of the processors. */
static inline uint64_t pith__clock_thread_ns(void) {
    return pith__clock_read(CLOCK_THREAD_CPUTIME_ID);
}
static inline uint64_t pith__clock_process_ns(void) {
    return pith__clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
