/* optimize_model.h - the implementation of pith_source_optimize. The caller has set the
 * floating-point mode. */
#ifndef PITH_FORMATS_EXPORT_OPTIMIZE_MODEL_H
#define PITH_FORMATS_EXPORT_OPTIMIZE_MODEL_H

#include "formats/onnx/model_write.h"
#include "pith/transform.h"

pith_status pith__model_write_optimized(const pith_source *source,
                                        const pith_optimize_options *options,
                                        const pith__onnx_sinks *sinks, pith_optimize_report *report,
                                        pith_error *err);

#endif
