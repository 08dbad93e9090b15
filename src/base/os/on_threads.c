/* on_threads.c - runs on the threads of the process, if this build has any (threads.c). */
#include "base/os/threads.h"

#include <stdatomic.h>

#include "base/left_out_pieces.h"

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
    if (threads <= 1 || on_threads_part()) return PITH_OK;
    return pith__piece_check_for("parts", PITH_STR("threads"), "threads", err);
}

void pith__threads_run(pith__task *task, void *context, size_t parts, int threads) {
    const pith__threads_part *own = on_threads_part();
    if (own) {
        own->run(task, context, parts, threads);
        return;
    }
    for (size_t part = 0; part < parts; part++) task(context, part, 0);
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

void pith__threads_pin(bool pin) {
    const pith__threads_part *own = on_threads_part();
    if (own) own->pin(pin);
}
