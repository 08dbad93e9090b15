/* api_quantize.c - the public functions of pith/quantize.h. */
#include "api/entry.h"
#include "models/quantize/quantize_vectors.h"

size_t pith_quantize_row_bytes(int32_t type, size_t dim) {
    return pith__quantize_vectors_row_bytes(type, dim);
}

pith_status pith_quantize_vectors(void *rows, const float *vectors, size_t count, size_t dim,
                                  const pith_quantize_options *options, pith_error *err) {
    PITH_ENTRY(pith__quantize_vectors(rows, vectors, count, dim, options, err));
}

pith_status pith_quantize_ranges(float *ranges, const float *vectors, size_t count, size_t dim,
                                 const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__quantize_vectors_ranges(ranges, vectors, count, dim, call, err));
}
