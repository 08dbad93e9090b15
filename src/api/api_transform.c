/* api_transform.c - the public functions of pith/transform.h. */
#include "api/entry.h"
#include "formats/export/convert_model.h"
#include "formats/export/optimize_model.h"
#include "formats/export/quantize_model.h"

pith_status pith_model_quantize(const char *model, const pith_quantize_model_options *options,
                                const pith_writer *writer, const pith_writer *data,
                                pith_quantize_model_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_quantized(
        model, options, &(pith__onnx_sinks){ .model = writer, .data = data }, report, err));
}

pith_status pith_model_optimize(const char *model, const pith_optimize_options *options,
                                const pith_writer *writer, const pith_writer *data,
                                pith_optimize_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_optimized(
        model, options, &(pith__onnx_sinks){ .model = writer, .data = data }, report, err));
}

pith_status pith_model_convert(const char *path, const pith_convert_options *options,
                               const pith_writer *writer, pith_convert_report *report,
                               pith_error *err) {
    PITH_ENTRY(pith__model_write_converted(path, options, writer, report, err));
}
