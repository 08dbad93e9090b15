/* session.h - the implementation of pith_session_create, _run, _bind_*, _unbind and _destroy. The
 * caller has set the floating-point mode. */
#ifndef PITH_MODELS_SESSION_SESSION_H
#define PITH_MODELS_SESSION_SESSION_H

#include "models/model.h"

pith_status pith__model_create_session(pith_session **session, const pith_model *model,
                                       pith_error *err);
/* The same, with a reference to the model. */
pith_status pith__model_open_session(pith_session **session, const pith_model *model,
                                     pith_error *err);
void pith__model_destroy_session(pith_session *session);
pith_status pith__model_run_session(pith_session *session, pith_tensor *outputs,
                                    const char *const *names, const pith_tensor *inputs,
                                    size_t input_count, const pith_run_options *options,
                                    pith_error *err);
pith_status pith__model_bind_session_input(pith_session *session, const char *name,
                                           const pith_tensor *tensor, pith_error *err);
pith_status pith__model_bind_session_output(pith_session *session, const char *name,
                                            const pith_tensor *tensor, pith_error *err);
void pith__model_unbind_session(pith_session *session);

#endif
