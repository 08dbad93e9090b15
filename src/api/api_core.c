/* api_core.c - what libpith-core has in the place of api_model.c and api_statistics.c: the same
 * public functions, as far as a model without texts has a use for them. Models are files there, and
 * have no sessions but those of the caller.
 *
 * The other public functions of libpith-core are those of the files that CMakeLists.txt names. */
#include "api/entry.h"
#include "images/decoder_module.h"
#include "models/describe/statistics.h"
#include "models/open/chosen_runtime.h"
#include "models/open/open_model.h"
#include "pith/image.h"

pith_status pith_model_open(pith_model **model, const char *path, const pith_open_options *options,
                            pith_error *err) {
    PITH_ENTRY(pith__model_make(model, pith__origin_file(path), options, err));
}

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
    if (model) pith__model_destroy(model);
}

void pith_model_trim(const pith_model *model) { pith__account_trim(&model->account.allocator); }

size_t pith_model_bytes(const pith_model *model, size_t *peak) {
    if (peak) *peak = atomic_load_explicit(&model->account.peak, memory_order_relaxed);
    return atomic_load_explicit(&model->account.held, memory_order_relaxed);
}

pith_status pith_model_statistics(pith_statistics *statistics, const pith_model *model,
                                  pith_error *err) {
    return pith__model_read_statistics(statistics, model, 0, err);
}

void pith_model_reset_statistics(const pith_model *model) { pith__model_clear_statistics(model); }

pith_status pith_statistics_write(const pith_statistics *statistics, pith_statistics_form form,
                                  void (*write)(void *user, const char *text, size_t size),
                                  void *user, pith_error *err) {
    PITH_ENTRY(pith__statistics_put(statistics, form, write, user, err));
}

pith_status pith_image_register(const struct pith_image_module *module, pith_error *err) {
    PITH_ENTRY(pith__picture_module_set(module, err));
}
