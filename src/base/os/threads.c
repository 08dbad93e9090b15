/* threads.c - the threads of the process: the part "threads".
 *
 * A run is a `job` on the stack of its caller, linked into the list of open jobs. An idle thread
 * joins the first job that needs more threads and then draws parts of it, as the caller does. Each
 * thread has a range of parts, the same in every run with as many parts, so that it finds in its
 * cache what it wrote before. When its range is empty it draws from the ends of the other ranges,
 * so that no thread waits for one that is slow or never came. The caller closes the job when all
 * parts are drawn: no thread can join any more. It then waits until the threads that joined have
 * left.
 *
 * A task may start a parallel run of its own. Idle threads, and callers that are waiting for an
 * outer run, then help with the inner one.
 *
 * Idle threads, and callers waiting for the last part, spin for a while and then sleep. The list
 * and the counts change under one lock only; what spinning threads read is atomic. After fork a
 * child has no threads, so it starts over.
 *
 * With a host's pool there are no threads of our own: the host gets as many parts as threads are
 * wanted, each of which draws parts of the job until none is left. So any order of them, and one
 * after the other, is right. */
#include "base/os/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/cpu.h"

/* How long an idle thread spins before it sleeps, if nobody sets it. It must be longer than one
 * part, and than the pause between two steps of a small model; otherwise threads sleep within a
 * run, and waking them takes tens of microseconds. Longer wastes CPU time after the end of a run.
 */
#define SPIN_NS 200000
/* How long a caller who may be asked whether to stop sleeps at most, while helpers work. */
#define ASK_NS 2000000
/* The most threads the library starts, whatever is asked for, and the stack of each. Tasks keep
 * large data in scratch memory, so a stack can be small. */
#define THREADS_MAX 512
#define STACK_BYTES ((size_t)1 << 20)
/* The most ranges of a job; with more threads, several share a range. More ranges make a job larger
 * and the search for leftover parts longer. */
#define RANGES_MAX 16

typedef struct job {
    struct job *next, *above; /* above: the job of whose parts one made this run, or NULL */
    pith__task *task;
    void *context;
    pith__stop *stop; /* may be NULL */
    int ranges;
    _Atomic uint64_t parts[RANGES_MAX]; /* begin, and end << 32, of those that are not drawn */
    int wanted, joined;                 /* places for helpers, and those taken */
    atomic_int active;                  /* helpers still inside */
    bool hosted;                        /* its parts run on the host's threads */
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    job *jobs;
    int threads, sleepers, waiters;
    atomic_uint epoch; /* moves on with each new job */
    _Atomic uint64_t spin_ns;
    bool pinned;
    cpu_set_t processors; /* to be pinned to */
    bool stopping;        /* threads end, and none are made */
    int ended;
    pid_t ids[THREADS_MAX]; /* of those that have ended */
    pith_executor host;     /* run is NULL: there is none */
    int hosted;             /* runs on the host's threads */
    atomic_int helping;     /* helpers inside jobs, also of closed ones */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .work = PTHREAD_COND_INITIALIZER,
           .done = PTHREAD_COND_INITIALIZER, /* see watch_forks */
           .spin_ns = SPIN_NS };

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The job whose task this thread runs; `alone` in a run that is this thread's alone; NULL outside
 * of runs. */
static _Thread_local job *current;
static job alone;
/* Which of the pool's threads this is; 0: a caller. */
static _Thread_local int number;

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Until when to spin; 0: not at all, as it cannot help when there are more threads than processors.
 */
static uint64_t spin_end(int threads) {
    const uint64_t spin = atomic_load_explicit(&pool.spin_ns, memory_order_relaxed);
    return spin && threads <= pith__cpu_get()->threads ? pith__clock_ns() + spin : 0;
}

