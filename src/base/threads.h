/* pool.h - the process's thread pool.
 *
 * Threads are made on first use, never more than asked for so far, spin briefly and then sleep, have all signals
 * blocked, run in the library's floating point mode, and are made anew after fork. Several callers may use the pool at
 * the same time. A run called from inside a task makes no threads: it is helped by those that have nothing else to do,
 * so nesting never oversubscribes. If threads cannot be made the caller does the work itself. */
#ifndef PITH_BASE_THREADS_H
#define PITH_BASE_THREADS_H

#include <stdbool.h>
#include <stddef.h>

/* part counts from 0 to parts - 1; worker from 0 to threads - 1 is unique among the parts that run at one moment. */
typedef void pith_task(void *context, size_t part, int worker);

/* Runs task for every part on up to `threads` threads, the caller's included, and returns when all are done.
 * Which thread takes which part is not fixed; results must not depend on it. */
void pith_threads_run(pith_task *task, void *context, size_t parts, int threads);

/* Inside a task: how many parts of its run nobody has begun; 0 elsewhere. Once they are fewer than the threads, some of
 * these will soon have nothing to do but help. */
size_t pith_threads_left(void);

/* Wakes as many helpers as a run on `threads` threads takes, which a caller does that has such a run a few microseconds
 * ahead: waking takes longer than a small model's first step. */
void pith_threads_wake(int threads);

/* Whether threads made from now on stay on a processor each: the n-th helper on the n-th of those the calling thread
 * may use now, round and round; the first, number 0, is left to the caller of runs, who is never pinned. */
void pith_threads_pin(bool pin);

#endif
