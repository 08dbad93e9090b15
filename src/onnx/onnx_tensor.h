/* onnx_tensor.h - TensorProto to pith_tensor. */
#ifndef PITH_ONNX_ONNX_TENSOR_H
#define PITH_ONNX_ONNX_TENSOR_H

#include "base/file.h"

/* What reading needs everywhere in one file. */
typedef struct pith_onnx_source {
    const void *base; /* start of the file, for messages */
    pith_arena *arena;
    pith_error *err;
    pith_files *files;
    const char *external_dir;                  /* the only folder external data may lie in; NULL refuses it */
    pith_str external_location, external_data; /* the file used last: mostly the next one too */
} pith_onnx_source;

/* Data that is stored as the engine wants it, and aligned for its type, stays where it is; all else is copied to the
 * arena. The name (may be NULL) is set as soon as it is known. Messages begin with "tensor 'name': ". */
pith_status pith_onnx_decode_tensor(pith_tensor *tensor, pith_str *name, pith_str bytes, pith_onnx_source *source);

#endif
