/* session_pool.c - see pith/session_pool.h.
 *
 * The session that came back last goes out first, since its memory is most likely still in the
 * caches. While threads wait none is idle: one that comes back goes straight to the thread that has
 * waited longest, so that no thread is overtaken. The pool counts sessions that exist or are being
 * made; a thread that cannot make the one it was promised passes the promise on. Sessions are made
 * and ended while the lock is not held. */
#include "models/session/session_pool.h"

#include <errno.h>
#include <time.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/cpu.h"

/* LOOK_MS: how long a waiting thread does not look whether its call must end. */
enum { POOL_SESSIONS_MOST = 4096, LOOK_MS = 5 };

typedef struct idle_session {
    pith_session *session;
    uint64_t since; /* pith__clock_ns */
} idle_session;

/* On the stack of the thread that waits. */
typedef struct waiter {
    struct waiter *next;
    pthread_cond_t wake;
    bool served;           /* session is set, or may_make */
    pith_session *session; /* NULL: the thread may make one, which is counted already */
} waiter;

struct pith_session_pool {
    pith_model *model; /* counters alone are changed */
    size_t most, most_idle;
    uint64_t patience; /* nanoseconds; 0: any time */
    pthread_condattr_t monotonic;
    pthread_mutex_t lock; /* guards the members below */
    size_t exist;
    idle_session *idle; /* [most], the longest idle first */
    size_t idle_count;
    waiter *first, **end; /* in the order they came */
};

/* ---- making and ending ---- */

static pith_status pool_check(const char *name, int32_t value, int32_t most, pith_error *err) {
    if (value >= 0 && value <= most) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "%s is %d; it must be from 0 to %d", name, value,
                      most);
}

/* Waiting goes by the monotonic clock, which is never set back. */
static pith_status pool_make_lock(pith_session_pool *p, pith_error *err) {
    if (pthread_mutex_init(&p->lock, NULL)) return pith__fail_memory(err, sizeof p->lock);
    if (pthread_condattr_init(&p->monotonic)) {
        pthread_mutex_destroy(&p->lock);
        return pith__fail_memory(err, sizeof p->monotonic);
    }
    pthread_condattr_setclock(&p->monotonic, CLOCK_MONOTONIC);
    return PITH_OK;
}

/* Sessions are made when they are first borrowed. */
pith_status pith__model_create_pool(pith_session_pool **pool, const pith_model *model,
                                    const pith_session_pool_options *options, pith_error *err) {
    pith_session_pool_options o = PITH_SESSION_POOL_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(pool_check("sessions", o.sessions, POOL_SESSIONS_MOST, err));
    PITH_TRY(pool_check("idle", o.idle, POOL_SESSIONS_MOST, err));
    PITH_TRY(pool_check("idle_ms", o.idle_ms, INT32_MAX, err));
    size_t most = o.sessions ? (size_t)o.sessions : (size_t)pith__threads_count(0);
    size_t bytes = sizeof(pith_session_pool) + most * sizeof(idle_session);
    pith_session_pool *p = pith__memory_alloc(&model->account.allocator, bytes, 64);
    if (!p) return pith__account_explain(&model->account, pith__fail_memory(err, bytes), err);
    *p = (pith_session_pool){ .model = (pith_model *)(uintptr_t)model,
                              .most = most,
                              .most_idle = o.idle && (size_t)o.idle < most ? (size_t)o.idle : most,
                              .patience = (uint64_t)o.idle_ms * 1000000,
                              .idle = (idle_session *)(p + 1) };
    p->end = &p->first;
    pith_status status = pool_make_lock(p, err);
    if (status) {
        pith__memory_free(&model->account.allocator, p);
        return status;
    }
    pith__model_keep(model);
    *pool = p;
    return PITH_OK;
}

