/* onnx_write.c - values as ONNX messages. Format: onnx/onnx.proto and onnx/onnx-data.proto. */
#include "onnx/onnx_write.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"

/* Field numbers of the three messages; the kinds are those of elem_type. */
enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_KIND = 2, VALUE_TENSORS = 3, VALUE_SEQUENCES = 5 };
enum { KIND_UNDEFINED = 0, KIND_TENSOR = 1, KIND_SEQUENCE = 3 };

static void write_name(pith_wire_out *out, int number, const char *name) {
    if (name && *name) pith_wire_put_bytes(out, number, name, strlen(name));
}

void pith_onnx_put_tensor(pith_wire_out *out, const pith_tensor *t, const char *name) {
    int64_t count = pith_dims_count(t->dims, t->rank);
    size_t size;
    for (int i = 0; i < t->rank; i++) pith_wire_put_varint(out, TENSOR_DIMS, (uint64_t)t->dims[i]);
    pith_wire_put_varint(out, TENSOR_DTYPE, (uint64_t)t->dtype);
    write_name(out, TENSOR_NAME, name);
    const pith_str *strings = t->data;
    if (t->dtype == PITH_STRING) {
        for (int64_t i = 0; i < count; i++) pith_wire_put_bytes(out, TENSOR_STRINGS, strings[i].data, strings[i].size);
    } else if (pith_dtype_bytes(t->dtype, count, &size)) {
        pith_wire_put_bytes(out, TENSOR_RAW, t->data, size);
    }
}

static void write_item(pith_wire_out *out, const void *item) { pith_onnx_put_tensor(out, item, NULL); }

static void write_sequence(pith_wire_out *out, const pith_tensor *t, const char *name) {
    const pith_tensor *items = t->data;
    write_name(out, VALUE_NAME, name);
    pith_wire_put_varint(out, VALUE_KIND, KIND_TENSOR);
    for (int64_t i = 0; i < t->dims[0]; i++) pith_wire_put_message(out, VALUE_TENSORS, write_item, &items[i]);
}

static void write_inner_sequence(pith_wire_out *out, const void *value) { write_sequence(out, value, NULL); }

static void write_optional(pith_wire_out *out, const pith_tensor *value, const char *name) {
    bool none = value->dtype == PITH_NONE, sequence = value->dtype == PITH_SEQUENCE;
    write_name(out, VALUE_NAME, name);
    pith_wire_put_varint(out, VALUE_KIND, none ? KIND_UNDEFINED : sequence ? KIND_SEQUENCE : KIND_TENSOR);
    if (sequence)
        pith_wire_put_message(out, VALUE_SEQUENCES, write_inner_sequence, value);
    else if (!none)
        pith_wire_put_message(out, VALUE_TENSORS, write_item, value);
}

/* A tensor whose bytes are all there. */
static pith_status write_check_tensor(const pith_tensor *t, pith_error *err) {
    int64_t count = t->rank >= 0 && t->rank <= PITH_MAX_RANK ? pith_dims_count(t->dims, t->rank) : -1;
    size_t bytes = 0;
    bool known = t->dtype == PITH_STRING ? count >= 0 : pith_dtype_bytes(t->dtype, count, &bytes);
    if (!known)
        return pith_fail(err, PITH_ERR_ARGUMENT, "a value of dtype %s and rank %d cannot be written",
                         pith_dtype_name(t->dtype), t->rank);
    if (bytes > t->bytes || ((bytes || (t->dtype == PITH_STRING && count)) && !t->data))
        return pith_fail(err, PITH_ERR_ARGUMENT, "the value's %zu bytes do not hold its shape", t->bytes);
    return PITH_OK;
}

static pith_status write_check(const pith_tensor *value, int32_t kind, pith_error *err) {
    if (value->dtype == PITH_NONE)
        return kind == PITH_NONE ? PITH_OK : pith_fail(err, PITH_ERR_ARGUMENT, "only an optional value may be empty");
    bool sequence = value->dtype == PITH_SEQUENCE;
    if (kind != PITH_NONE && sequence != (kind == PITH_SEQUENCE))
        return pith_fail(err, PITH_ERR_ARGUMENT, "the value is %s sequence", sequence ? "a" : "no");
    if (!sequence) return write_check_tensor(value, err);
    if (value->rank != 1 || value->dims[0] < 0 || (value->dims[0] && !value->data))
        return pith_fail(err, PITH_ERR_ARGUMENT, "a sequence has rank 1 and its items as data");
    const pith_tensor *items = value->data;
    for (int64_t i = 0; i < value->dims[0]; i++) PITH_TRY(write_check_tensor(&items[i], err));
    return PITH_OK;
}

pith_status pith_onnx_write_value(const pith_tensor *value, const char *name, int32_t kind,
                                  void (*write)(void *user, const char *bytes, size_t size), void *user,
                                  pith_error *err) {
    pith_wire_out sink = { write, user, 0 }, *out = &sink;
    PITH_TRY(write_check(value, kind, err));
    if (kind == PITH_NONE)
        write_optional(out, value, name);
    else if (value->dtype == PITH_SEQUENCE)
        write_sequence(out, value, name);
    else
        pith_onnx_put_tensor(out, value, name);
    return PITH_OK;
}
