/* value_write.c - values as ONNX messages. Format: onnx/onnx.proto and onnx/onnx-data.proto. */
#include "formats/onnx/value_write.h"

#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"

/* Field numbers of the messages; the kinds are those of elem_type. */
enum { TENSOR_DIMS = 1, TENSOR_DTYPE = 2, TENSOR_STRINGS = 6, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_KIND = 2, VALUE_TENSORS = 3, VALUE_SEQUENCES = 5, VALUE_MAPS = 6 };
enum { MAP_NAME = 1, MAP_KEY_TYPE = 2, MAP_KEYS = 3, MAP_STRING_KEYS = 4, MAP_VALUES = 5 };
enum { KIND_UNDEFINED = 0, KIND_TENSOR = 1, KIND_SEQUENCE = 3, KIND_MAP = 4 };

static void write_name(pith__wire_out *out, int number, const char *name) {
    if (name && *name) pith__wire_put_bytes(out, number, name, strlen(name));
}

void pith__onnx_put_tensor(pith__wire_out *out, const pith_tensor *t, const char *name) {
    int64_t count = pith__dims_count(t->dims, t->rank);
    size_t size;
    for (int i = 0; i < t->rank; i++) pith__wire_put_varint(out, TENSOR_DIMS, (uint64_t)t->dims[i]);
    pith__wire_put_varint(out, TENSOR_DTYPE, (uint64_t)t->dtype);
    write_name(out, TENSOR_NAME, name);
    const pith_str *strings = t->data;
    if (t->dtype == PITH_STRING) {
        for (int64_t i = 0; i < count; i++)
            pith__wire_put_bytes(out, TENSOR_STRINGS, strings[i].data, strings[i].size);
    } else if (pith__dtype_bytes(t->dtype, count, &size)) {
        pith__wire_put_bytes(out, TENSOR_RAW, t->data, size);
    }
}

static void write_item(pith__wire_out *out, const void *item) {
    pith__onnx_put_tensor(out, item, NULL);
}

/* Two tensors [n] in a sequence: keys and values. */
static bool value_is_map(const pith_tensor *t) {
    const pith_tensor *pair = t->data;
    return t->dtype == PITH_SEQUENCE && t->rank == 1 && t->dims[0] == 2 && pair &&
           (pair[0].dtype == PITH_I64 || pair[0].dtype == PITH_STRING) && pair[0].rank == 1 &&
           pair[1].rank == 1 && pair[0].dims[0] == pair[1].dims[0] &&
           pith__dtype_bits(pair[1].dtype) >= 8;
}

/* A SequenceProto of the values, each a tensor without axes. */
static void write_map_values(pith__wire_out *out, const void *message) {
    const pith_tensor *values = message;
    const size_t size = (size_t)pith__dtype_bits(values->dtype) / 8;
    pith__wire_put_varint(out, VALUE_KIND, KIND_TENSOR);
    for (int64_t i = 0; i < values->dims[0]; i++) {
        const pith_tensor one = { .data = (char *)values->data + (size_t)i * size,
                                  .bytes = size,
                                  .dtype = values->dtype };
        pith__wire_put_message(out, VALUE_TENSORS, write_item, &one);
    }
}

static void write_map(pith__wire_out *out, const pith_tensor *t, const char *name) {
    const pith_tensor *keys = t->data, *values = keys + 1;
    write_name(out, MAP_NAME, name);
    pith__wire_put_varint(out, MAP_KEY_TYPE, (uint64_t)keys->dtype);
    for (int64_t i = 0; i < keys->dims[0]; i++) {
        const pith_str *text = keys->data;
        if (keys->dtype == PITH_STRING)
            pith__wire_put_bytes(out, MAP_STRING_KEYS, text[i].data, text[i].size);
        else
            pith__wire_put_varint(out, MAP_KEYS, (uint64_t)((const int64_t *)keys->data)[i]);
    }
    pith__wire_put_message(out, MAP_VALUES, write_map_values, values);
}

static void write_inner_map(pith__wire_out *out, const void *map) { write_map(out, map, NULL); }

static void write_sequence(pith__wire_out *out, const pith_tensor *t, const char *name) {
    const pith_tensor *items = t->data;
    const bool maps = t->dims[0] && items[0].dtype == PITH_SEQUENCE;
    write_name(out, VALUE_NAME, name);
    if (maps) pith__wire_put_varint(out, VALUE_KIND, KIND_MAP);
    if (maps)
        for (int64_t i = 0; i < t->dims[0]; i++)
            pith__wire_put_message(out, VALUE_MAPS, write_inner_map, &items[i]);
    if (maps) return;
    pith__wire_put_varint(out, VALUE_KIND, KIND_TENSOR);
    for (int64_t i = 0; i < t->dims[0]; i++)
        pith__wire_put_message(out, VALUE_TENSORS, write_item, &items[i]);
}

