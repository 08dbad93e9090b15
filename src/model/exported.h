/* exported.h - the implementation of pith_model_export. The caller has set the floating-point mode. */
#ifndef PITH_MODEL_EXPORTED_H
#define PITH_MODEL_EXPORTED_H

#include "onnx/model_write.h"
#include "pith/export.h"

pith_status pith_model_write_onnx(const char *model, const pith_export_options *options, const pith_onnx_sinks *sinks,
                                  pith_export_report *report, pith_error *err);

#endif
