/* The thread pool and the processor: each part once, unique worker numbers, nesting, several
 * callers, fork, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "base/os/topology.h"

#define PARTS 1000
#define WORKERS 20 /* more than have parts of their own */

typedef struct record {
    atomic_int seen[PARTS];
    atomic_int busy[WORKERS]; /* how many parts run under this worker's number now */
    atomic_int clashes;
    int threads;
} record;

static void note(void *context, size_t part, int worker) {
    record *r = context;
    if (worker < 0 || worker >= r->threads || atomic_fetch_add(&r->busy[worker], 1))
        atomic_fetch_add(&r->clashes, 1);
    atomic_fetch_add(&r->seen[part], 1);
    for (volatile int i = 0; i < 200; i = i + 1) continue;
    atomic_fetch_sub(&r->busy[worker], 1);
}

static int run_once(int threads, size_t parts) {
    record r = { .threads = threads };
    pith__threads_run(note, &r, parts, threads);
    int faults = atomic_load(&r.clashes);
    for (size_t i = 0; i < PARTS; i++) faults += atomic_load(&r.seen[i]) != (i < parts);
    return faults;
}

static void every_part_once(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++)
        for (int threads = 1; threads <= 8; threads++)
            for (size_t parts = 0; parts < 40; parts += 3)
                assert_int_equal(run_once(threads, parts), 0);
    assert_int_equal(run_once(WORKERS, PARTS), 0);
}

/* Helpers woken for a run that comes later, or never, do its parts once and go back to sleep. */
static void woken_helpers(void **state) {
    (void)state;
    assert_int_equal(run_once(4, 40), 0);
    for (int threads = 1; threads <= WORKERS; threads++) {
        usleep(1000);
        pith__threads_wake(threads);
        assert_int_equal(run_once(4, 40), 0);
        pith__threads_wake(threads);
    }
    usleep(10000);
    pith__threads_wake(4);
    uint64_t before = pith__clock_process_ns();
    usleep(200000);
    assert_true(pith__clock_process_ns() - before < 50000000);
}

/* The first part waits until all others are done: those of its thread, too, which another one must
 * take. */
static void wait_for_others(void *context, size_t part, int worker) {
    atomic_int *done = context;
    (void)worker;
    for (int i = 0; part == 0 && i < 10000 && atomic_load(done) < PARTS - 1; i++) usleep(1000);
    if (part == 0 && atomic_load(done) == PARTS - 1) atomic_store(done, PARTS);
    if (part != 0) atomic_fetch_add(done, 1);
}

static void slow_threads_are_helped(void **state) {
    (void)state;
    for (int threads = 2; threads <= WORKERS; threads += 9) {
        atomic_int done = 0;
        pith__threads_run(wait_for_others, &done, PARTS, threads);
        assert_int_equal(atomic_load(&done), PARTS);
    }
}

/* Plain writes of the tasks must be visible to the caller without more ado. */
static void write_plain(void *context, size_t part, int worker) {
    (void)worker;
    ((size_t *)context)[part] = part * part;
}

static void results_are_visible(void **state) {
    (void)state;
    static size_t results[PARTS];
    for (int round = 0; round < 300; round++) {
        memset(results, 0, sizeof results);
        pith__threads_run(write_plain, results, PARTS, 4);
        for (size_t i = 0; i < PARTS; i++) assert_int_equal(results[i], i * i);
        if (round % 100 == 0) usleep(2000); /* the threads fall asleep */
    }
}

static void *caller(void *faults) {
    for (int i = 0; i < 100; i++) *(int *)faults += run_once(3, 50);
    return NULL;
}

static void several_callers(void **state) {
    (void)state;
    pthread_t threads[4];
    int faults[4] = { 0 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, caller, &faults[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(faults[i], 0);
    }
}

static void deeper(void *context, size_t part, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_int *)context, run_once(3, 7 + part));
}

static void outer(void *context, size_t part, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_int *)context, run_once(4, 10 + part));
    pith__threads_run(deeper, context, 3, 1 + (int)part % 3);
}

/* Runs inside tasks of others do each part once, under numbers of their own. */
static void nested_runs(void **state) {
    (void)state;
    atomic_int faults = 0;
    for (int i = 0; i < 50; i++) pith__threads_run(outer, &faults, 20, 4);
    assert_int_equal(atomic_load(&faults), 0);
}

typedef struct pair {
    size_t nesting;  /* the part of two that makes a run of its own; the other one ends at once */
    atomic_int came; /* how many of the two have begun */
    atomic_int done; /* parts of that run */
    size_t left;     /* what was left of the outer run then */
} pair;

