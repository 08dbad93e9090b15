/* api_session_pool.c - the public functions of pith/session_pool.h. */
#include "api/entry.h"
#include "models/session/session_pool.h"

pith_status pith_session_pool_create(pith_session_pool **pool, const pith_model *model,
                                     const pith_session_pool_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_create_pool(pool, model, options, err));
}

void pith_session_pool_destroy(pith_session_pool *pool) { pith__model_destroy_pool(pool); }

pith_status pith_session_pool_borrow(pith_session **session, pith_session_pool *pool,
                                     int64_t timeout_ms, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__model_borrow_session(session, pool, timeout_ms, call, err));
}

void pith_session_pool_return(pith_session_pool *pool, pith_session *session) {
    pith__model_return_session(pool, session);
}

void pith_session_pool_trim(pith_session_pool *pool) { pith__model_trim_pool(pool); }
