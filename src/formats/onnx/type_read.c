/* type_read.c - TypeProto, TensorShapeProto and ValueInfoProto to pith__type. */
#include "base/error.h"
#include "formats/onnx/onnx_reader.h"

static pith_status read_dim(pith__onnx_reader *r, pith__dim *dim, pith_str bytes,
                            pith__graph *graph) {
    pith__wire w;
    pith__wire_field f;
    *dim = PITH_DIM_UNKNOWN;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(1) && (int64_t)f.value >= 0) *dim = (int64_t)f.value;
        /* no name */
        if (f.tag != PITH_WIRE_BYTES(2) || !f.bytes.size || pith__str_is(f.bytes, "?")) continue;
        *dim = pith__dim_symbol(graph->dims, f.bytes);
        if (*dim == PITH_DIM_UNKNOWN) return pith__onnx_no_memory(r);
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A TensorShapeProto; more dimensions than the engine has leave the rank as it was, unknown. */
static pith_status type_read_shape(pith__onnx_reader *r, pith__type *type, pith_str bytes,
                                   pith__graph *graph) {
    pith__wire w;
    pith__wire_field f;
    int rank = 0;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(1)) continue;
        if (rank == PITH_MAX_RANK) return PITH_OK;
        PITH_TRY(read_dim(r, &type->dims[rank++], f.bytes, graph));
    }
    type->rank = rank;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A TypeProto.Map: keys of int64 or strings, and tensors of f32; of others only that it is a map is
 * known. */
static pith_status read_map(pith__onnx_reader *r, pith__type *type, pith_str bytes) {
    const pith_str tensor =
        pith__onnx_find(r, pith__onnx_find(r, bytes, PITH_WIRE_BYTES(2)), PITH_WIRE_BYTES(1));
    pith__wire w;
    pith__wire_field f;
    uint64_t key = 0, value = 0;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_VARINT(1)) key = f.value;
    if (w.failed) return PITH_ERR_FORMAT;
    pith__onnx_walk(&w, tensor, r);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_VARINT(1)) value = f.value;
    type->dtype = PITH_SEQUENCE;
    type->rank = 1;
    type->dims[0] = 2;
    if (value == PITH_F32 && (key == PITH_I64 || key == PITH_STRING))
        type->item_dtype = key == PITH_I64 ? PITH_MAP_I64 : PITH_MAP_STRING;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status read_type(pith__onnx_reader *r, pith__type *type, pith_str bytes,
                             pith__graph *graph, int depth) {
    pith__wire w, t;
    pith__wire_field f, g;
    pith__type item;
    pith__type_init(type);
    if (depth > PITH_ONNX_DEPTH_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "types nested more than %d deep",
                          PITH_ONNX_DEPTH_MAX);
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        bool sequence = f.tag == PITH_WIRE_BYTES(4), optional = f.tag == PITH_WIRE_BYTES(9);
        if (f.tag == PITH_WIRE_BYTES(5)) PITH_TRY(read_map(r, type, f.bytes));
        if (f.tag != PITH_WIRE_BYTES(1) && !sequence && !optional) continue;
        pith__onnx_walk(&t, f.bytes, r);
        while (pith__wire_next(&t, &g)) {
            if (sequence || optional) {
                if (g.tag != PITH_WIRE_BYTES(1)) continue;
                PITH_TRY(read_type(r, &item, g.bytes, graph, depth + 1));
                type->item_dtype = item.item_dtype ? item.item_dtype : item.dtype;
            } else if (g.tag == PITH_WIRE_VARINT(1)) {
                type->dtype = g.value < PITH_DTYPE_COUNT ? (int32_t)g.value : PITH_UNDEFINED;
            } else if (g.tag == PITH_WIRE_BYTES(2)) {
                PITH_TRY(type_read_shape(r, type, g.bytes, graph));
            }
        }
        if (t.failed) return PITH_ERR_FORMAT;
        if (!sequence) continue;
        type->dtype = PITH_SEQUENCE;
        type->rank = 1;
        type->dims[0] = PITH_DIM_UNKNOWN;
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

pith_status pith__onnx_read_type(pith__onnx_reader *r, pith__type *type, pith_str bytes,
                                 pith__graph *graph) {
    return read_type(r, type, bytes, graph, 0);
}

pith_status pith__onnx_read_value_info(pith__onnx_reader *r, pith_str *name, pith__type *type,
                                       pith_str bytes, pith__graph *graph) {
    *name = pith__onnx_find(r, bytes, PITH_WIRE_BYTES(1));
    pith_status status =
        read_type(r, type, pith__onnx_find(r, bytes, PITH_WIRE_BYTES(2)), graph, 0);
    if (status)
        return pith__fail_at(r->source.err, status,
                             "type of '" PITH_STR_FMT "': ", PITH_STR_ARG(*name));
    return PITH_OK;
}
