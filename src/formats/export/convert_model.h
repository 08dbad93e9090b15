/* convert_model.h - ONNX files as text, and back. */
#ifndef PITH_FORMATS_EXPORT_CONVERT_MODEL_H
#define PITH_FORMATS_EXPORT_CONVERT_MODEL_H

#include "pith/transform.h"

/* The implementation of pith_source_convert. */
pith_status pith__model_write_converted(const pith_source *source,
                                        const pith_convert_options *options,
                                        const pith_writer *writer, pith_convert_report *report,
                                        pith_error *err);

#endif