static void wait_until(atomic_int *value, int least) {
    for (int i = 0; i < 10000 && atomic_load(value) < least; i++) usleep(1000);
}

static void wait_for_the_other(void *context, size_t part, int worker) {
    pair *p = context;
    (void)worker;
    if (part == 0) wait_until(&p->done, 1);
    if (part == 1 || atomic_load(&p->done)) atomic_fetch_add(&p->done, 1);
}

static void one_of_two(void *context, size_t part, int worker) {
    pair *p = context;
    (void)worker;
    atomic_fetch_add(&p->came, 1);
    wait_until(&p->came, 2); /* so that a thread takes one part */
    if (part != p->nesting) return;
    p->left = pith__threads_left();
    usleep(part ? 0 : 5000); /* the other may have fallen asleep */
    pith__threads_run(wait_for_the_other, p, 2, 2);
}

/* A thread of the pool, or a caller, who has nothing left to do takes part in the run that
 * another's part makes. */
static void nested_runs_are_helped(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) {
        pair p = { .nesting = (size_t)i % 2, .left = 1 };
        pith__threads_run(one_of_two, &p, 2, 2);
        assert_int_equal(atomic_load(&p.done), 2);
        assert_int_equal(p.left, 0);
    }
    assert_int_equal(pith__threads_left(), 0);
}

typedef struct masks {
    pthread_t caller;
    atomic_int open;
    atomic_int others;
} masks;

static void look_at_mask(void *context, size_t part, int worker) {
    (void)part;
    (void)worker;
    masks *m = context;
    usleep(100);
    if (pthread_equal(pthread_self(), m->caller)) return;
    atomic_fetch_add(&m->others, 1);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGALRM)) atomic_fetch_add(&m->open, 1);
}

static void signals_are_blocked(void **state) {
    (void)state;
    masks m = { .caller = pthread_self() };
    for (int i = 0; i < 100 && !atomic_load(&m.others); i++)
        pith__threads_run(look_at_mask, &m, 8, 4);
    assert_true(atomic_load(&m.others) > 0);
    assert_int_equal(atomic_load(&m.open), 0);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

#ifndef PITH_SANITIZED_THREADS /* which refuses threads after a fork of a process that has some */
static void ask_for_many(void *context, size_t part, int worker) {
    (void)part;
    (void)worker;
    atomic_fetch_add((atomic_int *)context, run_once(WORKERS, PARTS));
}

static int thread_count(void) {
    int count = -2; /* . and .. */
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks)) count++;
    if (tasks) closedir(tasks);
    return count;
}

