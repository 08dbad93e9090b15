/* progress.c - see progress.h. */
#include "base/progress.h"

#include <stdbool.h>
#include <string.h>

#include "base/os/clock.h"
#include "base/os/threads.h"

/* How long nothing more is told. Smaller: a bar on a screen moves more smoothly, and the caller's
 * function costs more. */
#define PROGRESS_PAUSE_NS 100000000

pith__progress *pith__progress_begin(pith__progress *p, const pith_call *call) {
    if (!call->progress) return NULL;
    *p = (pith__progress){ .tell = call->progress,
                           .user = call->user,
                           .caller = pith__threads_self() };
    return p;
}

void pith__progress_put(pith__progress *p, const char *what, uint64_t done, uint64_t total) {
    const bool known = p->what && !strcmp(p->what, what) && done <= p->done;
    if (known || pith__threads_self() != p->caller) return;
    const uint64_t now = pith__clock_ns();
    if (now < p->next && (!total || done < total)) return;
    p->next = now + PROGRESS_PAUSE_NS;
    p->what = what;
    p->done = done;
    p->tell(p->user, what, done, total);
}
