/* session_pool.h - the implementation of pith/session_pool.h. The caller has set the floating-point
 * mode. */
#ifndef PITH_MODELS_SESSION_SESSION_POOL_H
#define PITH_MODELS_SESSION_SESSION_POOL_H

#include "models/session/session.h"
#include "pith/session_pool.h"

pith_status pith__model_create_pool(pith_session_pool **pool, const pith_model *model,
                                    const pith_session_pool_options *options, pith_error *err);
void pith__model_destroy_pool(pith_session_pool *pool);
pith_status pith__model_borrow_session(pith_session **session, pith_session_pool *pool,
                                       int64_t timeout_ms, const pith_call *call, pith_error *err);
void pith__model_return_session(pith_session_pool *pool, pith_session *session);
void pith__model_trim_pool(pith_session_pool *pool);

#endif
