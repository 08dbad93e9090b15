/* The threads of the process as a host has them: how many calls take by default, that they end and
 * come back, and a pool of the host in their place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"

#define PARTS 300
#define WORKERS 8

typedef struct record {
    atomic_int seen[PARTS];
    atomic_int busy[WORKERS]; /* how many parts run under this worker's number now */
    atomic_int faults;
    int threads;
} record;

static void note(void *context, size_t part, int worker) {
    record *r = context;
    if (worker < 0 || worker >= r->threads || atomic_fetch_add(&r->busy[worker], 1))
        atomic_fetch_add(&r->faults, 1);
    atomic_fetch_add(&r->seen[part], 1);
    for (volatile int i = 0; i < 200; i = i + 1) continue;
    atomic_fetch_sub(&r->busy[worker], 1);
}

static int run_once(int threads, size_t parts) {
    record r = { .threads = threads };
    pith__threads_run(note, &r, parts, threads);
    int faults = atomic_load(&r.faults);
    for (size_t i = 0; i < PARTS; i++) faults += atomic_load(&r.seen[i]) != (i < parts);
    return faults;
}

static int thread_count(void) {
    int count = -2; /* . and .. */
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks)) count++;
    if (tasks) closedir(tasks);
    return count;
}

/* ---- how many ---- */

