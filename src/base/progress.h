/* progress.h - telling the caller how far long work is (pith/call.h). */
#ifndef PITH_BASE_PROGRESS_H
#define PITH_BASE_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/private_symbol.h"
#include "pith/call.h"

typedef struct pith__progress {
    void (*tell)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
    uintptr_t caller; /* pith__threads_self of the thread that is told */
    uint64_t next;    /* pith__clock_ns before which nothing more is told */
    const char *what; /* what was told last, and is not told again; NULL: nothing yet */
    uint64_t done;
} pith__progress;

/* Takes what the context says. Returns p, or NULL if nobody wants to know. */
PITH_PRIVATE pith__progress *pith__progress_begin(pith__progress *p, const pith_call *call);

/* The slow part of pith__progress_tell. */
PITH_PRIVATE void pith__progress_put(pith__progress *p, const char *what, uint64_t done,
                                     uint64_t total);

/* Any thread may call it: only what the caller's own thread says is told, ten times in a second at
 * most, and the end of a step always. p may be NULL. */
static inline void pith__progress_tell(pith__progress *p, const char *what, uint64_t done,
                                       uint64_t total) {
    if (p) pith__progress_put(p, what, done, total);
}

#endif