/* The next part of a range, or the last one; false: it is empty. */
static bool threads_draw(_Atomic uint64_t *range, bool last, size_t *part) {
    uint64_t parts = atomic_load_explicit(range, memory_order_relaxed), less;
    do {
        uint32_t begin = (uint32_t)parts, end = (uint32_t)(parts >> 32);
        if (begin == end) return false;
        *part = last ? end - 1 : begin;
        less = last ? parts - ((uint64_t)1 << 32) : parts + 1;
    } while (!atomic_compare_exchange_weak_explicit(range, &parts, less, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* All parts that are left: of the thread's own range from its begin, of the others from their end,
 * where their owners come last. */
static void draw_parts(job *j, int worker) {
    job *const above = current;
    current = j;
    size_t part;
    for (int i = 0, own = number % j->ranges; i < j->ranges; i++)
        while (threads_draw(&j->parts[(own + i) % j->ranges], i > 0, &part))
            if (!pith__stop_asked(j->stop)) j->task(j->context, part, worker);
    current = above;
}

/* How many parts are not drawn. */
static size_t left_of(const job *j) {
    size_t left = 0;
    for (int i = 0; i < j->ranges; i++) {
        uint64_t parts = atomic_load_explicit(&j->parts[i], memory_order_relaxed);
        left += (uint32_t)(parts >> 32) - (uint32_t)parts;
    }
    return left;
}

static bool is_below(const job *j, const job *above) {
    while (j && j != above) j = j->above;
    return j != NULL;
}

/* The first open job that wants help, or NULL; of any run, or of those that parts of `above` made.
 */
static job *find_job(const job *above) {
    job *j = pool.jobs;
    while (j && (j->joined == j->wanted || (above && !is_below(j, above)) || !left_of(j)))
        j = j->next;
    return j;
}

/* Called with the lock held, which it gives back and takes again. */
static void help(job *j) {
    int worker = ++j->joined;
    atomic_fetch_add_explicit(&j->active, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool.helping, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    draw_parts(j, worker);
    /* First, so that whoever sees that the run is over finds its helpers gone. */
    atomic_fetch_sub_explicit(&pool.helping, 1, memory_order_relaxed);
    /* The last access to the job. */
    bool last = atomic_fetch_sub_explicit(&j->active, 1, memory_order_release) == 1;
    pthread_mutex_lock(&pool.lock);
    if (last && pool.waiters) pthread_cond_broadcast(&pool.done);
}

/* A thread of the pool: helps with jobs; without any it first spins outside of the lock until the
 * epoch changes or SPIN_NS are over, then sleeps. The epoch is read under the lock before, so a job
 * that is opened in between is not missed. */
static void *thread_main(void *own_number) {
    number = (int)(intptr_t)own_number;
    pith__fpmode_enter();
    pthread_mutex_lock(&pool.lock);
    while (!pool.stopping) {
        job *j = find_job(NULL);
        if (j) {
            help(j);
            continue;
        }
        unsigned seen = atomic_load_explicit(&pool.epoch, memory_order_relaxed);
        const uint64_t limit = spin_end(pool.threads + 1);
        if (limit) {
            pthread_mutex_unlock(&pool.lock);
            for (int i = 1; atomic_load_explicit(&pool.epoch, memory_order_relaxed) == seen; i++) {
                if (i % 16 == 0 && pith__clock_ns() >= limit) break;
                relax();
            }
            pthread_mutex_lock(&pool.lock);
        }
        pool.sleepers++;
        while (atomic_load_explicit(&pool.epoch, memory_order_relaxed) == seen)
            pthread_cond_wait(&pool.work, &pool.lock);
        pool.sleepers--;
    }
    pool.ids[pool.ended++] = (pid_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&pool.done);
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }

static void after_fork_parent(void) { pthread_mutex_unlock(&pool.lock); }

/* Waiting callers may have a time at which they wake, which no change of the date must move. */
static void make_done(void) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool.done, &attr);
    pthread_condattr_destroy(&attr);
}

static void after_fork_child(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    make_done();
    pool.jobs = NULL;
    pool.threads = pool.sleepers = pool.waiters = pool.ended = pool.hosted = 0;
    atomic_store_explicit(&pool.helping, 0, memory_order_relaxed);
    pool.stopping = false;
}

/* Before the first run, so before anybody waits. */
static void watch_forks(void) {
    make_done();
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The n-th of the set, counted round and round. */
static cpu_set_t one_of(const cpu_set_t *set, int n) {
    cpu_set_t one;
    CPU_ZERO(&one);
    n %= CPU_COUNT(set);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, set) || n--) continue;
        CPU_SET(i, &one);
        break;
    }
    return one;
}

/* Called with the lock held. Fewer threads than wanted are no fault, nor is one that cannot be
 * pinned. */
