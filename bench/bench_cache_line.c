/* bench_cache_line.c - how long a cache line takes from one processor to another and back, in
 * nanoseconds.
 *
 * Two threads, on the first two processors that this process may use, write a line in turns; the
 * mean of 500 turns is taken 20 times and the least one printed, once a second. Processors that
 * share a cache take some 60 to 100 ns, others 350 to 400. A virtual machine's processors may lie
 * either way and move from one to the other, and whatever several threads do together, step by
 * step, depends on it. Usage: bench_line [times] */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/base/seconds.h"

enum { ROUNDS = 20, TURNS = 500, LAST = -1 };

static _Alignas(128) atomic_int line; /* 1: the other thread's turn, 0: ours */
static int processors[2];

static void stay_on(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *answer(void *unused) {
    stay_on(processors[1]);
    for (int seen; (seen = atomic_load_explicit(&line, memory_order_acquire)) != LAST;)
        if (seen == 1) atomic_store_explicit(&line, 0, memory_order_release);
    return unused;
}

static double measure(void) {
    double least = 1;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_seconds();
        for (int turn = 0; turn < TURNS; turn++) {
            atomic_store_explicit(&line, 1, memory_order_release);
            while (atomic_load_explicit(&line, memory_order_acquire)) continue;
        }
        double seconds = (now_seconds() - begin) / TURNS;
        if (seconds < least) least = seconds;
    }
    return least;
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 10, count = 0;
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable)) return perror("sched_getaffinity"), 1;
    for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET(i, &usable)) processors[count++] = i;
    pthread_t other;
    if (count < 2 || pthread_create(&other, NULL, answer, NULL))
        return fputs("two processors are needed\n", stderr), 1;
    stay_on(processors[0]);
    for (int i = 0; i < times; i++) {
        if (i) sleep(1);
        printf("processors %d and %d: %.0f ns\n", processors[0], processors[1], measure() * 1e9);
        fflush(stdout);
    }
    atomic_store(&line, LAST);
    pthread_join(other, NULL);
    return 0;
}
