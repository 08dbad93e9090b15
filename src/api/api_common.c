/* api_common.c - public functions of models that do not differ between libpith-core and libpith. */
#include "api/entry.h"
#include "images/decoder_module.h"
#include "models/describe/statistics.h"
#include "models/open/chosen_runtime.h"
#include "models/open/open_model.h"
#include "pith/image.h"

pith_status pith_model_open_memory(pith_model **model, const void *data, size_t size,
                                   const pith_open_options *options, pith_error *err) {
    PITH_ENTRY(
        pith__model_make(model, pith__origin_memory((pith_str){ data, size }), options, err));
}

pith_status pith_model_runtime(pith_runtime_report *report, const pith_model *model,
                               pith_error *err) {
    PITH_ENTRY(pith__model_report_runtime(report, model, err));
}

void pith_model_close(pith_model *model) {
    if (model) pith__model_release(model);
}

pith_model *pith_model_share(const pith_model *model) {
    pith__model_keep(model);
    return (pith_model *)(uintptr_t)model;
}

size_t pith_model_bytes(const pith_model *model, size_t *peak) {
    if (peak) *peak = atomic_load_explicit(&model->account.peak, memory_order_relaxed);
    return atomic_load_explicit(&model->account.held, memory_order_relaxed);
}

void pith_model_reset_statistics(const pith_model *model) { pith__model_clear_statistics(model); }

pith_status pith_statistics_write(const pith_statistics *statistics, pith_statistics_form form,
                                  const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__statistics_put(statistics, form, writer, err));
}

pith_status pith_image_register(const struct pith_image_module *module, pith_error *err) {
    PITH_ENTRY(pith__picture_module_set(module, err));
}
