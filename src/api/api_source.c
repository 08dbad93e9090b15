/* api_source.c - the public functions of pith/source.h. */
#include "api/entry.h"
#include "models/describe/compare_graphs.h"
#include "models/open/source.h"
#include "models/save/save_model.h"

pith_status pith_source_open(pith_source **source, const char *path,
                             const pith_source_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_source_open(source, path, (pith_str){ NULL, 0 }, options, err));
}

pith_status pith_source_open_memory(pith_source **source, const void *data, size_t size,
                                    const pith_source_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_source_open(source, NULL, (pith_str){ data, size }, options, err));
}

void pith_source_close(pith_source *source) {
    if (source) pith__model_source_close(source);
}

pith_status pith_source_report(pith_source_info *info, const pith_source *source, pith_error *err) {
    PITH_ENTRY(pith__model_source_report(info, source, err));
}

pith_status pith_model_open_source(pith_model **model, const pith_source *source,
                                   const pith_open_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_source_open_model(model, source, options, err));
}

pith_status pith_source_check_fusions(size_t *findings, const pith_source *source,
                                      const pith_check_options *options, pith_error *err) {
    PITH_ENTRY(pith__compare_graphs(findings, source, options, err));
}

pith_status pith_source_verify(const pith_source *source, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__model_verify(source, call, err));
}
