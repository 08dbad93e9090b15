/* tensor_convert.h - pith__convert for tensors of a host, whose fields are checked first. */
#ifndef PITH_ENGINE_KERNELS_TENSOR_CONVERT_H
#define PITH_ENGINE_KERNELS_TENSOR_CONVERT_H

#include "pith/types.h"

/* pith_tensor_convert of pith/tensor.h. */
pith_status pith__convert_tensor(void *elements, int dtype, const pith_tensor *tensor, size_t first,
                                 size_t count, pith_error *err);

#endif
