/* api_tensor.c - the public functions of pith/tensor.h. */
#include "api/entry.h"
#include "base/dtype.h"
#include "engine/kernels/tensor_convert.h"
#include "pith/tensor.h"

const char *pith_element_name(int32_t dtype) { return pith__dtype_name(dtype); }

int32_t pith_element_dtype(const char *name) { return pith__dtype_find(name); }

int32_t pith_element_bits(int32_t dtype) { return pith__dtype_bits(dtype); }

int64_t pith_shape_count(const int64_t *dims, int32_t rank) { return pith__dims_count(dims, rank); }

pith_status pith_shape_bytes(size_t *bytes, int32_t dtype, const int64_t *dims, int32_t rank,
                             pith_error *err) {
    PITH_ENTRY(pith__dims_bytes(bytes, dtype, dims, rank, err));
}

const char *pith_shape_format(char *text, size_t size, const int64_t *dims, int32_t rank) {
    return pith__dims_text(dims, rank, text, size);
}

pith_status pith_shape_parse(int64_t *dims, int32_t *rank, const char *text, pith_error *err) {
    PITH_ENTRY(pith__dims_take(dims, rank, text, err));
}

pith_status pith_tensor_convert(void *elements, int32_t dtype, const pith_tensor *tensor,
                                size_t first, size_t count, pith_error *err) {
    PITH_ENTRY(pith__convert_tensor(elements, dtype, tensor, first, count, err));
}
