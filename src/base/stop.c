/* stop.c - see stop.h. */
#include "base/stop.h"

#include <string.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/threads.h"

/* How long the caller's function is not asked again. Smaller: calls end sooner, and a function that
 * takes a lock costs more. */
#define STOP_ASK_NS 2000000
/* Bytes that are copied between two looks: a millisecond, or some where the memory is new. */
#define STOP_COPY ((size_t)4 << 20)

pith__stop *pith__stop_begin(pith__stop *s, const pith_call *call) {
    if (!call->cancel && !call->deadline_ns && !call->stop) return NULL;
    s->flag = call->cancel;
    s->deadline = call->deadline_ns;
    s->ask = call->stop;
    s->user = call->user;
    s->caller = pith__threads_self();
    atomic_init(&s->asked, 0);
    atomic_init(&s->reason, PITH_OK);
    return s;
}

/* The first reason stays. */
static bool stop_for(pith__stop *s, int reason) {
    int none = PITH_OK;
    atomic_compare_exchange_strong_explicit(&s->reason, &none, reason, memory_order_relaxed,
                                            memory_order_relaxed);
    return true;
}

bool pith__stop_look(pith__stop *s) {
    if (atomic_load_explicit(&s->reason, memory_order_relaxed)) return true;
    if (s->flag && __atomic_load_n(s->flag, __ATOMIC_RELAXED))
        return stop_for(s, PITH_ERR_CANCELLED);
    if (!s->deadline && !s->ask) return false;
    uint64_t now = pith__clock_ns();
    if (s->deadline && now >= s->deadline) return stop_for(s, PITH_ERR_DEADLINE);
    if (!s->ask || pith__threads_self() != s->caller) return false;
    if (now - atomic_load_explicit(&s->asked, memory_order_relaxed) < STOP_ASK_NS) return false;
    atomic_store_explicit(&s->asked, now, memory_order_relaxed);
    return s->ask(s->user) && stop_for(s, PITH_ERR_CANCELLED);
}

pith_status pith__stop_check(pith__stop *s, pith_error *err) {
    if (!pith__stop_asked(s)) return PITH_OK;
    if (atomic_load_explicit(&s->reason, memory_order_relaxed) == PITH_ERR_DEADLINE)
        return pith__fail(err, PITH_ERR_DEADLINE, "the deadline passed before the call was done");
    return pith__fail(err, PITH_ERR_CANCELLED, "cancelled");
}

pith_status pith__copy_until(pith__stop *s, void *to, const void *from, size_t bytes,
                             pith_error *err) {
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < STOP_COPY ? bytes - at : STOP_COPY;
        if (at) PITH_TRY(pith__stop_check(s, err));
        if (from)
            memcpy((char *)to + at, (const char *)from + at, n);
        else
            memset((char *)to + at, 0, n);
    }
    return PITH_OK;
}
