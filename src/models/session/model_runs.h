/* model_runs.h - the implementation of pith_model_run and pith_tensor_free. The caller has set the
 * floating-point mode. */
#ifndef PITH_MODELS_SESSION_MODEL_RUNS_H
#define PITH_MODELS_SESSION_MODEL_RUNS_H

#include "models/session/session.h"

pith_status pith__model_run_kept(pith_tensor *outputs, const pith_model *model,
                                 const char *const *names, const pith_tensor *inputs,
                                 size_t input_count, const pith_run_options *options,
                                 pith_error *err);
void pith__tensor_free(pith_tensor *tensor);

#endif