static void write_inner_sequence(pith__wire_out *out, const void *value) {
    write_sequence(out, value, NULL);
}

static void write_optional(pith__wire_out *out, const pith_tensor *value, const char *name) {
    bool none = value->dtype == PITH_NONE, sequence = value->dtype == PITH_SEQUENCE;
    write_name(out, VALUE_NAME, name);
    int kind = sequence ? KIND_SEQUENCE : KIND_TENSOR;
    if (none) kind = KIND_UNDEFINED;
    pith__wire_put_varint(out, VALUE_KIND, (uint64_t)kind);
    if (sequence)
        pith__wire_put_message(out, VALUE_SEQUENCES, write_inner_sequence, value);
    else if (!none)
        pith__wire_put_message(out, VALUE_TENSORS, write_item, value);
}

/* A tensor whose bytes are all there. */
static pith_status write_check_tensor(const pith_tensor *t, pith_error *err) {
    int64_t count =
        t->rank >= 0 && t->rank <= PITH_MAX_RANK ? pith__dims_count(t->dims, t->rank) : -1;
    size_t bytes = 0;
    bool known = t->dtype == PITH_STRING ? count >= 0 : pith__dtype_bytes(t->dtype, count, &bytes);
    if (!known)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "a value of dtype %s and rank %d cannot be written",
                          pith__dtype_name(t->dtype), t->rank);
    if (bytes > t->bytes || ((bytes || (t->dtype == PITH_STRING && count)) && !t->data))
        return pith__fail(err, PITH_ERR_ARGUMENT, "the value's %zu bytes do not hold its shape",
                          t->bytes);
    return PITH_OK;
}

/* A tensor, or a map if the first item is one. */
static pith_status write_check_item(const pith_tensor *item, bool map, pith_error *err) {
    if (!map) return write_check_tensor(item, err);
    if (!value_is_map(item))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "an item of a sequence is a sequence, but no map of keys and values");
    const pith_tensor *pair = item->data;
    for (int i = 0; i < 2; i++) PITH_TRY(write_check_tensor(&pair[i], err));
    return PITH_OK;
}

static pith_status write_check(const pith_tensor *value, int32_t kind, pith_error *err) {
    if (value->dtype == PITH_NONE)
        return kind == PITH_NONE
                   ? PITH_OK
                   : pith__fail(err, PITH_ERR_ARGUMENT, "only an optional value may be empty");
    bool sequence = value->dtype == PITH_SEQUENCE;
    if (kind == PITH_MAP_I64 || kind == PITH_MAP_STRING) return write_check_item(value, true, err);
    if (kind != PITH_NONE && sequence != (kind == PITH_SEQUENCE))
        return pith__fail(err, PITH_ERR_ARGUMENT, "the value is %s sequence",
                          sequence ? "a" : "no");
    if (!sequence) return write_check_tensor(value, err);
    if (value->rank != 1 || value->dims[0] < 0 || (value->dims[0] && !value->data))
        return pith__fail(err, PITH_ERR_ARGUMENT, "a sequence has rank 1 and its items as data");
    const pith_tensor *items = value->data;
    const bool maps = kind != PITH_NONE && value->dims[0] && items[0].dtype == PITH_SEQUENCE;
    for (int64_t i = 0; i < value->dims[0]; i++) PITH_TRY(write_check_item(&items[i], maps, err));
    return PITH_OK;
}

pith_status pith__onnx_write_value(const pith_tensor *value, const char *name, int32_t kind,
                                   const pith_call *call, const pith_writer *writer,
                                   pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__out written = { .writer = writer, .stop = pith__stop_begin(&own, &o) };
    pith__wire_out sink = { &written, NULL, 0 }, *out = &sink;
    PITH_TRY(pith__writer_check(writer, err));
    if (value->device)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the value is in the memory of device %d",
                          (int)value->device);
    PITH_TRY(write_check(value, kind, err));
    if (kind == PITH_NONE)
        write_optional(out, value, name);
    else if (kind == PITH_MAP_I64 || kind == PITH_MAP_STRING)
        write_map(out, value, name);
    else if (value->dtype == PITH_SEQUENCE)
        write_sequence(out, value, name);
    else
        pith__onnx_put_tensor(out, value, name);
    return pith__out_status(&written, "the value", err);
}
