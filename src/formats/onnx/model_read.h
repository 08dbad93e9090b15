/* model_read.h - ONNX files. */
#ifndef PITH_FORMATS_ONNX_MODEL_READ_H
#define PITH_FORMATS_ONNX_MODEL_READ_H

#include "base/os/file.h"
#include "engine/graph/graph.h"

/* Reads a ModelProto. Names and tensors stay spans of bytes, which must outlive the graph.
 * external_dir is the only folder that may hold external data; NULL refuses external data. Files it
 * opens are added to files. */
pith_status pith__onnx_read(pith__graph **graph, pith_str bytes, const char *external_dir,
                            pith__files *files, pith__arena *arena, const pith_log *log,
                            pith_error *err);

/* A stand-alone TensorProto, SequenceProto, OptionalProto or MapProto, as the ONNX test folders
 * hold them. kind: PITH_F32 … any tensor dtype means TensorProto, PITH_SEQUENCE, PITH_NONE
 * (optional), PITH_MAP_I64 or PITH_MAP_STRING (a MapProto). name (may be NULL) receives the proto's
 * name. */
pith_status pith__onnx_read_value(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                                  pith__stop *stop, pith__arena *arena, pith_error *err);

#endif
