/* value_read.c - TensorProto, SequenceProto and OptionalProto in files of their own, as in ONNX
 * test folders. */
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "formats/onnx/model_read.h"
#include "formats/onnx/onnx_reader.h"

static pith_status read_item(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                             pith__onnx_source *source, int depth);

/* SequenceProto and OptionalProto have their values in the same fields: 3 tensor, 5 sequence, 6
 * map, 7 optional. */
static int item_kind(uint32_t tag) {
    switch (tag) {
    case PITH_WIRE_BYTES(3): return PITH_F32;
    case PITH_WIRE_BYTES(5): return PITH_SEQUENCE;
    case PITH_WIRE_BYTES(6): return PITH_MAP_I64;
    case PITH_WIRE_BYTES(7): return PITH_NONE;
    default: return 0;
    }
}

static pith_status value_read_items(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                                    pith__onnx_source *source, int depth) {
    pith__wire w;
    pith__wire_field f;
    size_t count = 0, n = 0;
    if (depth > PITH_ONNX_DEPTH_MAX)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED, "nested more than %d deep",
                          PITH_ONNX_DEPTH_MAX);
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1) && name) *name = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(4))
            return pith__fail(source->err, PITH_ERR_UNSUPPORTED,
                              "sparse tensors are not supported");
        count += item_kind(f.tag) != 0;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (kind == PITH_NONE && count > 1)
        return pith__fail(source->err, PITH_ERR_FORMAT,
                          "an optional has %zu values instead of at most 1", count);
    pith_tensor *items =
        kind == PITH_NONE ? tensor : pith__arena_array(source->arena, count, sizeof *items);
    if (!items) return pith__fail_memory(source->err, count * sizeof *items);
    *tensor = kind == PITH_NONE ? (pith_tensor){ .dtype = PITH_NONE }
                                : (pith_tensor){ .dtype = PITH_SEQUENCE,
                                                 .rank = 1,
                                                 .dims = { (int64_t)count },
                                                 .data = items,
                                                 .bytes = count * sizeof *items };
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f))
        if (item_kind(f.tag))
            PITH_TRY(read_item(&items[n++], NULL, f.bytes, item_kind(f.tag), source, depth + 1));
    return PITH_OK;
}

/* Numbers, packed or one by one, and strings become keys. */
static pith_status read_keys(pith_tensor *keys, pith_str bytes, pith__onnx_source *source) {
    pith__wire w, packed;
    pith__wire_field f;
    uint64_t number;
    int64_t room = 0, n = 0;
    bool strings = false;
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        strings = strings || f.tag == PITH_WIRE_BYTES(4);
        room += f.tag == PITH_WIRE_BYTES(3) ? (int64_t)pith__wire_count_varints(f.bytes) : 1;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    const size_t size = strings ? sizeof(pith_str) : sizeof(int64_t);
    void *data = pith__arena_array(source->arena, (size_t)room + 1, size);
    if (!data) return pith__fail_memory(source->err, (size_t)room * size);
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (strings && f.tag == PITH_WIRE_BYTES(4)) ((pith_str *)data)[n++] = f.bytes;
        if (strings) continue;
        if (f.tag == PITH_WIRE_VARINT(3)) ((int64_t *)data)[n++] = (int64_t)f.value;
        if (f.tag != PITH_WIRE_BYTES(3)) continue;
        pith__wire_init(&packed, f.bytes, source->base, source->err);
        while (pith__wire_next_varint(&packed, &number)) ((int64_t *)data)[n++] = (int64_t)number;
        if (packed.failed) return PITH_ERR_FORMAT;
    }
    *keys = (pith_tensor){ .data = data,
                           .bytes = (size_t)n * size,
                           .dtype = strings ? PITH_STRING : PITH_I64,
                           .rank = 1 };
    keys->dims[0] = n;
    return PITH_OK;
}

/* Tensors of one element and one type become one tensor. */
static pith_status read_values(pith_tensor *values, const pith_tensor *list,
                               pith__onnx_source *source) {
    const pith_tensor *items = list->data;
    const int64_t n = list->dims[0];
    const int dtype = n ? items[0].dtype : PITH_F32;
    const size_t size = (size_t)pith__dtype_bits(dtype) / 8;
    char *data = pith__arena_array(source->arena, (size_t)n + 1, size ? size : 1);
    if (!data) return pith__fail_memory(source->err, (size_t)n * size);
    for (int64_t i = 0; i < n; i++) {
        if (items[i].dtype != dtype || !size || pith__dims_count(items[i].dims, items[i].rank) != 1)
            return pith__fail(source->err, PITH_ERR_UNSUPPORTED,
                              "the values of a map are not one number each");
        memcpy(data + (size_t)i * size, items[i].data, size);
    }
    *values = (pith_tensor){
        .data = data, .bytes = (size_t)n * size, .dtype = dtype, .rank = 1, .dims = { n }
    };
    return PITH_OK;
}

/* A MapProto as a sequence of keys and values. */
static pith_status read_map(pith_tensor *map, pith_str *name, pith_str bytes,
                            pith__onnx_source *source, int depth) {
    pith_tensor *pair = pith__arena_array(source->arena, 2, sizeof *pair),
                list = { .dtype = PITH_SEQUENCE, .rank = 1 };
    pith__wire w;
    pith__wire_field f;
    if (!pair) return pith__fail_memory(source->err, 2 * sizeof *pair);
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1) && name) *name = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(5))
            PITH_TRY(value_read_items(&list, NULL, f.bytes, PITH_SEQUENCE, source, depth + 1));
    }
    if (w.failed) return PITH_ERR_FORMAT;
    PITH_TRY(read_keys(&pair[0], bytes, source));
    PITH_TRY(read_values(&pair[1], &list, source));
    if (pair[0].dims[0] != pair[1].dims[0])
        return pith__fail(source->err, PITH_ERR_FORMAT, "a map has %lld keys and %lld values",
                          (long long)pair[0].dims[0], (long long)pair[1].dims[0]);
    *map = (pith_tensor){
        .data = pair, .bytes = 2 * sizeof *pair, .dtype = PITH_SEQUENCE, .rank = 1, .dims = { 2 }
    };
    return PITH_OK;
}

static pith_status read_item(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                             pith__onnx_source *source, int depth) {
    if (kind == PITH_MAP_I64 || kind == PITH_MAP_STRING)
        return read_map(tensor, name, bytes, source, depth);
    if (kind == PITH_SEQUENCE || kind == PITH_NONE)
        return value_read_items(tensor, name, bytes, kind, source, depth);
    return pith__onnx_decode_tensor(tensor, name, bytes, source);
}

pith_status pith__onnx_read_value(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                                  pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith__onnx_source source = { .base = bytes.data, .arena = arena, .stop = stop, .err = err };
    pith_tensor read = { 0 };
    if (name) *name = (pith_str){ "", 0 };
    PITH_TRY(read_item(&read, name, bytes, kind, &source, 0));
    *tensor = read;
    return PITH_OK;
}
