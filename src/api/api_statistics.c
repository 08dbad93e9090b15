/* api_statistics.c - the public functions of pith/statistics.h. */
#include "api/entry.h"
#include "models/describe/statistics.h"
#include "models/texts/text_view.h"

pith_status pith_model_statistics(pith_statistics *statistics, const pith_model *model,
                                  pith_error *err) {
    return pith__model_read_statistics(statistics, model, pith__text_views_idle(model), err);
}

void pith_model_reset_statistics(const pith_model *model) { pith__model_clear_statistics(model); }

pith_status pith_statistics_write(const pith_statistics *statistics, pith_statistics_form form,
                                  void (*write)(void *user, const char *text, size_t size),
                                  void *user, pith_error *err) {
    PITH_ENTRY(pith__statistics_put(statistics, form, write, user, err));
}
