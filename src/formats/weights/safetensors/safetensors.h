/* safetensors.h - the tensors of a safetensors file, by name.
 *
 * A file is an 8-byte length, a JSON header {name: {dtype, shape, data_offsets}} and the data.
 * Tensors stay spans of the mapped file; one that is not aligned for its type is copied. Source:
 * huggingface/safetensors, README "Format". */
#ifndef PITH_FORMATS_WEIGHTS_SAFETENSORS_SAFETENSORS_H
#define PITH_FORMATS_WEIGHTS_SAFETENSORS_SAFETENSORS_H

#include "formats/weights/tensor_files.h"

/* Adds all tensors of a file. file_name is for messages. A name that was added before gives
 * PITH_ERR_FORMAT. */
pith_status pith__safetensors_read(pith__weights *weights, pith_str bytes, const char *file_name,
                                   pith_error *err);

#endif
