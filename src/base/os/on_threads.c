/* on_threads.c - runs on the threads of the process, if this build has any (threads.c). */
#include "base/os/threads.h"

#include <stdatomic.h>

#include "base/left_out_pieces.h"

/* See pith_set_threads. */
#define COUNT_MOST 512
/* A call may ask for more, and takes as many as it has use for; beyond this it is a mistake. */
#define CALL_MOST 4096
static atomic_int count_default;

/* Looked up once: operators ask for each of their parallel runs. */
static const pith__threads_part *on_threads_part(void) {
    static _Atomic(const pith__threads_part *) found;
    const pith__threads_part *part = atomic_load_explicit(&found, memory_order_relaxed);
    if (part) return part;
    part = pith__part_find("threads");
    atomic_store_explicit(&found, part, memory_order_relaxed);
    return part;
}

pith_status pith__threads_check(int threads, pith_error *err) {
    if (threads < 0) return pith__fail(err, PITH_ERR_ARGUMENT, "threads must not be negative");
    if (threads > CALL_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT, "threads is %d; it must be from 0 to %d", threads,
                          CALL_MOST);
    if (threads <= 1 || on_threads_part()) return PITH_OK;
    return pith__piece_check_for("parts", PITH_STR("threads"), "threads", err);
}

int pith__threads_count(int32_t threads) {
    if (threads > 0) return threads;
    const int count = atomic_load_explicit(&count_default, memory_order_relaxed);
    return count ? count : pith__cpu_get()->threads;
}

pith_status pith__threads_set_count(int32_t threads, pith_error *err) {
    if (threads < 0 || threads > COUNT_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%d threads are not between 0 and %d", threads,
                          COUNT_MOST);
    PITH_TRY(pith__threads_check(threads, err));
    atomic_store_explicit(&count_default, threads, memory_order_relaxed);
    return PITH_OK;
}

void pith__threads_run_until(pith__stop *stop, pith__task *task, void *context, size_t parts,
                             int threads) {
    const pith__threads_part *own = on_threads_part();
    if (own) {
        own->run(task, context, parts, threads, stop);
        return;
    }
    for (size_t part = 0; part < parts; part++)
        if (!pith__stop_asked(stop)) task(context, part, 0);
}

void pith__threads_run(pith__task *task, void *context, size_t parts, int threads) {
    pith__threads_run_until(NULL, task, context, parts, threads);
}

size_t pith__threads_left(void) {
    const pith__threads_part *own = on_threads_part();
    return own ? own->left() : 0;
}

void pith__threads_wake(int threads) {
    const pith__threads_part *own = on_threads_part();
    if (own) own->wake(threads);
}

uintptr_t pith__threads_self(void) {
    const pith__threads_part *own = on_threads_part();
    return own ? own->self() : 0;
}

pith_status pith__threads_lock(pthread_mutex_t *lock, pith__stop *stop, pith_error *err) {
    const pith__threads_part *own = on_threads_part();
    if (own && stop) return own->lock(lock, stop) ? PITH_OK : pith__stop_check(stop, err);
    pthread_mutex_lock(lock);
    return PITH_OK;
}

void pith__threads_pin(bool pin) {
    const pith__threads_part *own = on_threads_part();
    if (own) own->pin(pin);
}

void pith__threads_set_spin(int32_t microseconds) {
    const pith__threads_part *own = on_threads_part();
    if (own) own->spin(microseconds < 0 ? UINT64_MAX : (uint64_t)microseconds * 1000);
}

bool pith__threads_stop(void) {
    const pith__threads_part *own = on_threads_part();
    return !own || own->stop();
}

bool pith__threads_set_host(const pith_executor *host) {
    const pith__threads_part *own = on_threads_part();
    return !own || own->host(host);
}
