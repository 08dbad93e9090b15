/* tensor_convert.c - see tensor_convert.h. */
#include "engine/kernels/tensor_convert.h"

#include <string.h>

#include "base/error.h"
#include "engine/kernels/convert.h"

/* The kernels read whole elements. Those of a tensor in a mapped file may lie at any address: they are copied in
 * pieces. */
static void convert_from_anywhere(void *elements, int dtype, const pith_tensor *t, size_t first, size_t count) {
    const size_t unit = (size_t)pith_dtype_bits(t->dtype) / 8, alignment = unit < 8 ? unit : 8;
    const char *from = t->data;
    _Alignas(16) char piece[4096];
    if (unit < 2 || (uintptr_t)from % alignment == 0) {
        pith_convert(elements, dtype, 0, from, t->dtype, (int64_t)first, (int64_t)count, true);
        return;
    }
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < sizeof piece / unit ? count - done : sizeof piece / unit;
        memcpy(piece, from + (first + done) * unit, some * unit);
        pith_convert(elements, dtype, (int64_t)done, piece, t->dtype, 0, (int64_t)some, true);
    }
}

pith_status pith_convert_tensor(void *elements, int dtype, const pith_tensor *tensor, size_t first, size_t count,
                                pith_error *err) {
    const pith_tensor *t = tensor;
    size_t bytes;
    if (!pith_convert_known(t->dtype, dtype))
        return pith_fail(err, PITH_ERR_ARGUMENT, "%s cannot be converted to %s", pith_dtype_name(t->dtype),
                         pith_dtype_name(dtype));
    if (t->rank < 0 || t->rank > PITH_MAX_RANK)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the tensor has rank %d; 0 to %d are possible", (int)t->rank,
                         PITH_MAX_RANK);
    PITH_TRY(pith_dims_bytes(&bytes, t->dtype, t->dims, t->rank, err));
    if (t->bytes < bytes)
        return pith_fail(err, PITH_ERR_ARGUMENT, "the tensor has %zu bytes; its shape needs %zu", t->bytes, bytes);
    uint64_t elements_there = (uint64_t)pith_dims_count(t->dims, t->rank);
    if (first > elements_there || count > elements_there - first)
        return pith_fail(err, PITH_ERR_ARGUMENT, "%zu elements from %zu on are wanted; the tensor has %llu", count,
                         first, (unsigned long long)elements_there);
    convert_from_anywhere(elements, dtype, t, first, count);
    return PITH_OK;
}
