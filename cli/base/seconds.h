/* seconds.h - the clock of the command and of bench/: only differences mean anything. */
#ifndef PITH_CLI_BASE_SECONDS_H
#define PITH_CLI_BASE_SECONDS_H

#include <time.h>

/* CLOCK_MONOTONIC is the time of the world. CLOCK_THREAD_CPUTIME_ID and CLOCK_PROCESS_CPUTIME_ID
 * are what the calling thread, or the whole process, had of the processors. */
static inline double seconds_on(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now_seconds(void) { return seconds_on(CLOCK_MONOTONIC); }

#endif