static void make_threads(int wanted) {
    if (pool.threads >= wanted || pool.stopping) return;
    sigset_t all, old;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    while (pool.threads < wanted &&
           !pthread_create(&thread, &attr, thread_main, (void *)(intptr_t)(pool.threads + 1))) {
        pool.threads++;
        if (!pool.pinned) continue;
        cpu_set_t one = one_of(&pool.processors, pool.threads);
        pthread_setaffinity_np(thread, sizeof one, &one);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

/* Called with the lock held, which it gives back: makes helpers look for a job, up to `wanted` of
 * those asleep too, and callers that wait. Returns the new epoch. */
static unsigned rouse(int wanted) {
    const unsigned epoch = atomic_fetch_add_explicit(&pool.epoch, 1, memory_order_relaxed) + 1;
    const int sleepers = pool.sleepers, waiters = pool.waiters;
    pthread_mutex_unlock(&pool.lock);
    if (sleepers > wanted)
        for (int i = 0; i < wanted; i++) pthread_cond_signal(&pool.work);
    else if (sleepers)
        pthread_cond_broadcast(&pool.work);
    if (waiters) pthread_cond_broadcast(&pool.done);
    return epoch;
}

/* Called with the lock held: sleeps until a helper leaves or a job comes, but no longer than a
 * caller may who has to ask whether to stop. */
static void sleep_for_helpers(const job *j) {
    if (!j->stop) {
        pthread_cond_wait(&pool.done, &pool.lock);
        return;
    }
    const uint64_t end = pith__clock_ns() + ASK_NS;
    const struct timespec until = { (time_t)(end / 1000000000), (long)(end % 1000000000) };
    pthread_cond_timedwait(&pool.done, &pool.lock, &until);
}

/* Returns when no helper is inside the job, which no thread can join any more; helps with runs of
 * its parts meanwhile. seen: the epoch it began in. */
static void wait_for_helpers(job *j, unsigned seen) {
    if (!atomic_load_explicit(&j->active, memory_order_acquire)) return;
    uint64_t limit = spin_end(j->wanted + 1);
    for (int i = 1; atomic_load_explicit(&j->active, memory_order_acquire); i++) {
        const unsigned epoch = atomic_load_explicit(&pool.epoch, memory_order_relaxed);
        if (i % 16 == 0) (void)pith__stop_asked(j->stop);
        if (epoch == seen && (i % 16 || pith__clock_ns() < limit)) {
            relax();
            continue;
        }
        pthread_mutex_lock(&pool.lock);
        job *below = find_job(j);
        if (below) {
            help(below);
        } else if (epoch == seen) {
            pool.waiters++;
            if (atomic_load_explicit(&j->active, memory_order_acquire) &&
                atomic_load_explicit(&pool.epoch, memory_order_relaxed) == seen)
                sleep_for_helpers(j);
            pool.waiters--;
        }
        pthread_mutex_unlock(&pool.lock);
        seen = epoch;
        if (below) limit = spin_end(j->wanted + 1);
    }
}

/* One of the parts that a host's pool gets. */
static void host_part(void *context, size_t part) {
    const int own = number;
    const pith__fpmode mode = pith__fpmode_enter();
    number = (int)part;
    draw_parts(context, (int)part);
    number = own;
    pith__fpmode_leave(mode);
}

/* Called with the lock held, which it gives back. What a pool left out is done at the end. */
static void run_hosted(job *j) {
    const pith_executor host = pool.host;
    const int width = j->wanted + 1;
    pool.hosted++;
    pthread_mutex_unlock(&pool.lock);
    host.run(host.user, host_part, j, (size_t)width, width);
    draw_parts(j, 0);
    pthread_mutex_lock(&pool.lock);
    pool.hosted--;
    pthread_mutex_unlock(&pool.lock);
}

/* All parts on this thread, and those of runs within them. */
static void run_alone(pith__task *task, void *context, size_t parts, pith__stop *stop) {
    job *const above = current;
    if (!above) current = &alone;
    for (size_t part = 0; part < parts; part++)
        if (!pith__stop_asked(stop)) task(context, part, 0);
    current = above;
}

/* Parts are divided into up to RANGES_MAX ranges beforehand, so that neighbours work on
 * neighbouring parts, and drawing one touches a counter that others rarely touch. A thread that has
 * emptied its range draws from the ends of the others. The caller works too, as worker 0, and
 * leaves only when no helper is inside: the job lies on its stack. A run within a part joins the
 * same list, and waiting callers help with it, so a run never waits for a thread that sleeps. A
 * run within a part that a host's pool does stays on its thread: the pool might wait for itself. */
static void threads_run(pith__task *task, void *context, size_t parts, int threads,
                        pith__stop *stop) {
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    if (threads > 0 && (size_t)threads > parts) threads = (int)parts;
    if (threads <= 1 || current == &alone || parts > UINT32_MAX || (current && current->hosted)) {
        run_alone(task, context, parts, stop);
        return;
    }
    pthread_once(&once, watch_forks);
    job j = {
        .above = current, .task = task, .context = context, .stop = stop, .wanted = threads - 1
    };
    j.ranges = threads < RANGES_MAX ? threads : RANGES_MAX;
    for (size_t i = 0, ranges = (size_t)j.ranges; i < ranges; i++)
        atomic_init(&j.parts[i], (uint64_t)(parts * (i + 1) / ranges) << 32 | parts * i / ranges);

    pthread_mutex_lock(&pool.lock);
    if (pool.host.run && !current) {
        j.hosted = true;
        run_hosted(&j);
        return;
    }
    if (!current) make_threads(j.wanted);
    job **last = &pool.jobs;
    while (*last) last = &(*last)->next;
    *last = &j;
    const unsigned epoch = rouse(j.wanted);

    draw_parts(&j, 0);

    pthread_mutex_lock(&pool.lock);
    job **link = &pool.jobs;
    while (*link != &j) link = &(*link)->next;
    *link = j.next;
    pthread_mutex_unlock(&pool.lock);
    wait_for_helpers(&j, epoch);
}

/* A thread that has left thread_main still runs a few instructions of the C library; it is gone
 * when the system knows it no more. */
static void await_end(pid_t id) {
    const struct timespec pause = { .tv_nsec = 50000 };
    for (int i = 0; i < 20000; i++) {
        if (syscall(SYS_tgkill, getpid(), id, 0)) return;
        nanosleep(&pause, NULL);
    }
}

/* Waits for two milliseconds at a time. */
static bool threads_lock(pthread_mutex_t *lock, pith__stop *stop) {
    int failed = pthread_mutex_trylock(lock);
    while (failed) {
        struct timespec until;
        if (pith__stop_asked(stop)) return false;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 2000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        failed = pthread_mutex_timedlock(lock, &until);
    }
    return true;
}

/* Called with the lock held: whether somebody's tasks run. The last parts of a job run after it is
 * closed: one of them that ended the threads would wait for its own. */
static bool is_busy(void) {
    return pool.jobs || pool.hosted || atomic_load_explicit(&pool.helping, memory_order_relaxed);
}

static bool threads_stop(void) {
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&pool.lock);
    while (pool.stopping) pthread_cond_wait(&pool.done, &pool.lock);
    const bool busy = is_busy();
    const int threads = busy ? 0 : pool.threads;
    if (!threads) {
        pthread_mutex_unlock(&pool.lock);
        return !busy;
    }
    pool.stopping = true;
    rouse(threads);
    pthread_mutex_lock(&pool.lock);
    while (pool.ended < threads) pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < threads; i++) await_end(pool.ids[i]);
    pthread_mutex_lock(&pool.lock);
    pool.threads = pool.ended = 0;
    pool.stopping = false;
    pthread_cond_broadcast(&pool.done);
    pthread_mutex_unlock(&pool.lock);
    return true;
}

