/* output_target.c - see output_target.h. */
#include "engine/exec/output_target.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"

pith_status pith__target_check(const pith_tensor *target, const pith_tensor *output, pith_str name,
                               pith_error *err) {
    char shape[256], wanted[256];
    if (output->dtype >= PITH_DTYPE_COUNT || output->dtype == PITH_STRING ||
        output->dtype != target->dtype)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output '" PITH_STR_FMT "' is %s; the memory bound to it is for %s",
                          PITH_STR_ARG(name), pith__dtype_name(output->dtype),
                          pith__dtype_name(target->dtype));
    pith__dims_text(output->dims, output->rank, shape, sizeof shape);
    bool same = target->rank < 0 || target->rank == output->rank;
    for (int i = 0; same && i < target->rank; i++) same = target->dims[i] == output->dims[i];
    if (!same)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output '" PITH_STR_FMT "' has shape %s; the tensor bound to it has %s. "
                          "Bind one of this shape, or of rank -1 for any "
                          "shape that fits",
                          PITH_STR_ARG(name), shape,
                          pith__dims_text(target->dims, target->rank, wanted, sizeof wanted));
    if (output->bytes > target->bytes)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "output '" PITH_STR_FMT
                          "' is %s %s and needs %zu bytes; the memory bound to it has %zu",
                          PITH_STR_ARG(name), pith__dtype_name(output->dtype), shape, output->bytes,
                          target->bytes);
    return PITH_OK;
}

pith_status pith__target_fill(pith_tensor *output, const pith_tensor *target, pith_str name,
                              pith__stop *stop, pith_error *err) {
    const char *from = output->data;
    char *to = target->data;
    PITH_TRY(pith__target_check(target, output, name, err));
    if (from != to && output->bytes) {
        if (pith__target_touches(target, output)) {
            memmove(to, from, output->bytes);
        } else {
            PITH_TRY(pith__copy_until(stop, to, from, output->bytes, err));
        }
    }
    output->data = target->data;
    return PITH_OK;
}

bool pith__target_touches(const pith_tensor *target, const pith_tensor *tensor) {
    uintptr_t a = (uintptr_t)target->data, b = (uintptr_t)tensor->data;
    if (tensor->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = tensor->data;
        for (int64_t i = 0; i < tensor->dims[0]; i++)
            if (pith__target_touches(target, &items[i])) return true;
        return false;
    }
    return a && b && a < b + tensor->bytes && b < a + target->bytes;
}
