/* stop.h - whether a call must end early: the caller's flag, the deadline, and his function, in one
 * value that goes down to whatever can last long.
 *
 * Any thread of a call may look at it. The caller's function is asked on his own thread only, and
 * at most every two milliseconds; the other threads see its answer in `reason`. A call that cannot
 * be stopped has NULL in place of the value, and pays one comparison. */
#ifndef PITH_BASE_STOP_H
#define PITH_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"
#include "pith/call.h"

typedef struct pith__stop {
    const volatile int *flag; /* NULL: none */
    uint64_t deadline;        /* pith__clock_ns; 0: none */
    int32_t (*ask)(void *user);
    void *user;
    uintptr_t caller;           /* pith__threads_self of the thread that may ask */
    atomic_uint_fast64_t asked; /* when it asked last */
    atomic_int reason;          /* a pith_status, once the call must end */
} pith__stop;

/* Takes what the context says. Returns s, or NULL if nothing can stop the call. */
PITH_PRIVATE pith__stop *pith__stop_begin(pith__stop *s, const pith_call *call);

/* The slow part of pith__stop_asked. */
PITH_PRIVATE bool pith__stop_look(pith__stop *s);

/* Whether the call must end. s may be NULL. */
static inline bool pith__stop_asked(pith__stop *s) { return s && pith__stop_look(s); }

/* The same of what is known already: nobody is asked. */
static inline bool pith__stop_is_known(pith__stop *s) {
    return s && atomic_load_explicit(&s->reason, memory_order_relaxed);
}

/* PITH_OK, or the error that ends the call. s may be NULL. */
PITH_PRIVATE pith_status pith__stop_check(pith__stop *s, pith_error *err);

/* Copies bytes piece by piece, or writes zeros if from is NULL, until the call must end. */
pith_status pith__copy_until(pith__stop *s, void *to, const void *from, size_t bytes,
                             pith_error *err);

/* Whether a status says that the caller ended the call: nothing is wrong with what it worked on. */
static inline bool pith__status_stops(pith_status status) {
    return status == PITH_ERR_CANCELLED || status == PITH_ERR_DEADLINE;
}

#endif
