/* threads.h - the worker threads of the process.
 *
 * Threads are created on first use, never more than any run has asked for. Idle threads spin
 * briefly and then sleep. They block all signals and run in the library's floating-point mode.
 * After fork, the child creates new ones. Several callers may run tasks at the same time. A task
 * may start a parallel run of its own: this creates no threads, but idle ones help with it, so
 * nested runs never oversubscribe the CPUs. If no thread can be created, the caller does all the
 * work. */
#ifndef PITH_BASE_OS_THREADS_H
#define PITH_BASE_OS_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/optional_part.h"
#include "base/os/cpu.h"
#include "base/private_symbol.h"
#include "base/stop.h"

/* part is from 0 to parts - 1. worker is from 0 to threads - 1; no two parts that run at the same
 * time share one. */
typedef void pith__task(void *context, size_t part, int worker);

/* An error if the number of threads that a caller asks for is negative, or more than one in a build
 * without threads. */
pith_status pith__threads_check(int threads, pith_error *err);

/* The number of threads that work takes whose options say so many: 0 is what pith_set_threads said,
 * by default the CPUs that the process may use. This is the only place where 0 becomes a number. */
PITH_PRIVATE int pith__threads_count(int32_t threads);
/* See pith_set_threads. */
pith_status pith__threads_set_count(int32_t threads, pith_error *err);

/* Runs task for every part on up to `threads` threads, including the caller, and returns when all
 * parts are done. Any thread may take any part, so results must not depend on which one did. */
PITH_PRIVATE void pith__threads_run(pith__task *task, void *context, size_t parts, int threads);

/* As pith__threads_run, of work that may have to end early: parts that have not begun by then are
 * left out, and the caller's function is asked while the caller waits for other threads. The work
 * is then incomplete, which only the stop tells. stop may be NULL. */
PITH_PRIVATE void pith__threads_run_until(pith__stop *stop, pith__task *task, void *context,
                                          size_t parts, int threads);

/* Returns, inside a task, how many parts of its run have not begun; 0 elsewhere. When fewer parts
 * than threads are left, some threads will soon be idle and can help with an inner run. */
size_t pith__threads_left(void);

/* Wakes the helpers of a run on `threads` threads that will start in a few microseconds. Waking
 * takes longer than the first step of a small model. */
void pith__threads_wake(int threads);

/* A number of the calling thread, which differs from that of every other thread that runs. 0 in a
 * build without threads. */
uintptr_t pith__threads_self(void);

/* Takes a lock whose holder may keep it for long, or returns the error of a call that must end
 * before it has it. stop may be NULL. */
pith_status pith__threads_lock(pthread_mutex_t *lock, pith__stop *stop, pith_error *err);

/* If pin is true, threads created from now on are pinned: helper n to the n-th CPU of the calling
 * thread's current affinity mask, modulo its size. CPU 0 of the mask is left for the caller of
 * runs, which is never pinned. */
void pith__threads_pin(bool pin);
/* See pith_set_spin, pith_stop_threads and pith_set_executor. The last two return false if a run is
 * not over. */
void pith__threads_set_spin(int32_t microseconds);
bool pith__threads_stop(void);
bool pith__threads_set_host(const pith_executor *host);

/* The part "threads" (base/optional_part.h). Without it, the caller does all the work, and caches
 * are taken to be small. */
typedef struct pith__threads_part {
    void (*run)(pith__task *task, void *context, size_t parts, int threads, pith__stop *stop);
    size_t (*left)(void);
    void (*wake)(int threads);
    void (*pin)(bool pin);
    uintptr_t (*self)(void);
    bool (*lock)(pthread_mutex_t *lock, pith__stop *stop); /* false: the call must end */
    bool (*stop)(void);
    bool (*host)(const pith_executor *host);
    void (*spin)(uint64_t nanoseconds); /* UINT64_MAX: the default */
    void (*machine)(pith__cpu *cpu);    /* caches, allowed, quota and threads, if they are known */
} pith__threads_part;

/* Of that part, see machine.c. */
void pith__machine_read(pith__cpu *cpu);

#endif
