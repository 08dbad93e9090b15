/* tensor_convert.c - see tensor_convert.h. */
#include "engine/kernels/tensor_convert.h"

#include <string.h>

#include "base/error.h"
#include "engine/kernels/convert.h"

/* The kernels read whole elements. Those of a tensor in a mapped file may lie at any address: they
 * are copied in pieces. */
static void convert_from_anywhere(void *elements, int dtype, const pith_tensor *t, size_t first,
                                  size_t count) {
    const size_t unit = (size_t)pith__dtype_bits(t->dtype) / 8, alignment = unit < 8 ? unit : 8;
    const char *from = t->data;
    _Alignas(16) char piece[4096];
    if (unit < 2 || (uintptr_t)from % alignment == 0) {
        pith__convert(elements, dtype, 0, from, t->dtype, (int64_t)first, (int64_t)count, true);
        return;
    }
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < sizeof piece / unit ? count - done : sizeof piece / unit;
        memcpy(piece, from + (first + done) * unit, some * unit);
        pith__convert(elements, dtype, (int64_t)done, piece, t->dtype, 0, (int64_t)some, true);
    }
}

pith_status pith__convert_tensor(void *elements, int dtype, const pith_tensor *tensor, size_t first,
                                 size_t count, pith_error *err) {
    const pith_tensor *t = tensor;
    size_t bytes;
    if (t->device)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the tensor is in the memory of device %d",
                          (int)t->device);
    if (!pith__convert_known(t->dtype, dtype))
        return pith__fail(err, PITH_ERR_ARGUMENT, "%s cannot be converted to %s",
                          pith__dtype_name(t->dtype), pith__dtype_name(dtype));
    if (t->rank < 0 || t->rank > PITH_MAX_RANK)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the tensor has rank %d; 0 to %d are possible",
                          (int)t->rank, PITH_MAX_RANK);
    PITH_TRY(pith__dims_bytes(&bytes, t->dtype, t->dims, t->rank, err));
    if (t->bytes < bytes)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the tensor has %zu bytes; its shape needs %zu",
                          t->bytes, bytes);
    uint64_t elements_there = (uint64_t)pith__dims_count(t->dims, t->rank);
    if (first > elements_there || count > elements_there - first)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%zu elements from %zu on are asked for; the tensor has %llu", count,
                          first, (unsigned long long)elements_there);
    convert_from_anywhere(elements, dtype, t, first, count);
    return PITH_OK;
}
