/* api_transform.c - the public functions of pith/transform.h. */
#include "api/entry.h"
#include "formats/export/convert_model.h"
#include "formats/export/optimize_model.h"
#include "formats/export/quantize_model.h"

pith_status pith_source_quantize(const pith_source *source,
                                 const pith_quantize_model_options *options,
                                 const pith_writer *writer, const pith_writer *data,
                                 pith_quantize_model_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_quantized(
        source, options, &(pith__onnx_sinks){ .model = writer, .data = data }, report, err));
}

pith_status pith_source_optimize(const pith_source *source, const pith_optimize_options *options,
                                 const pith_writer *writer, const pith_writer *data,
                                 pith_optimize_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_optimized(
        source, options, &(pith__onnx_sinks){ .model = writer, .data = data }, report, err));
}

pith_status pith_source_convert(const pith_source *source, const pith_convert_options *options,
                                const pith_writer *writer, pith_convert_report *report,
                                pith_error *err) {
    PITH_ENTRY(pith__model_write_converted(source, options, writer, report, err));
}
