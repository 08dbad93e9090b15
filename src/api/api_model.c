/* api_model.c - the public functions of pith/model.h. */
#include "api/entry.h"
#include "models/describe/describe.h"
#include "models/describe/model_info.h"
#include "models/hub/hub.h"
#include "models/open/open_model.h"
#include "models/save/save_model.h"
#include "models/texts/embed_texts.h"

pith_status pith_model_open(pith_model **model, const char *path, const pith_open_options *options,
                            pith_error *err) {
    PITH_ENTRY(pith__model_make(model, pith__origin_path(path), options, err));
}

pith_status pith_model_report(pith_model_info *info, const pith_model *model, pith_error *err) {
    PITH_ENTRY(pith__model_tell_info(info, model, err));
}

pith_status pith_model_locate(char *path, size_t size, const char *name, pith_error *err) {
    PITH_ENTRY(pith__hub_path(path, size, name, err));
}

void pith_model_trim(const pith_model *model) {
    pith__text_views_trim(model);
    pith__kept_sessions *kept = atomic_load_explicit(&model->kept_sessions, memory_order_acquire);
    if (kept) kept->empty(kept, model);
    if (model->tokenizer) pith__tokenizer_trim(model->tokenizer);
    pith__account_trim(&model->account.allocator);
}

pith_status pith_model_save(const pith_model *model, const pith_call *call,
                            const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__model_write(&model, 1, call, writer, err));
}

pith_status pith_model_save_routes(const pith_model *const *models, size_t count,
                                   const pith_call *call, const pith_writer *writer,
                                   pith_error *err) {
    PITH_ENTRY(pith__model_write(models, count, call, writer, err));
}

const char *pith_model_route(const pith_model *model) {
    return model->modules.route.data ? model->modules.route.data : "";
}

size_t pith_model_route_count(const pith_model *model) { return model->modules.route_count; }

const char *pith_model_route_name(const pith_model *model, size_t index) {
    return index < model->modules.route_count ? model->modules.routes[index].name.data : "";
}

pith_status pith_model_calibrate(pith_model *model, const pith_calibrate_options *options,
                                 pith_error *err) {
    PITH_ENTRY(pith__model_round(model, options, err));
}

pith_status pith_model_describe(const pith_model *model, pith_description form,
                                const pith_call *call, const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__model_describe(model, form, call, writer, err));
}
