/* pb.c - see pb.h. The length of a nested message comes before it, so the message is written to a buffer of its own
 * first. */
#include "cli/pb.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

/* Field numbers of the three messages; the kinds are those of elem_type. */
enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_KIND = 2, VALUE_TENSORS = 3, VALUE_SEQUENCES = 5 };
enum { KIND_UNDEFINED = 0, KIND_TENSOR = 1, KIND_SEQUENCE = 3 };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_varint(bytes *out, uint64_t n) {
    unsigned char text[10];
    size_t size = 0;
    for (; n > 127; n >>= 7) text[size++] = (unsigned char)(n | 128);
    text[size++] = (unsigned char)n;
    bytes_add(out, text, size);
}

static void put_number(bytes *out, int field, uint64_t n) {
    put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(out, n);
}

static void put_bytes(bytes *out, int field, const void *data, size_t size) {
    put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(out, size);
    if (size) bytes_add(out, data, size);
}

static void put_tensor(bytes *out, const pith_tensor *t, const char *name) {
    int64_t count = pith_dims_count(t->dims, t->rank);
    size_t size = 0;
    for (int i = 0; i < t->rank; i++) put_number(out, TENSOR_DIMS, (uint64_t)t->dims[i]);
    put_number(out, TENSOR_DTYPE, (uint64_t)t->dtype);
    if (*name) put_bytes(out, TENSOR_NAME, name, strlen(name));
    const pith_str *strings = t->data;
    if (t->dtype == PITH_STRING) {
        for (int64_t i = 0; i < count; i++) put_bytes(out, TENSOR_STRINGS, strings[i].data, strings[i].size);
    } else if (pith_dtype_bytes(t->dtype, count, &size)) {
        put_bytes(out, TENSOR_RAW, t->data, size);
    }
}

static void put_sequence(bytes *out, const pith_tensor *t, const char *name) {
    const pith_tensor *items = t->data;
    if (*name) put_bytes(out, VALUE_NAME, name, strlen(name));
    put_number(out, VALUE_KIND, KIND_TENSOR);
    for (int64_t i = 0; i < t->dims[0]; i++) {
        bytes item = { NULL, 0, 0 };
        put_tensor(&item, &items[i], "");
        put_bytes(out, VALUE_TENSORS, item.data, item.size);
        free(item.data);
    }
}

void pb_write(bytes *out, const pith_tensor *value, const char *name, bool optional) {
    bool sequence = value->dtype == PITH_SEQUENCE;
    if (!optional && value->dtype != PITH_NONE) {
        if (sequence)
            put_sequence(out, value, name);
        else
            put_tensor(out, value, name);
        return;
    }
    if (*name) put_bytes(out, VALUE_NAME, name, strlen(name));
    put_number(out, VALUE_KIND, value->dtype == PITH_NONE ? KIND_UNDEFINED : sequence ? KIND_SEQUENCE : KIND_TENSOR);
    if (value->dtype == PITH_NONE) return;
    bytes inner = { NULL, 0, 0 };
    if (sequence)
        put_sequence(&inner, value, "");
    else
        put_tensor(&inner, value, "");
    put_bytes(out, sequence ? VALUE_SEQUENCES : VALUE_TENSORS, inner.data, inner.size);
    free(inner.data);
}
