/* stop_test.h - tables of calls that must be able to end early, and what holds for each:
 *   - it asks its caller often enough: the time that its thread works between two questions is a
 *     part of the whole, whatever the machine and the sanitizer;
 *   - a flag that another thread sets at any time, and a deadline, end it soon, with the right
 *     status;
 *   - what it works on is as good as before: the next call gives the same bits.
 *
 * PITH_TEST_LONG tells the times, and measures larger work against 50 ms. */
#ifndef PITH_TESTS_SUPPORT_STOP_TEST_H
#define PITH_TESTS_SUPPORT_STOP_TEST_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/checksum.h"
#include "base/os/clock.h"
#include "pith/pith.h"

/* One call. work begins with what it needs of the test; *sum receives a hash of the results, which
 * must be the same each time (0: there is nothing to compare). The context's threads are set. */
typedef struct stop_case {
    const char *name;
    pith_status (*run)(const void *work, const pith_call *call, uint64_t *sum, pith_error *err);
    const void *work;
    const char *what; /* what progress tells last; NULL: this is not looked at */
    int stopped_runs; /* runs that a flag or a deadline ends; 0: some */
} stop_case;

/* How long the call may go on after its end was asked for: not 50 ms, since the machine may do
 * anything else meanwhile. */
#define STOP_TEST_PATIENCE UINT64_C(5000000000)
/* Time between two questions that is no fault, however short the whole is. */
#define STOP_TEST_GAP UINT64_C(15000000)

/* When the work of a call was over, of its thread's time; 0: when it returned. */
static uint64_t stop_test_end;

/* For a call that sums up large results: before it does. */
static inline void stop_test_over(void) { stop_test_end = pith__clock_thread_ns(); }

static inline bool stop_test_long(void) { return getenv("PITH_TEST_LONG") != NULL; }

/* ---- a caller who measures ---- */

typedef struct stop_caller {
    size_t times, stop_at;  /* questions; the one that is answered by yes, 0: none */
    uint64_t last, longest; /* of the thread's own time */
    size_t told;
    uint64_t done, total;
    char what[24];
} stop_caller;

static inline int32_t stop_test_ask(void *user) {
    stop_caller *a = user;
    const uint64_t now = pith__clock_thread_ns();
    if (now - a->last > a->longest) a->longest = now - a->last;
    a->last = now;
    return ++a->times == a->stop_at;
}

static inline void stop_test_tell(void *user, const char *what, uint64_t done, uint64_t total) {
    stop_caller *a = user;
    if (a->told && !strcmp(what, a->what) && done <= a->done)
        fail_msg("%s: %llu after %llu", what, (unsigned long long)done,
                 (unsigned long long)a->done);
    if (total && done > total)
        fail_msg("%s: %llu of %llu", what, (unsigned long long)done, (unsigned long long)total);
    a->told++;
    a->done = done;
    a->total = total;
    snprintf(a->what, sizeof a->what, "%s", what);
}

/* One thread, so that its own time is that of the work. Returns the whole time. */
static inline uint64_t stop_test_gaps(const stop_case *c, uint64_t *sum) {
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    stop_caller a = { .last = pith__clock_thread_ns() };
    const uint64_t begin = a.last;
    call.threads = 1;
    call.stop = stop_test_ask;
    call.progress = stop_test_tell;
    call.user = &a;
    stop_test_end = 0;
    if (c->run(c->work, &call, sum, &err)) fail_msg("%s: %s", c->name, err.message);
    const uint64_t end = stop_test_end ? stop_test_end : pith__clock_thread_ns();
    const uint64_t whole = end - begin;
    if (end - a.last > a.longest) a.longest = end - a.last;
    if (stop_test_long())
        print_message("%-32s %8.1f ms, %5zu questions, %6.1f ms between two, told %zu\n", c->name,
                      (double)whole / 1e6, a.times, (double)a.longest / 1e6, a.told);
    if (a.longest > STOP_TEST_GAP + whole / 3)
        fail_msg("%s: %.1f ms of %.1f without a question", c->name, (double)a.longest / 1e6,
                 (double)whole / 1e6);
    if (c->what && (!a.told || strcmp(a.what, c->what) || a.done != a.total))
        fail_msg("%s: told %zu times, last %s %llu of %llu", c->name, a.told, a.what,
                 (unsigned long long)a.done, (unsigned long long)a.total);
    return whole;
}

/* ---- a flag that somebody else sets ---- */

typedef struct stop_setter {
    volatile int flag;
    uint64_t delay, set; /* set: when it was, of pith__clock_ns */
} stop_setter;

static inline void *stop_test_set(void *user) {
    stop_setter *s = user;
    const struct timespec pause = { (time_t)(s->delay / 1000000000),
                                    (long)(s->delay % 1000000000) };
    nanosleep(&pause, NULL);
    s->set = pith__clock_ns();
    __atomic_store_n(&s->flag, 1, __ATOMIC_RELAXED);
    return NULL;
}

static inline uint32_t stop_test_random(void) {
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Whoever is done before he is stopped returns PITH_OK. */
static inline void stop_test_once(const stop_case *c, uint64_t whole, bool by_deadline) {
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    stop_setter s = { .delay = whole ? (uint64_t)stop_test_random() * whole >> 24 : 0 };
    pthread_t thread;
    uint64_t sum = 0;
    call.threads = 1 + (int32_t)(stop_test_random() % 2);
    if (by_deadline)
        s.set = call.deadline_ns = pith_clock_now() + s.delay;
    else
        call.cancel = &s.flag;
    if (!by_deadline) assert_int_equal(pthread_create(&thread, NULL, stop_test_set, &s), 0);
    const pith_status status = c->run(c->work, &call, &sum, &err);
    const uint64_t returned = pith__clock_ns();
    if (!by_deadline) pthread_join(thread, NULL);
    if (status && status != (by_deadline ? PITH_ERR_DEADLINE : PITH_ERR_CANCELLED))
        fail_msg("%s: status %d: %s", c->name, (int)status, err.message);
    if (status && returned > s.set + STOP_TEST_PATIENCE)
        fail_msg("%s: returned %.0f ms after it was stopped", c->name,
                 (double)(returned - s.set) / 1e6);
}

static inline uint64_t stop_test_whole(const stop_case *c, int32_t threads) {
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    uint64_t sum = 0;
    call.threads = threads;
    if (c->run(c->work, &call, &sum, &err)) fail_msg("%s: %s", c->name, err.message);
    return sum;
}

/* All that holds for each of the calls. The first run is not measured: the system takes its time
 * to give memory that nobody has used yet. */
static inline void stop_test_all(const stop_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const stop_case *c = &cases[i];
        const uint64_t before = stop_test_whole(c, 1);
        uint64_t asked = 0;
        const uint64_t whole = stop_test_gaps(c, &asked);
        const int runs = c->stopped_runs ? c->stopped_runs : 3;
        for (int k = 0; k < runs; k++) stop_test_once(c, whole, k % 2);
        if (asked != before) fail_msg("%s: other results where it can be stopped", c->name);
        if (stop_test_whole(c, 2) != before)
            fail_msg("%s: other results after it was stopped", c->name);
    }
}

#endif
