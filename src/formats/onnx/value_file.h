/* value_file.h - one value from a .pb file of the ONNX test folders; see pith_value_open. */
#ifndef PITH_FORMATS_ONNX_VALUE_FILE_H
#define PITH_FORMATS_ONNX_VALUE_FILE_H

#include "pith/session.h"

pith_status pith__value_file_open(pith_value_file **file, pith_tensor *tensor, const char **name,
                                  const char *path, int32_t kind, const pith_call *call,
                                  pith_error *err);
void pith__value_file_close(pith_value_file *file); /* NULL is allowed */

#endif