void pith__model_destroy_pool(pith_session_pool *p) {
    if (!p) return;
    pith__model_trim_pool(p);
    pthread_condattr_destroy(&p->monotonic);
    pthread_mutex_destroy(&p->lock);
    const pith_model *model = p->model;
    pith__memory_free(&model->account.allocator, p);
    pith__model_release(model);
}

/* ---- with the lock held ---- */

static void pool_count(pith_session_pool *p, pith__counter which) {
    pith__count(&p->model->account.counters, which, 1);
}

/* The model counts idle sessions of all its pools, for statistics. */
static void pool_set_idle(pith_session_pool *p, size_t count) {
    if (count > p->idle_count)
        atomic_fetch_add_explicit(&p->model->pooled_idle, count - p->idle_count,
                                  memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&p->model->pooled_idle, p->idle_count - count,
                                  memory_order_relaxed);
    p->idle_count = count;
}

/* A session that comes back, or the right to make one (NULL), goes to the thread that has waited
 * longest. False: none waits. */
static bool pool_serve(pith_session_pool *p, pith_session *session) {
    waiter *w = p->first;
    if (!w) return false;
    p->first = w->next;
    if (!p->first) p->end = &p->first;
    w->session = session;
    w->served = true;
    pthread_cond_signal(&w->wake);
    return true;
}

static void pool_leave(pith_session_pool *p, const waiter *w) {
    waiter **link = &p->first;
    while (*link != w) link = &(*link)->next;
    *link = w->next;
    if (!*link) p->end = link;
}

/* A session is gone, or was not made. */
static void pool_forget(pith_session_pool *p) {
    if (!pool_serve(p, NULL)) p->exist--;
}

/* The longest idle session, if it has waited too long or too many wait; NULL: none. */
static pith_session *pool_take_old(pith_session_pool *p, uint64_t now) {
    bool late = p->idle_count && p->patience && now - p->idle[0].since >= p->patience;
    if (!late && p->idle_count <= p->most_idle) return NULL;
    pith_session *old = p->idle[0].session;
    for (size_t i = 1; i < p->idle_count; i++) p->idle[i - 1] = p->idle[i];
    pool_set_idle(p, p->idle_count - 1);
    pool_forget(p);
    pool_count(p, PITH_COUNT_sessions_evicted);
    return old;
}

/* ---- the lock is not held ---- */

/* Sessions are destroyed without the lock, one at a time: that may take long. */
static void pool_end_old(pith_session_pool *p) {
    for (;;) {
        pthread_mutex_lock(&p->lock);
        pith_session *old = pool_take_old(p, pith__clock_ns());
        pthread_mutex_unlock(&p->lock);
        if (!old) return;
        pith__model_destroy_session(old);
    }
}

/* Idle sessions only; borrowed ones come back as usual. */
void pith__model_trim_pool(pith_session_pool *p) {
    for (;;) {
        pith_session *session = NULL;
        pthread_mutex_lock(&p->lock);
        if (p->idle_count) {
            session = p->idle[p->idle_count - 1].session;
            pool_set_idle(p, p->idle_count - 1);
            pool_forget(p);
        }
        pthread_mutex_unlock(&p->lock);
        if (!session) return;
        pith__model_destroy_session(session);
    }
}

/* A time so far away that it cannot be added up is never reached. */
static struct timespec pool_deadline(int64_t timeout_ms) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t seconds = timeout_ms / 1000, most = 1000000000; /* beyond that, the time never comes */
    t.tv_sec += (time_t)(seconds < most ? seconds : most);
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool pool_is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec == b->tv_sec ? a->tv_nsec < b->tv_nsec : a->tv_sec < b->tv_sec;
}

/* With the lock held, which it gives up while it waits. *may_make: the thread may make a session.
 */
