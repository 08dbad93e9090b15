/* api_statistics.c - the public functions of pith/statistics.h. */
#include "api/entry.h"
#include "models/describe/statistics.h"
#include "models/texts/text_view.h"

pith_status pith_model_statistics(pith_statistics *statistics, const pith_model *model,
                                  pith_error *err) {
    return pith__model_read_statistics(statistics, model, pith__text_views_idle(model), err);
}
