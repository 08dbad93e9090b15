/* session_pool.h - sessions of one model that threads borrow and return. */
#ifndef PITH_SESSION_POOL_H
#define PITH_SESSION_POOL_H

#include "pith/call.h"
#include "pith/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number of sessions of one model. They share its weights; each has buffers and plans of its own.
 * Any number of threads may use a pool at once; a session that is borrowed is used by one thread at
 * a time. */
typedef struct pith_session_pool pith_session_pool;

typedef struct pith_session_pool_options {
    pith_call call;
    int32_t sessions; /* the most that exist at a time; 0: one per CPU that the process may use. At
                         most 4096 */
    int32_t idle;     /* the most that wait to be borrowed; of more, the one that waited longest
                        ends. 0: all may wait */
    int32_t idle_ms;  /* one that waited so long ends, at the next borrow or return; 0: never */
} pith_session_pool_options;

#define PITH_SESSION_POOL_OPTIONS_INIT PITH_OPTIONS_INIT(pith_session_pool_options)

/* Makes a pool without sessions: each is made when it is first needed. The caller owns the pool,
 * which holds a reference to the model. options may be NULL for the defaults. */
PITH_API pith_status pith_session_pool_create(pith_session_pool **pool, const pith_model *model,
                                              const pith_session_pool_options *options,
                                              pith_error *err);
/* Frees the pool and its sessions, which must all have been returned; NULL is allowed. */
PITH_API void pith_session_pool_destroy(pith_session_pool *pool);

/* Borrows a session: the one that was returned last, else a new one. If the most are borrowed
 * already, it waits for timeout_ms milliseconds: 0 does not wait at all, -1 waits for ever. Threads
 * that wait are served in their order. Return *session with pith_session_pool_return. In call,
 * which may be NULL, the three ways to end it have an effect. Errors: PITH_ERR_BUSY if none was
 * returned in that time; those of pith_session_create. */
PITH_API pith_status pith_session_pool_borrow(pith_session **session, pith_session_pool *pool,
                                              int64_t timeout_ms, const pith_call *call,
                                              pith_error *err);
/* Returns a session that was borrowed from this pool. Its bindings end, and results of its runs are
 * no longer valid. NULL is allowed. */
PITH_API void pith_session_pool_return(pith_session_pool *pool, pith_session *session);
/* Ends the sessions that wait to be borrowed, to free their memory. */
PITH_API void pith_session_pool_trim(pith_session_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
