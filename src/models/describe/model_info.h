/* model_info.h - the implementation of pith_model_report. */
#ifndef PITH_MODELS_DESCRIBE_MODEL_INFO_H
#define PITH_MODELS_DESCRIBE_MODEL_INFO_H

#include "models/model.h"

/* Made when it is first asked for. In its own arena. */
typedef struct pith__model_info {
    pith_model_info info;
    pith__arena arena;
} pith__model_info;

pith_status pith__model_tell_info(pith_model_info *info, const pith_model *model, pith_error *err);

#endif
