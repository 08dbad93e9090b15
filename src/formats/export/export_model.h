/* export_model.h - the implementation of pith_source_export. The caller has set the floating-point
 * mode. */
#ifndef PITH_FORMATS_EXPORT_EXPORT_MODEL_H
#define PITH_FORMATS_EXPORT_EXPORT_MODEL_H

#include "formats/onnx/model_write.h"
#include "pith/export.h"

pith_status pith__model_write_onnx(const pith_source *source, const pith_export_options *options,
                                   const pith__onnx_sinks *sinks, pith_export_report *report,
                                   pith_error *err);

#endif