static pith_status pool_wait(pith_session **session, bool *may_make, pith_session_pool *p,
                             int64_t timeout_ms, pith__stop *stop, pith_error *err) {
    waiter w = { .served = false };
    struct timespec deadline = pool_deadline(timeout_ms > 0 ? timeout_ms : 0);
    if (timeout_ms == 0)
        return pith__fail(err, PITH_ERR_BUSY, "all %zu sessions of the pool are borrowed", p->most);
    if (pthread_cond_init(&w.wake, &p->monotonic)) return pith__fail_memory(err, sizeof w.wake);
    *p->end = &w;
    p->end = &w.next;
    pool_count(p, PITH_COUNT_sessions_waited);
    bool timed_out = false, stopped = false;
    while (!w.served && !timed_out && !stopped) {
        const struct timespec look = pool_deadline(LOOK_MS), *until = &deadline;
        const bool looks = stop && (timeout_ms < 0 || pool_is_before(&look, &deadline));
        if (looks) until = &look;
        if (timeout_ms < 0 && !looks)
            pthread_cond_wait(&w.wake, &p->lock);
        else
            timed_out = pthread_cond_timedwait(&w.wake, &p->lock, until) == ETIMEDOUT && !looks;
        if (!stop || w.served) continue;
        pthread_mutex_unlock(&p->lock); /* the caller's function may do anything */
        stopped = pith__stop_asked(stop);
        pthread_mutex_lock(&p->lock);
    }
    if (!w.served) pool_leave(p, &w);
    pthread_cond_destroy(&w.wake);
    *session = w.session;
    *may_make = w.served && !w.session;
    if (!w.served && stopped) return pith__stop_check(stop, err);
    return w.served ? PITH_OK
                    : pith__fail(err, PITH_ERR_BUSY,
                                 "none of the %zu sessions of the pool was returned in %lld ms",
                                 p->most, (long long)timeout_ms);
}

/* A session that exists already, or the right to make one. */
static pith_status pool_take(pith_session **session, bool *may_make, pith_session_pool *p,
                             int64_t timeout_ms, pith__stop *stop, pith_error *err) {
    pith_status status = PITH_OK;
    pthread_mutex_lock(&p->lock);
    if (p->idle_count) {
        *session = p->idle[p->idle_count - 1].session;
        pool_set_idle(p, p->idle_count - 1);
    } else if (p->exist < p->most) {
        p->exist++;
        *may_make = true;
    } else {
        status = pool_wait(session, may_make, p, timeout_ms, stop, err);
    }
    if (!status && !*may_make) pool_count(p, PITH_COUNT_sessions_borrowed);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* A session is made outside the lock. If that fails, the right to make one goes to the next thread
 * that waits. */
pith_status pith__model_borrow_session(pith_session **session, pith_session_pool *p,
                                       int64_t timeout_ms, const pith_call *call, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__stop own, *stop = pith__stop_begin(&own, &o);
    pith_session *taken = NULL;
    bool may_make = false;
    if (timeout_ms < -1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "timeout_ms must not be below -1");
    PITH_TRY(pith__stop_check(stop, err));
    pool_end_old(p);
    PITH_TRY(pool_take(&taken, &may_make, p, timeout_ms, stop, err));
    if (may_make) {
        pith_status status = pith__model_create_session(&taken, p->model, err);
        if (status) {
            pthread_mutex_lock(&p->lock);
            pool_forget(p);
            pthread_mutex_unlock(&p->lock);
            return status;
        }
        pool_count(p, PITH_COUNT_sessions_made);
    }
    *session = taken;
    return PITH_OK;
}

/* Bindings are the borrower's and go with it. */
void pith__model_return_session(pith_session_pool *p, pith_session *session) {
    if (!session) return;
    pith__model_unbind_session(session);
    pthread_mutex_lock(&p->lock);
    if (!pool_serve(p, session)) {
        p->idle[p->idle_count] = (idle_session){ session, pith__clock_ns() };
        pool_set_idle(p, p->idle_count + 1);
    }
    pthread_mutex_unlock(&p->lock);
    pool_end_old(p);
}
