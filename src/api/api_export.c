/* api_export.c - the public function of pith/export.h. */
#include "api/entry.h"
#include "formats/export/export_model.h"

pith_status pith_source_export(const pith_source *source, const pith_export_options *options,
                               const pith_writer *writer, const pith_writer *data,
                               pith_export_report *report, pith_error *err) {
    PITH_ENTRY(pith__model_write_onnx(
        source, options, &(pith__onnx_sinks){ .model = writer, .data = data }, report, err));
}
