/* statistics.h - the implementation of pith/statistics.h. */
#ifndef PITH_MODELS_DESCRIBE_STATISTICS_H
#define PITH_MODELS_DESCRIBE_STATISTICS_H

#include "models/model.h"
#include "pith/statistics.h"

/* idle: the idle sessions that the model itself keeps. */
pith_status pith__model_read_statistics(pith_statistics *statistics, const pith_model *model,
                                        size_t idle, pith_error *err);
void pith__model_clear_statistics(const pith_model *model);
pith_status pith__statistics_put(const pith_statistics *statistics, pith_statistics_form form,
                                 const pith_writer *writer, pith_error *err);

#endif
