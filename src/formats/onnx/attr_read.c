/* attr_read.c - AttributeProto to pith__attr, and the subgraphs in attributes. */
#include <string.h>

#include "base/error.h"
#include "formats/onnx/onnx_reader.h"

/* A subgraph of the node that is being read. The scope is kept for the captures that later
 * subgraphs bring. */
static pith_status read_subgraph(pith__onnx_reader *r, pith__graph **graph, pith_str bytes,
                                 pith__onnx_scope *outer, pith__onnx_owner *o,
                                 pith__onnx_scope **kept) {
    pith__onnx_scope *s = pith__arena_array(r->source.arena, 1, sizeof *s);
    if (!s) return pith__onnx_no_memory(r);
    *s = (pith__onnx_scope){ .outer = outer, .owner = o, .depth = outer->depth + 1 };
    PITH_TRY(pith__graph_create(&s->graph, r->source.arena, outer->graph, r->source.err));
    PITH_TRY(pith__onnx_read_graph(r, s, bytes));
    *graph = s->graph;
    *kept = s;
    return PITH_OK;
}

/* All subgraphs of a node share one list of captures; the limit bounds the work of completing them,
 * which is captures times subgraphs. */
static pith_status add_subgraph(pith__onnx_reader *r, pith__graph **graph, pith_str bytes,
                                pith__onnx_scope *s, pith__onnx_subgraphs *subs) {
    if (!subs->started && pith__map_init(&subs->owner.places, r->source.arena, 0))
        return pith__onnx_no_memory(r);
    subs->started = true;
    if (subs->count == PITH_ONNX_SUBGRAPHS_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "more than %d subgraphs",
                          PITH_ONNX_SUBGRAPHS_MAX);
    PITH_TRY(read_subgraph(r, graph, bytes, s, &subs->owner, &subs->scopes[subs->count]));
    subs->count++;
    return PITH_OK;
}

static pith_status attr_read_tensor(pith__onnx_reader *r, const pith_tensor **tensor,
                                    pith_str bytes) {
    pith_tensor *t = pith__arena_alloc(r->source.arena, sizeof *t);
    if (!t) return pith__onnx_no_memory(r);
    *tensor = t;
    return pith__onnx_decode_tensor(t, NULL, bytes, &r->source);
}

/* Elements of a list attribute; numbers may be packed. */
static pith_status count_items(pith__onnx_reader *r, pith__attr *attr, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag >> 3 != (uint32_t)attr->kind + 1) continue;
        if (f.tag == PITH_WIRE_BYTES(7))
            attr->count += f.bytes.size / sizeof(float);
        else if (f.tag == PITH_WIRE_BYTES(8))
            attr->count += pith__wire_count_varints(f.bytes);
        else
            attr->count++;
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* Numbers may be packed or not, also within one list: protobuf readers must take both. count_items
 * has counted them the same way, so `items` has room. */
static pith_status attr_read_list(pith__onnx_reader *r, pith__attr *attr, pith_str bytes,
                                  pith__onnx_scope *s, pith__onnx_subgraphs *subs) {
    static const size_t sizes[] = {
        [PITH_ATTR_FLOATS] = sizeof(float),         [PITH_ATTR_INTS] = sizeof(int64_t),
        [PITH_ATTR_STRINGS] = sizeof(pith_str),     [PITH_ATTR_TENSORS] = sizeof(pith_tensor *),
        [PITH_ATTR_GRAPHS] = sizeof(pith__graph *),
    };
    PITH_TRY(count_items(r, attr, bytes));
    void *items = pith__arena_array(r->source.arena, attr->count, sizes[attr->kind]);
    if (!items) return pith__onnx_no_memory(r);
    pith__wire w, packed;
    pith__wire_field f;
    size_t n = 0;
    float *floats = items;
    int64_t *ints = items;
    uint64_t value;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag >> 3 != (uint32_t)attr->kind + 1) continue;
        switch (f.tag) {
        case PITH_WIRE_FIXED32(7): memcpy(&floats[n++], &f.value, sizeof *floats); break;
        case PITH_WIRE_BYTES(7): {
            size_t count = f.bytes.size / sizeof *floats;
            memcpy(&floats[n], f.bytes.data, count * sizeof *floats);
            n += count;
            break;
        }
        case PITH_WIRE_VARINT(8): ints[n++] = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(8):
            pith__onnx_walk(&packed, f.bytes, r);
            while (pith__wire_next_varint(&packed, &value)) ints[n++] = (int64_t)value;
            if (packed.failed) return PITH_ERR_FORMAT;
            break;
        case PITH_WIRE_BYTES(9): ((pith_str *)items)[n++] = f.bytes; break;
        case PITH_WIRE_BYTES(10):
            PITH_TRY(attr_read_tensor(r, &((const pith_tensor **)items)[n++], f.bytes));
            break;
        case PITH_WIRE_BYTES(11):
            PITH_TRY(add_subgraph(r, &((pith__graph **)items)[n++], f.bytes, s, subs));
            break;
        default: return pith__fail(r->source.err, PITH_ERR_FORMAT, "an item of the wrong kind");
        }
    }
    attr->floats = items; /* all members of the union are pointers of one size here */
    return PITH_OK;
}

