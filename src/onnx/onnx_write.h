/* onnx_write.h - writes ONNX messages. */
#ifndef PITH_ONNX_ONNX_WRITE_H
#define PITH_ONNX_ONNX_WRITE_H

#include "pith/types.h"

/* The implementation of pith_value_write. */
pith_status pith_onnx_write_value(const pith_tensor *value, const char *name, int32_t kind,
                                  void (*write)(void *user, const char *bytes, size_t size), void *user,
                                  pith_error *err);

#endif
