/* value_type.c - what is known about a value before it is computed: dtype, rank, sizes, contents.
 *
 * Three grades of contents: a tensor (type.data), elements as expressions of sizes (type.elems), or
 * nothing. Whoever sets a type anew drops what the last one knew; rank -1 is an unknown shape. */
#include "base/dtype.h"
#include "engine/graph/graph.h"

void pith__type_init(pith__type *type) {
    memset(type, 0, sizeof *type);
    type->rank = -1;
}

void pith__type_of_tensor(pith__type *type, const pith_tensor *tensor) {
    pith__type_set(type, tensor->dtype, tensor->rank, tensor->dims);
    type->data = tensor;
}

void pith__type_set(pith__type *type, int dtype, int rank, const pith__dim *dims) {
    memset(type, 0, sizeof *type);
    type->dtype = dtype;
    type->rank = rank;
    for (int i = 0; i < rank; i++) type->dims[i] = dims[i];
}

static bool read_int(const pith_tensor *tensor, int64_t i, int64_t *item) {
    const char *at = tensor->data;
    switch (tensor->dtype) {
#define ITEM(number, type)                                                                         \
    case number: {                                                                                 \
        type x;                                                                                    \
        memcpy(&x, at + (size_t)i * sizeof x, sizeof x);                                           \
        *item = (int64_t)x;                                                                        \
        return true;                                                                               \
    }
        ITEM(PITH_I64, int64_t)
        ITEM(PITH_I32, int32_t)
        ITEM(PITH_I16, int16_t)
        ITEM(PITH_I8, int8_t)
        ITEM(PITH_U32, uint32_t)
        ITEM(PITH_U16, uint16_t)
        ITEM(PITH_U8, uint8_t)
        ITEM(PITH_BOOL, uint8_t)
#undef ITEM
    case PITH_U64: {
        uint64_t x;
        memcpy(&x, at + (size_t)i * sizeof x, sizeof x);
        *item = x > INT64_MAX ? PITH_DIM_UNKNOWN : (int64_t)x;
        return true;
    }
    default: return false;
    }
}

bool pith__type_elem(const pith__type *type, int64_t i, pith__dim *elem) {
    int64_t count = pith__type_count(type);
    if (i < 0 || i >= count) return false;
    if (type->data) {
        int64_t item;
        if (!type->data->data || !read_int(type->data, i, &item)) return false;
        *elem = pith__dim_of(item);
        return true;
    }
    if (!type->elems) return false;
    *elem = type->elems[i];
    return true;
}

int64_t pith__type_count(const pith__type *type) {
    if (type->rank < 0) return -1;
    for (int i = 0; i < type->rank; i++)
        if (!pith__dim_known(type->dims[i])) return -1;
    return pith__dims_count(type->dims, type->rank);
}

bool pith__type_concrete(const pith__type *type) {
    if (type->dtype == PITH_UNDEFINED || type->rank < 0) return false;
    for (int i = 0; i < type->rank; i++)
        if (!pith__dim_known(type->dims[i])) return false;
    return true;
}