static void count(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    const int all = pith__cpu_get()->threads;
    assert_int_equal(pith__threads_count(0), all);
    assert_int_equal(pith__threads_count(3), 3);
    assert_int_equal(pith_set_threads(5, &err), PITH_OK);
    assert_int_equal(pith__threads_count(0), 5);
    assert_int_equal(pith__threads_count(3), 3);
    assert_int_equal(pith_set_threads(513, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "513 threads are not between 0 and 512");
    assert_int_equal(pith_set_threads(-1, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith__threads_count(0), 5);
    assert_int_equal(pith_set_threads(512, &err), PITH_OK);
    assert_int_equal(pith_set_threads(0, &err), PITH_OK);
    assert_int_equal(pith__threads_count(0), all);
}

static void clock_goes_on(void **state) {
    (void)state;
    const uint64_t before = pith_clock_now();
    usleep(2000);
    const uint64_t after = pith_clock_now();
    assert_true(after - before >= 2000000 && after - before < 20000000000u);
}

/* ---- ending and coming back ---- */

static void they_end(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(run_once(2, 10), 0);
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    const int before = thread_count(); /* a sanitizer may have threads too */
    for (int i = 0; i < 20; i++) {
        pith_set_spin(i % 3 == 0 ? 0 : i % 3 == 1 ? -1 : 20000);
        assert_int_equal(run_once(1 + i % WORKERS, PARTS), 0);
        if (i % 2) usleep(1000); /* asleep, or still looking for work */
        assert_int_equal(pith_stop_threads(&err), PITH_OK);
        assert_int_equal(thread_count(), before);
        if (i % 5 == 0) assert_int_equal(pith_stop_threads(&err), PITH_OK);
    }
    pith_set_spin(-1);
}

static void sleepers_use_no_time(void **state) {
    (void)state;
    pith_set_spin(0);
    for (int i = 0; i < 100; i++) assert_int_equal(run_once(4, 40), 0);
    const uint64_t before = pith__clock_process_ns();
    usleep(50000);
    assert_true(pith__clock_process_ns() - before < 10000000);
    pith_set_spin(-1);
}

static void stop_within(void *context, size_t part, int worker) {
    (void)part;
    (void)worker;
    pith_error err = PITH_ERROR_INIT;
    const pith_executor none = { NULL, NULL };
    if (pith_stop_threads(&err) != PITH_ERR_BUSY || pith_set_executor(NULL, &err) != PITH_ERR_BUSY)
        atomic_fetch_add((atomic_int *)context, 1);
    if (pith_set_executor(&none, &err) != PITH_ERR_ARGUMENT)
        atomic_fetch_add((atomic_int *)context, 1);
}

static void busy_while_they_work(void **state) {
    (void)state;
    atomic_int faults = 0;
    for (int i = 0; i < 200; i++) pith__threads_run(stop_within, &faults, 8, 4);
    assert_int_equal(atomic_load(&faults), 0);
}

typedef struct late {
    pthread_t caller;
    atomic_int began, faults;
} late;

/* Part 0 is the caller's; the other one goes on when the caller has nothing left to draw. */
static void stop_late(void *context, size_t part, int worker) {
    late *const l = context;
    (void)part;
    (void)worker;
    atomic_fetch_add(&l->began, 1);
    while (atomic_load(&l->began) < 2) usleep(100);
    if (pthread_equal(pthread_self(), l->caller)) return;
    usleep(20000);
    stop_within(&l->faults, 0, 0);
}

/* Also when the job is closed already: its last part would wait for its own thread. */
static void busy_while_the_last_works(void **state) {
    (void)state;
    late l = { .caller = pthread_self() };
    pith__threads_run(stop_late, &l, 2, 2);
    assert_int_equal(atomic_load(&l.began), 2);
    assert_int_equal(atomic_load(&l.faults), 0);
}

static atomic_int end_calling;

static void *call_all_the_time(void *faults) {
    while (!atomic_load(&end_calling)) *(int *)faults += run_once(3, 20);
    return NULL;
}

/* A run that begins meanwhile goes on without them. */
static void they_end_beside_calls(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pthread_t threads[3];
    int faults[3] = { 0 }, ended = 0;
    atomic_store(&end_calling, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_all_the_time, &faults[i]), 0);
    for (int i = 0; i < 100000 && ended < 20; i++) ended += !pith_stop_threads(&err);
    assert_true(ended > 0);
    atomic_store(&end_calling, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(faults[i], 0);
    }
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    assert_int_equal(run_once(4, 40), 0);
}

#ifndef PITH_SANITIZED_THREADS /* which refuses threads after a fork of a process that has some */
static void fork_afterwards(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(run_once(4, 40), 0);
        assert_int_equal(pith_stop_threads(&err), PITH_OK);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            int faults = thread_count() != 1;
            faults += run_once(4, 100);
            faults += pith_stop_threads(&err) != PITH_OK || thread_count() != 1;
            _exit(faults + run_once(2, 100));
        }
        int status;
        assert_int_equal(run_once(4, 40), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}
#endif

/* ---- a pool of the host ---- */

typedef struct host {
    int kind; /* 0: on the caller, in reverse; 1: in order; 2: on threads of its own; 3: some parts
                 are forgotten */
    atomic_int runs, parts;
} host;

typedef struct host_part {
    void (*task)(void *context, size_t part);
    void *context;
    size_t part;
} host_part;

static void *host_thread(void *context) {
    const host_part *p = context;
    p->task(p->context, p->part);
    return NULL;
}

static void host_run(void *user, void (*task)(void *context, size_t part), void *context,
                     size_t parts, int32_t width) {
    host *h = user;
    atomic_fetch_add(&h->runs, 1);
    atomic_fetch_add(&h->parts, (int)parts);
    if (width < 2 || (size_t)width > parts || parts > WORKERS) atomic_store(&h->runs, -1000000);
    if (h->kind == 2) {
        pthread_t threads[WORKERS];
        host_part all[WORKERS];
        for (size_t i = 0; i < parts; i++) {
            all[i] = (host_part){ task, context, i };
            pthread_create(&threads[i], NULL, host_thread, &all[i]);
        }
        for (size_t i = 0; i < parts; i++) pthread_join(threads[i], NULL);
        return;
    }
    for (size_t i = h->kind == 3 ? parts : 0; i < parts; i++)
        task(context, h->kind ? i : parts - 1 - i);
}

static void nest(void *context, size_t part, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_int *)context, run_once(3, 10 + part));
}

static void pool_of_a_host(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    const int before = thread_count();
    for (int kind = 0; kind < 4; kind++) {
        host h = { .kind = kind };
        const pith_executor executor = { host_run, &h };
        atomic_int faults = 0;
        assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
        for (int threads = 1; threads <= WORKERS; threads++)
            for (size_t parts = 0; parts < PARTS; parts += 7)
                assert_int_equal(run_once(threads, parts), 0);
        assert_true(atomic_load(&h.runs) > 0);
        const int runs = atomic_load(&h.runs);
        pith__threads_wake(4);
        pith__threads_run(nest, &faults, 20, 4);
        assert_int_equal(atomic_load(&faults), 0);
        assert_int_equal(atomic_load(&h.runs), runs + 1); /* those within stay where they are */
        pith__threads_run(stop_within, &faults, 8, 4);
        assert_int_equal(atomic_load(&faults), 0);
        assert_int_equal(thread_count(), before);
        assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
        assert_int_equal(run_once(4, 40), 0);
        assert_int_equal(atomic_load(&h.runs), runs + 2);
        assert_int_equal(pith_stop_threads(&err), PITH_OK);
    }
}

