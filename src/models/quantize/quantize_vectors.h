/* quantize_vectors.h - the implementation of pith/quantize.h. The caller has set the floating-point
 * mode. */
#ifndef PITH_MODELS_QUANTIZE_QUANTIZE_VECTORS_H
#define PITH_MODELS_QUANTIZE_QUANTIZE_VECTORS_H

#include "pith/quantize.h"

size_t pith__quantize_vectors_row_bytes(int32_t type, size_t dim);
pith_status pith__quantize_vectors(void *rows, const float *vectors, size_t count, size_t dim,
                                   const pith_quantize_options *options, pith_error *err);
pith_status pith__quantize_vectors_ranges(float *ranges, const float *vectors, size_t count,
                                          size_t dim, const pith_call *call, pith_error *err);

#endif
