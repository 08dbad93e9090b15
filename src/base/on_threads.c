/* on_threads.c - runs on the threads of the process, if this build has any (threads.c). */
#include "base/threads.h"

static const pith_threads_part *on_threads_part(void) { return pith_part_find("threads"); }

void pith_threads_run(pith_task *task, void *context, size_t parts, int threads) {
    const pith_threads_part *own = on_threads_part();
    if (own) {
        own->run(task, context, parts, threads);
        return;
    }
    for (size_t part = 0; part < parts; part++) task(context, part, 0);
}

size_t pith_threads_left(void) {
    const pith_threads_part *own = on_threads_part();
    return own ? own->left() : 0;
}

void pith_threads_wake(int threads) {
    const pith_threads_part *own = on_threads_part();
    if (own) own->wake(threads);
}

void pith_threads_pin(bool pin) {
    const pith_threads_part *own = on_threads_part();
    if (own) own->pin(pin);
}