/* Several callers at a time, each with its own parts. */
static void pool_of_several_callers(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pthread_t threads[3];
    int faults[3] = { 0 };
    host h = { .kind = 2 };
    const pith_executor executor = { host_run, &h };
    assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
    atomic_store(&end_calling, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_all_the_time, &faults[i]), 0);
    usleep(50000);
    atomic_store(&end_calling, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(faults[i], 0);
    }
    assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
}

/* ---- a pool of two threads, which also call the library themselves ---- */

enum { POOL_THREADS = 2, POOL_CALLS = 40 };

typedef struct pool_job {
    struct pool_job *next;
    void (*task)(void *context, size_t part);
    void *context;
    size_t parts, drawn, done;
} pool_job;

typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pool_job *jobs;
    int calling; /* threads that still make calls of their own */
    bool ends;
    atomic_int faults, at_once, most;
} pool;

/* Does parts of a job, newest job first, last part first. With the lock. */
static bool pool_help(pool *p, pool_job *j) {
    while (j && j->drawn == j->parts) j = j->next;
    if (!j) return false;
    const size_t part = j->parts - 1 - j->drawn++;
    pthread_mutex_unlock(&p->lock);
    const int now = atomic_fetch_add(&p->at_once, 1) + 1;
    int most = atomic_load(&p->most);
    while (now > most && !atomic_compare_exchange_weak(&p->most, &most, now)) continue;
    j->task(j->context, part);
    atomic_fetch_sub(&p->at_once, 1);
    pthread_mutex_lock(&p->lock);
    if (++j->done == j->parts) pthread_cond_broadcast(&p->change);
    return true;
}

/* The calling thread takes part in its own job, or a pool all of whose threads call would stand
 * still. */
static void pool_run(void *user, void (*task)(void *context, size_t part), void *context,
                     size_t parts, int32_t width) {
    pool *p = user;
    pool_job j = { .task = task, .context = context, .parts = parts };
    (void)width;
    pthread_mutex_lock(&p->lock);
    j.next = p->jobs;
    p->jobs = &j;
    pthread_cond_broadcast(&p->change);
    while (j.drawn < j.parts) pool_help(p, &j);
    while (j.done < j.parts) pthread_cond_wait(&p->change, &p->lock);
    pool_job **link = &p->jobs;
    while (*link != &j) link = &(*link)->next;
    *link = j.next;
    pthread_mutex_unlock(&p->lock);
}

static void *pool_thread(void *user) {
    pool *p = user;
    for (int i = 0; i < POOL_CALLS; i++)
        atomic_fetch_add(&p->faults, run_once(1 + i % WORKERS, (size_t)(i * 7)));
    pthread_mutex_lock(&p->lock);
    p->calling--;
    pthread_cond_broadcast(&p->change);
    while (!p->ends)
        if (!pool_help(p, p->jobs)) pthread_cond_wait(&p->change, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Fewer threads than a run wants, all of which make calls themselves, beside another caller. */
static void pool_that_calls(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pool p = { .lock = PTHREAD_MUTEX_INITIALIZER,
               .change = PTHREAD_COND_INITIALIZER,
               .calling = POOL_THREADS };
    const pith_executor executor = { pool_run, &p };
    pthread_t threads[POOL_THREADS];
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    const int before = thread_count();
    assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
    for (int i = 0; i < POOL_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pool_thread, &p), 0);
    for (int i = 0; i < POOL_CALLS; i++)
        assert_int_equal(run_once(1 + i % WORKERS, (size_t)(i * 7)), 0);
    pthread_mutex_lock(&p.lock);
    while (p.calling) pthread_cond_wait(&p.change, &p.lock);
    pthread_mutex_unlock(&p.lock);
    assert_int_equal(thread_count(), before + POOL_THREADS); /* none is the library's */
    assert_int_equal(run_once(WORKERS, PARTS), 0);
    pthread_mutex_lock(&p.lock);
    p.ends = true;
    pthread_cond_broadcast(&p.change);
    pthread_mutex_unlock(&p.lock);
    for (int i = 0; i < POOL_THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&p.faults), 0);
    assert_in_range(atomic_load(&p.most), 1, POOL_THREADS + 1);
    assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
}

