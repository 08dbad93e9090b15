/* quantize_model.h - the implementation of pith_source_quantize. The caller has set the
 * floating-point mode. */
#ifndef PITH_FORMATS_EXPORT_QUANTIZE_MODEL_H
#define PITH_FORMATS_EXPORT_QUANTIZE_MODEL_H

#include "formats/onnx/model_write.h"
#include "pith/transform.h"

pith_status pith__model_write_quantized(const pith_source *source,
                                        const pith_quantize_model_options *options,
                                        const pith__onnx_sinks *sinks,
                                        pith_quantize_model_report *report, pith_error *err);

#endif
