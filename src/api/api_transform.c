/* api_transform.c - the public functions of pith/transform.h. */
#include "api/entry.h"
#include "formats/export/convert_model.h"
#include "formats/export/optimize_model.h"
#include "formats/export/quantize_model.h"

pith_status pith_model_quantize(const char *model, const pith_quantize_model_options *options,
                                int (*write)(void *user, const void *data, size_t size),
                                int (*write_data)(void *user, const void *data, size_t size),
                                void *user, pith_quantize_model_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_quantized(
        model, options, &(pith__onnx_sinks){ write, write_data, user }, report, err));
}

pith_status pith_model_optimize(const char *model, const pith_optimize_options *options,
                                int (*write)(void *user, const void *data, size_t size),
                                int (*write_data)(void *user, const void *data, size_t size),
                                void *user, pith_optimize_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_optimized(
        model, options, &(pith__onnx_sinks){ write, write_data, user }, report, err));
}

pith_status pith_model_convert(const char *path, const pith_convert_options *options,
                               int (*write)(void *user, const void *data, size_t size), void *user,
                               pith_convert_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_converted(path, options, write, user, report, err));
}
