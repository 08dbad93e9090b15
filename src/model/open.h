/* open.h - making and destroying a model; the caller has set the floating-point mode. */
#ifndef PITH_MODEL_OPEN_H
#define PITH_MODEL_OPEN_H

#include "model/model.h"

/* Opens a model as pith_model_open does, but runs only the passes that `limits` allows (NULL: all). Opens path, or
 * bytes if path is NULL. */
pith_status pith_model_open_limited(pith_model **model, const char *path, pith_str bytes,
                                    const pith_open_options *options, const pith_opt_limits *limits, pith_error *err);
void pith_model_destroy(pith_model *model);

#endif
