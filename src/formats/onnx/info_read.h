/* info_read.h - what a ModelProto says of itself, apart from its graph. */
#ifndef PITH_FORMATS_ONNX_INFO_READ_H
#define PITH_FORMATS_ONNX_INFO_READ_H

#include "base/memory/memory.h"
#include "pith/model.h"

/* Fills the members of *info that a ModelProto has; the strings are copied to the arena. Those that
 * it lacks become "". */
pith_status pith__onnx_info_read(pith_model_info *info, pith_str bytes, pith__arena *arena,
                                 pith_error *err);
/* Sets *info to a ModelProto with the same fields, but without graph, functions and training. It is
 * in the arena. */
pith_status pith__onnx_info_extract(pith_str *info, pith_str bytes, pith__arena *arena,
                                    pith_error *err);

#endif