/* The field of the value is one above the number of its kind in AttributeProto.AttributeType, but
 * for types, whose field is 14. A repeated field counts with its last value, as in protobuf; a
 * second graph is refused. */
static pith_status read_attr_value(pith__onnx_reader *r, pith__attr *attr, pith_str bytes,
                                   pith__onnx_scope *s, pith__onnx_subgraphs *subs) {
    pith__wire w;
    pith__wire_field f;
    uint64_t number = 0;
    attr->string = (pith_str){ "", 0 };
    if (attr->kind == PITH_ATTR_FLOAT || attr->kind == PITH_ATTR_INT) attr->integer = 0;
    bool there = attr->kind <= PITH_ATTR_STRING; /* zero and "" may be left out */
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        number = f.tag >> 3;
        bool ours = number == (attr->kind == PITH_ATTR_TYPE ? 14u : (uint32_t)attr->kind + 1);
        if (!ours) continue;
        switch (f.tag) {
        case PITH_WIRE_FIXED32(2): memcpy(&attr->real, &f.value, sizeof attr->real); break;
        case PITH_WIRE_VARINT(3): attr->integer = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(4): attr->string = f.bytes; break;
        case PITH_WIRE_BYTES(5): PITH_TRY(attr_read_tensor(r, &attr->tensor, f.bytes)); break;
        case PITH_WIRE_BYTES(6):
            if (there) return pith__fail(r->source.err, PITH_ERR_FORMAT, "has two graphs");
            PITH_TRY(add_subgraph(r, &attr->graph, f.bytes, s, subs));
            break;
        case PITH_WIRE_BYTES(14): {
            pith__type *type = pith__arena_alloc(r->source.arena, sizeof *type);
            if (!type) return pith__onnx_no_memory(r);
            PITH_TRY(pith__onnx_read_type(r, type, f.bytes, s->graph));
            attr->type = type;
            break;
        }
        default: return pith__fail(r->source.err, PITH_ERR_FORMAT, "a value of the wrong kind");
        }
        there = true;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    return there ? PITH_OK : pith__fail(r->source.err, PITH_ERR_FORMAT, "has no value");
}

/* Files before IR version 3 have no type field: the field that is there tells. */
pith_status pith__onnx_read_attr(pith__onnx_reader *r, pith__attr *attr, pith_str bytes,
                                 pith__onnx_scope *s, pith__onnx_subgraphs *subs) {
    pith__wire w;
    pith__wire_field f;
    uint64_t kind = 0, seen = 0;
    *attr = (pith__attr){ .name = { "", 0 }, .reference = { "", 0 } };
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        uint32_t number = f.tag >> 3;
        if (f.tag == PITH_WIRE_BYTES(1)) attr->name = f.bytes;
        if (f.tag == PITH_WIRE_VARINT(20)) kind = f.value;
        if (f.tag == PITH_WIRE_BYTES(21)) attr->reference = f.bytes;
        if (number >= 2 && number <= 11) seen = number - 1;
        if (number == 14) seen = PITH_ATTR_TYPE;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (!kind) kind = seen;
    bool known = (kind >= PITH_ATTR_FLOAT && kind <= PITH_ATTR_GRAPHS) || kind == PITH_ATTR_TYPE;
    pith_status status = PITH_OK;
    if (!known && !attr->reference.size) {
        status = pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "attribute type %llu",
                            (unsigned long long)kind);
    } else if (!attr->reference.size) {
        attr->kind = (pith__attr_kind)kind;
        bool list = kind >= PITH_ATTR_FLOATS && kind <= PITH_ATTR_GRAPHS;
        status = list ? attr_read_list(r, attr, bytes, s, subs)
                      : read_attr_value(r, attr, bytes, s, subs);
    } else if (known) {
        attr->kind = (pith__attr_kind)kind;
    }
    if (status)
        return pith__fail_at(r->source.err, status,
                             "attribute '" PITH_STR_FMT "': ", PITH_STR_ARG(attr->name));
    return PITH_OK;
}