/* However many threads it asks for. In a child, which has none of the pool's threads yet. */
static void nested_runs_make_no_threads(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        atomic_int faults = 0;
        pith__threads_run(ask_for_many, &faults, 4, 2);
        _exit(atomic_load(&faults) ? 1 : thread_count() == 2 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static atomic_int stop_calling;

static void *call_all_the_time(void *unused) {
    (void)unused;
    while (!atomic_load(&stop_calling)) run_once(3, 20);
    return NULL;
}

static void works_after_fork(void **state) {
    (void)state;
    pthread_t thread;
    atomic_store(&stop_calling, 0);
    assert_int_equal(pthread_create(&thread, NULL, call_all_the_time, NULL), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(run_once(4, 30), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            _exit(run_once(4, 100) + run_once(2, 10));
        }
        assert_int_equal(run_once(4, 30), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    atomic_store(&stop_calling, 1);
    pthread_join(thread, NULL);
}

/* How many processors the thread of each worker may use, and which one, by worker. */
static void note_processors(void *context, size_t part, int worker) {
    (void)part;
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int *seen = context, last = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) last = i;
    seen[2 * worker] = CPU_COUNT(&set);
    seen[2 * worker + 1] = last;
    usleep(20000); /* so that every thread takes a part */
}

/* In a child, whose pool is new: helpers stay on the second, third ... processor, the caller stays
 * free. */
static int pinned_child(void) {
    cpu_set_t mine;
    int seen[2 * 3] = { 0 }, allowed[CPU_SETSIZE], count = 0;
    sched_getaffinity(0, sizeof mine, &mine);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &mine)) allowed[count++] = i;
    pith__threads_pin(true);
    pith__threads_run(note_processors, seen, 12, 3);
    if (seen[0] != count || seen[2] != 1 || seen[4] != 1) return 1;
    int a = allowed[1 % count], b = allowed[2 % count];
    return (seen[3] == a && seen[5] == b) || (seen[3] == b && seen[5] == a) ? 0 : 2;
}

static void pinned_on_request(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) _exit(pinned_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
#endif

static volatile float tiny = 1e-38f, hundredth = 0.01f;

static void is_gradual(void *context, size_t part, int worker) {
    (void)part;
    (void)worker;
    if (tiny * hundredth == 0) atomic_fetch_add((atomic_int *)context, 1);
}

static void floating_point_mode(void **state) {
    (void)state;
    atomic_int flushed = 0;
    pith__fpmode host = pith__fpmode_enter();
#if defined(__x86_64__)
    unsigned mxcsr = 0x1F80 | 0x8040 | 0x6000; /* flush, denormals are zero, round towards zero */
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    assert_true(tiny * hundredth == 0);
    pith__fpmode mode = pith__fpmode_enter();
    assert_true(tiny * hundredth != 0);
    pith__threads_run(is_gradual, &flushed, 100, 4);
    pith__fpmode_leave(mode);
    assert_true(tiny * hundredth == 0);
#else
    pith__threads_run(is_gradual, &flushed, 100, 4);
#endif
    pith__fpmode_leave(host);
    assert_int_equal(atomic_load(&flushed), 0);
}

static void processor(void **state) {
    (void)state;
    const pith__cpu *cpu = pith__cpu_get();
    assert_ptr_equal(cpu, pith__cpu_get());
    assert_true(cpu->supported & 1u << PITH_ISA_scalar);
    assert_true(cpu->supported >> cpu->isa & 1);
    assert_true(cpu->threads >= 1 && cpu->l1d >= 1024 && cpu->l2 >= cpu->l1d &&
                cpu->l3 >= cpu->l2 / 2);
    assert_string_equal(pith__isa_name(PITH_ISA_scalar), "scalar");
}

/* The limits are read once a process, so each case is a process of its own. */
static void limits_from_outside(void **state) {
    (void)state;
    uint32_t supported = pith__cpu_get()->supported;
    pith__isa unlimited = PITH_ISA_scalar; /* the highest level; this process may be limited
                                              itself */
    for (int i = 0; i < 32; i++)
        if (supported >> i & 1) unlimited = (pith__isa)i;
    static const struct {
        const char *value;
        int isa;
    } cases[] = {
        { "scalar", PITH_ISA_scalar },
        { "avx2", PITH_ISA_avx2 },
        { "avx512", PITH_ISA_avx512 },
        { "neon", PITH_ISA_neon },
        { "sse9", -1 },
        { "", -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool there = cases[i].isa >= 0 && (supported >> cases[i].isa & 1);
        char command[600];
        snprintf(command, sizeof command, "PITH_ISA='%s' taskset -c %d /proc/%d/exe --cpu",
                 cases[i].value, sched_getcpu(), (int)getpid());
        FILE *pipe = popen(command, "r");
        int isa = -1, threads = -1;
        assert_int_equal(fscanf(pipe, "%d %d", &isa, &threads), 2);
        pclose(pipe);
        assert_int_equal(threads, 1);
        if (there || cases[i].isa < 0) assert_int_equal(isa, there ? cases[i].isa : (int)unlimited);
    }
}

static void put(const char *dir, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0777);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void quotas(void **state) {
    (void)state;
    char dir[] = "/tmp/pith-quota-XXXXXX", proc[64], command[96];
    assert_non_null(mkdtemp(dir));
    snprintf(proc, sizeof proc, "%s/proc", dir);
    assert_int_equal(pith__cpu_quota(proc, dir), 0);
    put(dir, "proc", "0::/a/b\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 0);
    put(dir, "a/b/cpu.max", "max 100000\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 0);
    put(dir, "a/cpu.max", "250000 100000\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 3);
    put(dir, "a/b/cpu.max", "50000 100000\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 1);
    put(dir, "proc", "12:cpu,cpuacct:/x\n3:memory:/a\n0::/\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 0);
    put(dir, "cpu/cpu.cfs_quota_us", "-1\n");
    put(dir, "cpu/cpu.cfs_period_us", "100000\n");
    put(dir, "cpu/x/cpu.cfs_quota_us", "400001\n");
    put(dir, "cpu/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 5);
    put(dir, "cpu.max", "200000 100000\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 2);
    put(dir, "proc", "nonsense\n::\n0:\n");
    assert_int_equal(pith__cpu_quota(proc, dir), 0);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void dtypes(void **state) {
    (void)state;
    size_t bytes;
    assert_int_equal(pith__dtype_bits(PITH_I4), 4);
    assert_int_equal(pith__dtype_bits(0), 0);
    assert_int_equal(pith__dtype_bits(-1), 0);
    assert_int_equal(pith__dtype_bits(1000), 0);
    assert_string_equal(pith__dtype_name(PITH_I64), "int64");
    assert_string_equal(pith__dtype_name(99), "unknown");
    assert_true(pith__dtype_is_float(PITH_BF16) && !pith__dtype_is_float(PITH_I8) &&
                pith__dtype_is_int(PITH_U2) && !pith__dtype_is_int(PITH_BOOL));
    assert_true(pith__dtype_bytes(PITH_U4, 3, &bytes) && bytes == 2);
    assert_true(pith__dtype_bytes(PITH_I2, 5, &bytes) && bytes == 2);
    assert_true(pith__dtype_bytes(PITH_F4E2M1, INT64_MAX, &bytes) && bytes == (size_t)1 << 62);
    assert_true(pith__dtype_bytes(PITH_STRING, 3, &bytes) && bytes == 3 * sizeof(pith_str));
    assert_false(pith__dtype_bytes(PITH_F64, INT64_MAX / 2, &bytes));
    assert_false(pith__dtype_bytes(PITH_F32, -1, &bytes));
    assert_false(pith__dtype_bytes(PITH_UNDEFINED, 1, &bytes));
    const int64_t dims[] = { 2, -1, 384 }, large[] = { INT64_MAX, 2, 0 },
                  none[] = { 0, 1 << 30, 4 };
    char text[32];
    assert_string_equal(pith__dims_text(dims, 3, text, sizeof text), "[2, ?, 384]");
    assert_string_equal(pith__dims_text(dims, 0, text, sizeof text), "[]");
    assert_string_equal(pith__dims_text(dims, 3, text, 9), "[2, ?…");
    assert_int_equal(pith__dims_count(dims, 3), -1);
    assert_int_equal(pith__dims_count(dims, 1), 2);
    assert_int_equal(pith__dims_count(dims, 0), 1);
    assert_int_equal(pith__dims_count(large, 2), -1);
    assert_int_equal(pith__dims_count(large, 3), -1); /* some stride would not fit */
    assert_int_equal(pith__dims_count(none, 3), 0);
}

/* Two sockets of two cores with two threads each, numbered as Linux does: first threads, then their
 * siblings. */
static void test_topology(void **state) {
    (void)state;
    static const char *const lists[] = { "0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7" };
    char root[] = "/tmp/pith_topology_XXXXXX", path[300], name[64];
    assert_non_null(mkdtemp(root));
    snprintf(
        path, sizeof path,
        "mkdir -p %s/proc && cd %s && printf 'flags\\t: x\\nmodel name\\t: A CPU @ 2 GHz\\n' > "
        "proc/cpuinfo",
        root, root);
    assert_int_equal(system(path), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path,
                 "d=%s/sys/devices/system/cpu/cpu%d/topology; mkdir -p $d; echo %s > "
                 "$d/thread_siblings_list",
                 root, i, lists[i]);
        assert_int_equal(system(path), 0);
    }
    const unsigned char all[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, halves[9] = { 0, 0, 1, 1, 1, 1 };
    assert_int_equal(pith__topology_cores(root, all, 8), 4);
    assert_int_equal(pith__topology_cores(root, all, 9), 5); /* nothing is known of the last */
    assert_int_equal(pith__topology_cores(root, halves, 8), 4);
    assert_int_equal(pith__topology_cores(root, all, 5), 4);
    snprintf(path, sizeof path,
             "echo 0-3 > %s/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", root);
    assert_int_equal(system(path), 0);
    assert_int_equal(pith__topology_cores(root, all, 3), 2);
    pith__topology_name(name, sizeof name, root);
    assert_string_equal(name, "A CPU @ 2 GHz");
    pith__topology_name(name, 6, root);
    assert_string_equal(name, "A CPU");
    snprintf(path, sizeof path, "rm -r %s", root);
    assert_int_equal(system(path), 0);
    pith__topology_name(name, sizeof name, root);
    assert_string_equal(name, "");
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--cpu") == 0) {
        printf("%d %d\n", (int)pith__cpu_get()->isa, pith__cpu_get()->threads);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology),
        cmocka_unit_test(every_part_once),
        cmocka_unit_test(woken_helpers),
        cmocka_unit_test(slow_threads_are_helped),
        cmocka_unit_test(results_are_visible),
        cmocka_unit_test(several_callers),
        cmocka_unit_test(nested_runs),
        cmocka_unit_test(nested_runs_are_helped),
        cmocka_unit_test(signals_are_blocked),
#ifndef PITH_SANITIZED_THREADS
        cmocka_unit_test(nested_runs_make_no_threads),
        cmocka_unit_test(works_after_fork),
        cmocka_unit_test(pinned_on_request),
#endif
        cmocka_unit_test(floating_point_mode),
        cmocka_unit_test(processor),
        cmocka_unit_test(limits_from_outside),
        cmocka_unit_test(quotas),
        cmocka_unit_test(dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