static atomic_int hold_pool;

static void wait_within(void *context, size_t part, int worker) {
    (void)part;
    (void)worker;
    atomic_store((atomic_int *)context, 1);
    while (atomic_load(&hold_pool)) usleep(100);
}

static void *call_held(void *inside) {
    pith__threads_run(wait_within, inside, 4, 4);
    return NULL;
}

/* Threads do not end, and pools are not exchanged, while a call has work on them. */
static void pool_is_busy_while_others_run(void **state) {
    (void)state;
    for (int hosted = 0; hosted < 2; hosted++) {
        pith_error err = PITH_ERROR_INIT;
        host h = { .kind = 2 };
        const pith_executor executor = { host_run, &h };
        atomic_int inside = 0;
        pthread_t thread;
        assert_int_equal(pith_set_executor(hosted ? &executor : NULL, &err), PITH_OK);
        atomic_store(&hold_pool, 1);
        assert_int_equal(pthread_create(&thread, NULL, call_held, &inside), 0);
        while (!atomic_load(&inside)) usleep(100);
        assert_int_equal(pith_stop_threads(&err), PITH_ERR_BUSY);
        assert_int_equal(pith_set_executor(NULL, &err), PITH_ERR_BUSY);
        assert_int_equal(pith_set_executor(&executor, &err), PITH_ERR_BUSY);
        assert_int_equal(run_once(3, 20), 0); /* other calls go on */
        atomic_store(&hold_pool, 0);
        pthread_join(thread, NULL);
        assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
        assert_int_equal(pith_stop_threads(&err), PITH_OK);
    }
}

#ifndef PITH_SANITIZED_THREADS
/* A child keeps the pool, whose threads it does not have: here the caller does all. */
static void fork_with_a_pool(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    host h = { .kind = 0 };
    const pith_executor executor = { host_run, &h };
    assert_int_equal(run_once(4, 40), 0);
    assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
    assert_int_equal(run_once(4, 40), 0);
    assert_int_equal(pith_stop_threads(&err), PITH_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const int runs = atomic_load(&h.runs);
        int faults = run_once(4, 100) + (thread_count() != 1) + (atomic_load(&h.runs) != runs + 1);
        faults += pith_set_executor(NULL, &err) != PITH_OK;
        _exit(faults + run_once(4, 100));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
}
#endif

static void is_gradual(void *context, size_t part, int worker) {
    volatile float tiny = 1e-38f;
    (void)part;
    (void)worker;
    if (tiny / 16 == 0) atomic_fetch_add((atomic_int *)context, 1);
}

/* The host's threads compute as ours do, and get their own mode back. */
static void mode_of_its_threads(void **state) {
    (void)state;
#if defined(__x86_64__)
    pith_error err = PITH_ERROR_INIT;
    host h = { .kind = 1 };
    const pith_executor executor = { host_run, &h };
    atomic_int flushed = 0;
    const unsigned before = __builtin_ia32_stmxcsr();
    assert_int_equal(pith_set_executor(&executor, &err), PITH_OK);
    __builtin_ia32_ldmxcsr(before | 0x8040);
    pith__threads_run(is_gradual, &flushed, 8, 4);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(atomic_load(&flushed), 0);
    assert_int_equal(after & 0x8040, 0x8040);
    assert_int_equal(pith_set_executor(NULL, &err), PITH_OK);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(count),
        cmocka_unit_test(clock_goes_on),
        cmocka_unit_test(they_end),
        cmocka_unit_test(sleepers_use_no_time),
        cmocka_unit_test(busy_while_they_work),
        cmocka_unit_test(busy_while_the_last_works),
        cmocka_unit_test(they_end_beside_calls),
#ifndef PITH_SANITIZED_THREADS
        cmocka_unit_test(fork_afterwards),
#endif
        cmocka_unit_test(pool_of_a_host),
        cmocka_unit_test(pool_of_several_callers),
        cmocka_unit_test(pool_that_calls),
        cmocka_unit_test(pool_is_busy_while_others_run),
#ifndef PITH_SANITIZED_THREADS
        cmocka_unit_test(fork_with_a_pool),
#endif
        cmocka_unit_test(mode_of_its_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
