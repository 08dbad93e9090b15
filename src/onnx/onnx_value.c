/* onnx_value.c - TensorProto, SequenceProto and OptionalProto in files of their own, as in ONNX test folders. */
#include "base/error.h"
#include "onnx/onnx.h"
#include "onnx/onnx_reader.h"

static pith_status read_item(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind, pith_onnx_source *source,
                             int depth);

/* SequenceProto and OptionalProto have their values in the same fields: 3 tensor, 5 sequence, 7 optional. */
static int item_kind(uint32_t tag) {
    return tag == PITH_WIRE_BYTES(3)   ? PITH_F32
           : tag == PITH_WIRE_BYTES(5) ? PITH_SEQUENCE
           : tag == PITH_WIRE_BYTES(7) ? PITH_NONE
                                       : 0;
}

static pith_status onnx_value_read_items(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind,
                                         pith_onnx_source *source, int depth) {
    pith_wire w;
    pith_wire_field f;
    size_t count = 0, n = 0;
    if (depth > PITH_ONNX_DEPTH_MAX)
        return pith_fail(source->err, PITH_ERR_UNSUPPORTED, "nested more than %d deep", PITH_ONNX_DEPTH_MAX);
    pith_wire_init(&w, bytes, source->base, source->err);
    while (pith_wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1) && name) *name = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(4) || f.tag == PITH_WIRE_BYTES(6))
            return pith_fail(source->err, PITH_ERR_UNSUPPORTED, "sparse tensors and maps are not supported");
        count += item_kind(f.tag) != 0;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (kind == PITH_NONE && count > 1)
        return pith_fail(source->err, PITH_ERR_FORMAT, "an optional has %zu values instead of at most 1", count);
    pith_tensor *items = kind == PITH_NONE ? tensor : pith_arena_array(source->arena, count, sizeof *items);
    if (!items) return pith_fail_memory(source->err, count * sizeof *items);
    *tensor = kind == PITH_NONE ? (pith_tensor){ .dtype = PITH_NONE }
                                : (pith_tensor){ .dtype = PITH_SEQUENCE,
                                                 .rank = 1,
                                                 .dims = { (int64_t)count },
                                                 .data = items,
                                                 .bytes = count * sizeof *items };
    pith_wire_init(&w, bytes, source->base, source->err);
    while (pith_wire_next(&w, &f))
        if (item_kind(f.tag)) PITH_TRY(read_item(&items[n++], NULL, f.bytes, item_kind(f.tag), source, depth + 1));
    return PITH_OK;
}

static pith_status read_item(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind, pith_onnx_source *source,
                             int depth) {
    if (kind == PITH_SEQUENCE || kind == PITH_NONE)
        return onnx_value_read_items(tensor, name, bytes, kind, source, depth);
    return pith_onnx_decode_tensor(tensor, name, bytes, source);
}

pith_status pith_onnx_read_tensor(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind, pith_arena *arena,
                                  pith_error *err) {
    pith_onnx_source source = { .base = bytes.data, .arena = arena, .err = err };
    pith_tensor read = { 0 };
    if (name) *name = (pith_str){ "", 0 };
    PITH_TRY(read_item(&read, name, bytes, kind, &source, 0));
    *tensor = read;
    return PITH_OK;
}
