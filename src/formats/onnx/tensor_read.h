/* tensor_read.h - TensorProto to pith_tensor. */
#ifndef PITH_FORMATS_ONNX_TENSOR_READ_H
#define PITH_FORMATS_ONNX_TENSOR_READ_H

#include "base/memory/span_map.h"
#include "base/os/file.h"
#include "base/stop.h"

/* The file that is being read. */
typedef struct pith__onnx_source {
    const void *base; /* start of the file, for messages */
    pith__arena *arena;
    pith__stop *stop; /* may be NULL */
    pith_error *err;
    pith__files *files;
    const char *external_dir;                  /* the only folder that may hold external data; NULL:
                                                  none */
    pith_str external_location, external_data; /* the file that was used last */
    pith__map copies;                          /* of external data, by address and size, to their
                                                  place in copied */
    void **copied;
    size_t copy_count, copy_room, copy_bytes;
} pith__onnx_source;

/* Reads a TensorProto. Data in the engine's layout that is aligned for its type is used in place;
 * other data is copied to the arena. The name (may be NULL) is set as soon as it is known. Messages
 * begin with "tensor 'name': ". */
pith_status pith__onnx_decode_tensor(pith_tensor *tensor, pith_str *name, pith_str bytes,
                                     pith__onnx_source *source);

#endif
