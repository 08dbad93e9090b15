/* describe.h - the implementation of pith_model_describe. The caller has set the floating-point
 * mode. */
#ifndef PITH_MODELS_DESCRIBE_DESCRIBE_H
#define PITH_MODELS_DESCRIBE_DESCRIBE_H

#include "models/model.h"

pith_status pith__model_describe(const pith_model *model, pith_description form,
                                 const pith_call *call, const pith_writer *writer, pith_error *err);

#endif
