/* value_write.h - writes values as ONNX messages. */
#ifndef PITH_FORMATS_ONNX_VALUE_WRITE_H
#define PITH_FORMATS_ONNX_VALUE_WRITE_H

#include "formats/onnx/wire_out.h"
#include "pith/types.h"

/* The implementation of pith_value_write. */
pith_status pith__onnx_write_value(const pith_tensor *value, const char *name, int32_t kind,
                                   const pith_call *call, const pith_writer *writer,
                                   pith_error *err);

/* Writes the fields of a TensorProto, whose bytes are all there. name may be NULL. */
void pith__onnx_put_tensor(pith__wire_out *out, const pith_tensor *tensor, const char *name);

#endif