static bool threads_host(const pith_executor *host) {
    pthread_mutex_lock(&pool.lock);
    const bool busy = is_busy();
    if (!busy) pool.host = host ? *host : (pith_executor){ NULL, NULL };
    pthread_mutex_unlock(&pool.lock);
    return !busy;
}

static void threads_spin(uint64_t nanoseconds) {
    atomic_store_explicit(&pool.spin_ns, nanoseconds == UINT64_MAX ? SPIN_NS : nanoseconds,
                          memory_order_relaxed);
}

static size_t threads_left(void) { return current ? left_of(current) : 0; }

static void threads_wake(int threads) {
    if (threads <= 1 || current) return;
    pthread_mutex_lock(&pool.lock);
    if (pool.host.run)
        pthread_mutex_unlock(&pool.lock);
    else
        rouse(threads - 1);
}

static void threads_pin(bool pin) {
    pthread_mutex_lock(&pool.lock);
    pool.pinned = pin && !sched_getaffinity(0, sizeof pool.processors, &pool.processors);
    pthread_mutex_unlock(&pool.lock);
}

static uintptr_t threads_self(void) { return (uintptr_t)pthread_self(); }

const pith__part pith__part_threads = { "threads", &(const pith__threads_part){
                                                       .run = threads_run,
                                                       .left = threads_left,
                                                       .wake = threads_wake,
                                                       .pin = threads_pin,
                                                       .self = threads_self,
                                                       .lock = threads_lock,
                                                       .stop = threads_stop,
                                                       .host = threads_host,
                                                       .spin = threads_spin,
                                                       .machine = pith__machine_read } };
