/* onnx_read.c - ModelProto to graph.
 *
 * A graph's message is walked several times, each time for one kind of field (initializers, inputs, names of node
 * outputs, nodes, outputs, declared types), because protobuf promises no order and names may be used before they are
 * made. Walking is cheap: it touches only the fields' lengths. Names are resolved here once and for all; a name of the
 * outer graph becomes a capture: a trailing input of the node that owns the subgraph, and a value in each of its
 * subgraphs. Limits: depth of subgraphs and types, number of nodes; all else is bounded by the size of the file.
 * Source of the field numbers: onnx.proto. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/map.h"
#include "onnx/onnx.h"
#include "onnx/onnx_tensor.h"
#include "onnx/wire.h"

#define DEPTH_MAX 32
#define NODES_MAX ((size_t)1 << 22)
#define SUBGRAPHS_MAX 16 /* of one node: each of them gets every capture */

typedef struct reader {
    pith_onnx_source source;
    const pith_log *log;
    const pith_opset *opsets; /* of the model, or of the function that is being read */
    size_t opset_count, node_count;
    int64_t ir_version;
} reader;

/* A node that has subgraphs, while they are read. */
typedef struct owner {
    pith_value **captures; /* values of the node's graph */
    size_t count, capacity;
    pith_map places; /* name to place in captures */
} owner;

/* A graph while it is read, and what its names mean. */
typedef struct scope {
    pith_graph *graph;
    pith_map names;      /* to value id */
    struct scope *outer; /* NULL for the main graph and for functions */
    owner *owner;        /* the node of the outer graph */
    size_t capture_capacity;
    int depth;
} scope;

static pith_status out_of_memory(reader *r) { return pith_fail_memory(r->source.err, 0); }

static void walk(pith_wire *w, pith_str bytes, const reader *r) {
    pith_wire_init(w, bytes, r->source.base, r->source.err);
}

/* The first field with this tag, or "". Faults of the wire format are left to the walk that follows. */
static pith_str find_bytes(const reader *r, pith_str bytes, uint32_t tag) {
    pith_wire w;
    pith_wire_field f;
    pith_wire_init(&w, bytes, r->source.base, NULL);
    while (pith_wire_next(&w, &f))
        if (f.tag == tag) return f.bytes;
    return (pith_str){ "", 0 };
}

static pith_status count_fields(reader *r, size_t *count, pith_str bytes, uint32_t tag) {
    pith_wire w;
    pith_wire_field f;
    *count = 0;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) *count += f.tag == tag;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_str plain_domain(pith_str domain) { return pith_str_is(domain, "ai.onnx") ? (pith_str){ "", 0 } : domain; }

/* ---- types ---- */

static pith_status read_dim(reader *r, pith_dim *dim, pith_str bytes, pith_graph *graph) {
    pith_wire w;
    pith_wire_field f;
    *dim = PITH_DIM_UNKNOWN;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(1) && (int64_t)f.value >= 0) *dim = (int64_t)f.value;
        if (f.tag != PITH_WIRE_BYTES(2) || !f.bytes.size) continue;
        *dim = pith_dim_symbol(graph->dims, f.bytes);
        if (*dim == PITH_DIM_UNKNOWN) return out_of_memory(r);
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A TensorShapeProto; more dimensions than the engine has leave the rank unknown. */
static pith_status read_shape(reader *r, pith_type *type, pith_str bytes, pith_graph *graph) {
    pith_wire w;
    pith_wire_field f;
    int rank = 0;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(1)) continue;
        if (rank == PITH_MAX_RANK) {
            type->rank = -1;
            return PITH_OK;
        }
        PITH_TRY(read_dim(r, &type->dims[rank++], f.bytes, graph));
    }
    type->rank = rank;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A TypeProto. What the engine has no word for stays unknown; so does an optional, which may be there or not. A map is
 * a sequence of its keys and values. */
static pith_status read_type(reader *r, pith_type *type, pith_str bytes, pith_graph *graph, int depth) {
    pith_wire w, t;
    pith_wire_field f, g;
    pith_type item;
    pith_type_init(type);
    if (depth > DEPTH_MAX)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "types nested more than %d deep", DEPTH_MAX);
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        bool sequence = f.tag == PITH_WIRE_BYTES(4), optional = f.tag == PITH_WIRE_BYTES(9);
        if (f.tag == PITH_WIRE_BYTES(5)) type->dtype = PITH_SEQUENCE, type->rank = 1, type->dims[0] = 2;
        if (f.tag != PITH_WIRE_BYTES(1) && !sequence && !optional) continue;
        walk(&t, f.bytes, r);
        while (pith_wire_next(&t, &g)) {
            if (sequence || optional) {
                if (g.tag != PITH_WIRE_BYTES(1)) continue;
                PITH_TRY(read_type(r, &item, g.bytes, graph, depth + 1));
                type->item_dtype = item.item_dtype ? item.item_dtype : item.dtype;
            } else if (g.tag == PITH_WIRE_VARINT(1)) {
                type->dtype = g.value < PITH_DTYPE_COUNT ? (int32_t)g.value : PITH_UNDEFINED;
            } else if (g.tag == PITH_WIRE_BYTES(2)) {
                PITH_TRY(read_shape(r, type, g.bytes, graph));
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

/* A ValueInfoProto: its name and type. */
static pith_status read_value_info(reader *r, pith_str *name, pith_type *type, pith_str bytes, pith_graph *graph) {
    *name = find_bytes(r, bytes, PITH_WIRE_BYTES(1));
    pith_status status = read_type(r, type, find_bytes(r, bytes, PITH_WIRE_BYTES(2)), graph, 0);
    if (status) return pith_fail_at(r->source.err, status, "type of '" PITH_STR_FMT "': ", PITH_STR_ARG(*name));
    return PITH_OK;
}

static pith_status set_hint(reader *r, pith_value *value, const pith_type *type) {
    if (value->hint) return PITH_OK;
    value->hint = pith_arena_alloc(r->source.arena, sizeof *type);
    if (!value->hint) return out_of_memory(r);
    *value->hint = *type;
    return PITH_OK;
}

/* ---- names ---- */

static pith_status define(reader *r, scope *s, pith_str name, const pith_value *value) {
    uint32_t old;
    if (!value || !pith_map_put(&s->names, name, value->id, &old)) return out_of_memory(r);
    if (old == UINT32_MAX) return PITH_OK;
    return pith_fail(r->source.err, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is defined twice", PITH_STR_ARG(name));
}

/* Gives the scope's graph the value that stands for owner->captures[place]. */
static pith_status add_capture(reader *r, scope *s, size_t place, pith_value **value) {
    pith_graph *graph = s->graph;
    const pith_value *outer = s->owner->captures[place];
    *value = pith_graph_add_value(graph, outer->name, PITH_VALUE_CAPTURE);
    if (!*value) return out_of_memory(r);
    while (graph->capture_count <= place) {
        void *items = graph->captures;
        if (!pith_arena_grow(r->source.arena, &items, graph->capture_count, &s->capture_capacity,
                             sizeof *graph->captures))
            return out_of_memory(r);
        graph->captures = items;
        graph->captures[graph->capture_count++] = NULL;
    }
    graph->captures[place] = *value;
    return PITH_OK;
}

/* What the name means here; NULL if nothing. */
static pith_status resolve(reader *r, scope *s, pith_str name, pith_value **value) {
    uint32_t id = pith_map_get(&s->names, name);
    *value = NULL;
    if (id != UINT32_MAX) {
        *value = s->graph->values[id];
        return PITH_OK;
    }
    if (!s->outer) return PITH_OK;
    pith_value *outer;
    PITH_TRY(resolve(r, s->outer, name, &outer));
    if (!outer) return PITH_OK;
    owner *o = s->owner;
    uint32_t place = pith_map_get(&o->places, name);
    if (place == UINT32_MAX) {
        void *items = o->captures;
        place = (uint32_t)o->count;
        if (!pith_arena_grow(r->source.arena, &items, o->count, &o->capacity, sizeof *o->captures) ||
            !pith_map_put(&o->places, name, place, NULL)) {
            return out_of_memory(r);
        }
        o->captures = items;
        o->captures[o->count++] = outer;
    }
    PITH_TRY(add_capture(r, s, place, value));
    return define(r, s, name, *value);
}

/* ---- attributes ---- */

static pith_status read_graph(reader *r, scope *s, pith_str bytes);

/* A subgraph of the node that is being read. The scope is kept for the captures that later subgraphs bring. */
static pith_status read_subgraph(reader *r, pith_graph **graph, pith_str bytes, scope *outer, owner *o, scope **kept) {
    scope *s = pith_arena_array(r->source.arena, 1, sizeof *s);
    if (!s) return out_of_memory(r);
    *s = (scope){ .outer = outer, .owner = o, .depth = outer->depth + 1 };
    PITH_TRY(pith_graph_create(&s->graph, r->source.arena, outer->graph, r->source.err));
    PITH_TRY(read_graph(r, s, bytes));
    *graph = s->graph;
    *kept = s;
    return PITH_OK;
}

/* One node's subgraphs: what they capture and their scopes. */
typedef struct subgraphs {
    owner owner;
    scope *scopes[SUBGRAPHS_MAX];
    size_t count;
    bool started;
} subgraphs;

static pith_status add_subgraph(reader *r, pith_graph **graph, pith_str bytes, scope *s, subgraphs *subs) {
    if (!subs->started && pith_map_init(&subs->owner.places, r->source.arena, 0)) return out_of_memory(r);
    subs->started = true;
    if (subs->count == SUBGRAPHS_MAX)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "more than %d subgraphs", SUBGRAPHS_MAX);
    PITH_TRY(read_subgraph(r, graph, bytes, s, &subs->owner, &subs->scopes[subs->count]));
    subs->count++;
    return PITH_OK;
}

/* All subgraphs of a node have the same captures, used or not. */
static pith_status complete_captures(reader *r, subgraphs *subs) {
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t place = 0; place < subs->owner.count; place++) {
            pith_value *unused;
            const pith_graph *graph = subs->scopes[i]->graph;
            if (place < graph->capture_count && graph->captures[place]) continue;
            PITH_TRY(add_capture(r, subs->scopes[i], place, &unused));
        }
    }
    return PITH_OK;
}

static pith_status read_tensor(reader *r, const pith_tensor **tensor, pith_str bytes) {
    pith_tensor *t = pith_arena_alloc(r->source.arena, sizeof *t);
    if (!t) return out_of_memory(r);
    *tensor = t;
    return pith_onnx_decode_tensor(t, NULL, bytes, &r->source);
}

/* Elements of a list attribute; numbers may be packed. */
static pith_status count_items(reader *r, pith_attr *attr, pith_str bytes) {
    pith_wire w;
    pith_wire_field f;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag >> 3 != (uint32_t)attr->kind + 1) continue;
        if (f.tag == PITH_WIRE_BYTES(7))
            attr->count += f.bytes.size / sizeof(float);
        else if (f.tag == PITH_WIRE_BYTES(8))
            attr->count += pith_wire_count_varints(f.bytes);
        else
            attr->count++;
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status read_list(reader *r, pith_attr *attr, pith_str bytes, scope *s, subgraphs *subs) {
    static const size_t sizes[] = {
        [PITH_ATTR_FLOATS] = sizeof(float),        [PITH_ATTR_INTS] = sizeof(int64_t),
        [PITH_ATTR_STRINGS] = sizeof(pith_str),    [PITH_ATTR_TENSORS] = sizeof(pith_tensor *),
        [PITH_ATTR_GRAPHS] = sizeof(pith_graph *),
    };
    PITH_TRY(count_items(r, attr, bytes));
    void *items = pith_arena_array(r->source.arena, attr->count, sizes[attr->kind]);
    if (!items) return out_of_memory(r);
    pith_wire w, packed;
    pith_wire_field f;
    size_t n = 0;
    float *floats = items;
    int64_t *ints = items;
    uint64_t value;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
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
            walk(&packed, f.bytes, r);
            while (pith_wire_next_varint(&packed, &value)) ints[n++] = (int64_t)value;
            if (packed.failed) return PITH_ERR_FORMAT;
            break;
        case PITH_WIRE_BYTES(9): ((pith_str *)items)[n++] = f.bytes; break;
        case PITH_WIRE_BYTES(10): PITH_TRY(read_tensor(r, &((const pith_tensor **)items)[n++], f.bytes)); break;
        case PITH_WIRE_BYTES(11): PITH_TRY(add_subgraph(r, &((pith_graph **)items)[n++], f.bytes, s, subs)); break;
        default: return pith_fail(r->source.err, PITH_ERR_FORMAT, "an item of the wrong kind");
        }
    }
    attr->floats = items; /* all members of the union are pointers of one size here */
    return PITH_OK;
}

static pith_status read_attr_value(reader *r, pith_attr *attr, pith_str bytes, scope *s, subgraphs *subs) {
    pith_wire w;
    pith_wire_field f;
    uint64_t number = 0;
    attr->s = (pith_str){ "", 0 };
    if (attr->kind == PITH_ATTR_FLOAT || attr->kind == PITH_ATTR_INT) attr->i = 0;
    bool there = attr->kind <= PITH_ATTR_STRING; /* zero and "" may be left out */
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        number = f.tag >> 3;
        bool ours = number == (attr->kind == PITH_ATTR_TYPE ? 14u : (uint32_t)attr->kind + 1);
        if (!ours) continue;
        switch (f.tag) {
        case PITH_WIRE_FIXED32(2): memcpy(&attr->f, &f.value, sizeof attr->f); break;
        case PITH_WIRE_VARINT(3): attr->i = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(4): attr->s = f.bytes; break;
        case PITH_WIRE_BYTES(5): PITH_TRY(read_tensor(r, &attr->tensor, f.bytes)); break;
        case PITH_WIRE_BYTES(6):
            if (there) return pith_fail(r->source.err, PITH_ERR_FORMAT, "has two graphs");
            PITH_TRY(add_subgraph(r, &attr->graph, f.bytes, s, subs));
            break;
        case PITH_WIRE_BYTES(14): {
            pith_type *type = pith_arena_alloc(r->source.arena, sizeof *type);
            if (!type) return out_of_memory(r);
            PITH_TRY(read_type(r, type, f.bytes, s->graph, 0));
            attr->type = type;
            break;
        }
        default: return pith_fail(r->source.err, PITH_ERR_FORMAT, "a value of the wrong kind");
        }
        there = true;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    return there ? PITH_OK : pith_fail(r->source.err, PITH_ERR_FORMAT, "has no value");
}

/* An AttributeProto. Files before IR version 3 have no type field: the field that is there tells. */
static pith_status read_attr(reader *r, pith_attr *attr, pith_str bytes, scope *s, subgraphs *subs) {
    pith_wire w;
    pith_wire_field f;
    uint64_t kind = 0, seen = 0;
    *attr = (pith_attr){ .name = { "", 0 }, .reference = { "", 0 } };
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
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
        status = pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "attribute type %llu", (unsigned long long)kind);
    } else if (!attr->reference.size) {
        attr->kind = (pith_attr_kind)kind;
        bool list = kind >= PITH_ATTR_FLOATS && kind <= PITH_ATTR_GRAPHS;
        status = list ? read_list(r, attr, bytes, s, subs) : read_attr_value(r, attr, bytes, s, subs);
    } else if (known) {
        attr->kind = (pith_attr_kind)kind;
    }
    if (status) return pith_fail_at(r->source.err, status, "attribute '" PITH_STR_FMT "': ", PITH_STR_ARG(attr->name));
    return PITH_OK;
}

/* ---- nodes ---- */

typedef struct node_head {
    pith_str name, op_type, domain, overload;
    size_t inputs, outputs, attrs;
} node_head;

static pith_status read_head(reader *r, node_head *h, pith_str bytes) {
    pith_wire w;
    pith_wire_field f;
    *h = (node_head){ .name = { "", 0 }, .op_type = { "", 0 }, .domain = { "", 0 }, .overload = { "", 0 } };
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_BYTES(1): h->inputs++; break;
        case PITH_WIRE_BYTES(2): h->outputs++; break;
        case PITH_WIRE_BYTES(3): h->name = f.bytes; break;
        case PITH_WIRE_BYTES(4): h->op_type = f.bytes; break;
        case PITH_WIRE_BYTES(5): h->attrs++; break;
        case PITH_WIRE_BYTES(7): h->domain = plain_domain(f.bytes); break;
        case PITH_WIRE_BYTES(8): h->overload = f.bytes; break;
        default: break;
        }
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static int32_t opset_of(const reader *r, pith_str domain) {
    for (size_t i = 0; i < r->opset_count; i++)
        if (pith_str_eq(r->opsets[i].domain, domain)) return (int32_t)r->opsets[i].version;
    return 1; /* what a model without the import means */
}

static pith_status resolve_input(reader *r, scope *s, pith_str name, pith_value **value) {
    PITH_TRY(resolve(r, s, name, value));
    if (*value) return PITH_OK;
    return pith_fail(r->source.err, PITH_ERR_FORMAT,
                     "input '" PITH_STR_FMT "' is made by no node and is no input or initializer", PITH_STR_ARG(name));
}

static pith_status build_node(reader *r, scope *s, const node_head *h, pith_str bytes, int32_t index) {
    pith_arena *arena = r->source.arena;
    subgraphs subs = { 0 };
    pith_wire w;
    pith_wire_field f;
    size_t n = 0;
    if (!h->op_type.size) return pith_fail(r->source.err, PITH_ERR_FORMAT, "has no operator type");
    if (++r->node_count > NODES_MAX)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "more than %zu nodes", NODES_MAX);
    pith_attr *attrs = pith_arena_array(arena, h->attrs, sizeof *attrs);
    if (!attrs) return out_of_memory(r);
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(5)) PITH_TRY(read_attr(r, &attrs[n++], f.bytes, s, &subs));
    PITH_TRY(complete_captures(r, &subs));

    size_t captures = subs.owner.count, in = 0, out = 0;
    if (h->inputs + captures > INT32_MAX || h->outputs > INT32_MAX)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "too many inputs or outputs");
    pith_value **inputs = pith_arena_array(arena, h->inputs + captures, sizeof *inputs);
    pith_value **outputs = pith_arena_array(arena, h->outputs, sizeof *outputs);
    if (!inputs || !outputs) return out_of_memory(r);
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) {
            if (f.bytes.size) PITH_TRY(resolve_input(r, s, f.bytes, &inputs[in]));
            in++;
        } else if (f.tag == PITH_WIRE_BYTES(2)) {
            if (f.bytes.size) PITH_TRY(resolve(r, s, f.bytes, &outputs[out]));
            out++;
        }
    }
    if (captures) memcpy(inputs + in, subs.owner.captures, captures * sizeof *inputs);
    pith_node *node = pith_graph_add_node(s->graph, NULL, "", "", inputs, (int)(in + captures), outputs, (int)out);
    if (!node) return out_of_memory(r);
    node->name = h->name;
    node->domain = h->domain;
    node->op_type = h->op_type;
    node->overload = h->overload;
    node->opset = opset_of(r, h->domain);
    node->index = index;
    node->capture_count = (int32_t)captures;
    node->attrs = attrs;
    node->attr_count = n;
    return PITH_OK;
}

static pith_status read_node(reader *r, scope *s, pith_str bytes, int32_t index) {
    node_head h;
    PITH_TRY(read_head(r, &h, bytes));
    pith_status status = build_node(r, s, &h, bytes, index);
    if (!status) return PITH_OK;
    return pith_fail_at(r->source.err, status, "node %d '" PITH_STR_FMT "' (" PITH_STR_FMT "): ", (int)index,
                        PITH_STR_ARG(h.name), PITH_STR_ARG(h.op_type));
}

/* Values for all outputs of all nodes. tag: of the node field, which differs between graphs and functions. */
static pith_status define_node_outputs(reader *r, scope *s, pith_str bytes, uint32_t tag) {
    pith_wire w, n;
    pith_wire_field f, g;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        walk(&n, f.bytes, r);
        while (pith_wire_next(&n, &g)) {
            if (g.tag != PITH_WIRE_BYTES(2) || !g.bytes.size) continue;
            PITH_TRY(define(r, s, g.bytes, pith_graph_add_value(s->graph, g.bytes, PITH_VALUE_NODE)));
        }
        if (n.failed) return PITH_ERR_FORMAT;
    }
    return PITH_OK;
}

static pith_status read_nodes(reader *r, scope *s, pith_str bytes, uint32_t tag) {
    pith_wire w;
    pith_wire_field f;
    int32_t index = 0;
    PITH_TRY(define_node_outputs(r, s, bytes, tag));
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f))
        if (f.tag == tag) PITH_TRY(read_node(r, s, f.bytes, index++));
    return pith_graph_sort(s->graph, r->source.err);
}

/* Declared types of inner values. */
static pith_status read_hints(reader *r, scope *s, pith_str bytes, uint32_t tag) {
    pith_wire w;
    pith_wire_field f;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        uint32_t id = pith_map_get(&s->names, find_bytes(r, f.bytes, PITH_WIRE_BYTES(1)));
        if (id == UINT32_MAX || s->graph->values[id]->kind != PITH_VALUE_NODE) continue;
        pith_str name;
        pith_type type;
        PITH_TRY(read_value_info(r, &name, &type, f.bytes, s->graph));
        PITH_TRY(set_hint(r, s->graph->values[id], &type));
    }
    return PITH_OK;
}

/* ---- graphs ---- */

static pith_status read_initializer(reader *r, scope *s, pith_str bytes) {
    pith_tensor tensor;
    pith_str name = { "", 0 };
    PITH_TRY(pith_onnx_decode_tensor(&tensor, &name, bytes, &r->source));
    if (!name.size) return pith_fail(r->source.err, PITH_ERR_FORMAT, "an initializer has no name");
    return define(r, s, name, pith_graph_add_const(s->graph, name, &tensor));
}

static pith_status read_input(reader *r, scope *s, pith_str bytes) {
    pith_graph *graph = s->graph;
    pith_str name;
    pith_type type;
    PITH_TRY(read_value_info(r, &name, &type, bytes, graph));
    if (!name.size) return pith_fail(r->source.err, PITH_ERR_FORMAT, "an input has no name");
    /* Sizes without a name are sizes of their own. */
    for (int i = 0; i < type.rank && type.dtype != PITH_SEQUENCE; i++) {
        if (type.dims[i] != PITH_DIM_UNKNOWN) continue;
        pith_str symbol = pith_arena_printf(r->source.arena, PITH_STR_FMT "_dim%d", PITH_STR_ARG(name), i);
        if (!symbol.data) return out_of_memory(r);
        type.dims[i] = pith_dim_symbol(graph->dims, symbol);
        if (type.dims[i] == PITH_DIM_UNKNOWN) return out_of_memory(r);
    }
    uint32_t id = pith_map_get(&s->names, name);
    pith_value *value = id == UINT32_MAX ? NULL : graph->values[id];
    if (value && value->kind == PITH_VALUE_CONST) {
        if (r->ir_version < 4) return PITH_OK; /* initializers had to be listed as inputs then */
        value->kind = PITH_VALUE_INPUT;
        type.data = value->type.data;
    } else {
        value = pith_graph_add_value(graph, name, PITH_VALUE_INPUT);
        PITH_TRY(define(r, s, name, value));
    }
    value->type = type;
    graph->inputs[graph->input_count++] = value;
    return PITH_OK;
}

static pith_status add_output(reader *r, scope *s, pith_str name, pith_value **value) {
    PITH_TRY(resolve(r, s, name, value));
    if (!*value) {
        return pith_fail(r->source.err, PITH_ERR_FORMAT, "output '" PITH_STR_FMT "' is made by no node",
                         PITH_STR_ARG(name));
    }
    s->graph->outputs[s->graph->output_count++] = *value;
    (*value)->output_uses++;
    return PITH_OK;
}

static pith_status read_output(reader *r, scope *s, pith_str bytes) {
    pith_str name;
    pith_type type;
    pith_value *value;
    PITH_TRY(read_value_info(r, &name, &type, bytes, s->graph));
    PITH_TRY(add_output(r, s, name, &value));
    return value->kind == PITH_VALUE_NODE ? set_hint(r, value, &type) : PITH_OK;
}

/* Calls read for every field with the tag. */
static pith_status each_field(reader *r, scope *s, pith_str bytes, uint32_t tag,
                              pith_status (*read)(reader *r, scope *s, pith_str bytes)) {
    pith_wire w;
    pith_wire_field f;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f))
        if (f.tag == tag) PITH_TRY(read(r, s, f.bytes));
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status refuse_sparse(reader *r, scope *s, pith_str bytes) {
    (void)s;
    pith_str values = find_bytes(r, bytes, PITH_WIRE_BYTES(1)), name = find_bytes(r, values, PITH_WIRE_BYTES(8));
    return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED,
                     "sparse initializer '" PITH_STR_FMT "' (sparse tensors are not supported)", PITH_STR_ARG(name));
}

static pith_status make_ports(reader *r, pith_graph *graph, pith_str bytes, uint32_t input_tag, uint32_t output_tag) {
    size_t inputs, outputs;
    PITH_TRY(count_fields(r, &inputs, bytes, input_tag));
    PITH_TRY(count_fields(r, &outputs, bytes, output_tag));
    graph->inputs = pith_arena_array(r->source.arena, inputs, sizeof *graph->inputs);
    graph->outputs = pith_arena_array(r->source.arena, outputs, sizeof *graph->outputs);
    graph->opsets = r->opsets;
    graph->opset_count = r->opset_count;
    return graph->inputs && graph->outputs ? PITH_OK : out_of_memory(r);
}

/* A GraphProto into s->graph, which is empty. */
static pith_status read_graph(reader *r, scope *s, pith_str bytes) {
    pith_graph *graph = s->graph;
    if (s->depth > DEPTH_MAX)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "subgraphs nested more than %d deep", DEPTH_MAX);
    if (pith_map_init(&s->names, r->source.arena, 0)) return out_of_memory(r);
    graph->name = find_bytes(r, bytes, PITH_WIRE_BYTES(2));
    PITH_TRY(make_ports(r, graph, bytes, PITH_WIRE_BYTES(11), PITH_WIRE_BYTES(12)));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(15), refuse_sparse));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(5), read_initializer));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(11), read_input));
    PITH_TRY(read_nodes(r, s, bytes, PITH_WIRE_BYTES(1)));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(12), read_output));
    return read_hints(r, s, bytes, PITH_WIRE_BYTES(13));
}

/* ---- functions ---- */

static pith_status read_opsets(reader *r, pith_str bytes, uint32_t tag) {
    size_t count, n = 0;
    PITH_TRY(count_fields(r, &count, bytes, tag));
    pith_opset *opsets = pith_arena_array(r->source.arena, count, sizeof *opsets);
    if (!opsets) return out_of_memory(r);
    pith_wire w, o;
    pith_wire_field f, g;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        pith_opset *opset = &opsets[n++];
        opset->domain = (pith_str){ "", 0 };
        walk(&o, f.bytes, r);
        while (pith_wire_next(&o, &g)) {
            if (g.tag == PITH_WIRE_BYTES(1)) opset->domain = plain_domain(g.bytes);
            if (g.tag == PITH_WIRE_VARINT(2)) opset->version = (int64_t)g.value;
        }
        if (o.failed) return PITH_ERR_FORMAT;
        if (opset->version < 1 || opset->version > INT32_MAX)
            return pith_fail(r->source.err, PITH_ERR_FORMAT, "opset version %lld", (long long)opset->version);
    }
    r->opsets = opsets;
    r->opset_count = count;
    return PITH_OK;
}

/* The body's inputs and outputs are mere names. */
static pith_status read_body(reader *r, pith_function *function, scope *s, pith_str bytes) {
    pith_wire w;
    pith_wire_field f;
    subgraphs subs = { 0 };
    pith_value *output;
    if (pith_map_init(&s->names, r->source.arena, 0)) return out_of_memory(r);
    PITH_TRY(make_ports(r, s->graph, bytes, PITH_WIRE_BYTES(4), PITH_WIRE_BYTES(5)));
    size_t names, defaults;
    PITH_TRY(count_fields(r, &names, bytes, PITH_WIRE_BYTES(6)));
    PITH_TRY(count_fields(r, &defaults, bytes, PITH_WIRE_BYTES(11)));
    pith_str *attr_names = pith_arena_array(r->source.arena, names, sizeof *attr_names);
    pith_attr *attrs = pith_arena_array(r->source.arena, defaults, sizeof *attrs);
    if (!attr_names || !attrs) return out_of_memory(r);
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(4)) {
            pith_value *input = pith_graph_add_value(s->graph, f.bytes, PITH_VALUE_INPUT);
            PITH_TRY(define(r, s, f.bytes, input));
            s->graph->inputs[s->graph->input_count++] = input;
        } else if (f.tag == PITH_WIRE_BYTES(6)) {
            attr_names[function->attr_name_count++] = f.bytes;
        } else if (f.tag == PITH_WIRE_BYTES(11)) {
            PITH_TRY(read_attr(r, &attrs[function->default_count++], f.bytes, s, &subs));
        }
    }
    function->attr_names = attr_names;
    function->defaults = attrs;
    PITH_TRY(complete_captures(r, &subs));
    if (subs.owner.count)
        return pith_fail(r->source.err, PITH_ERR_UNSUPPORTED, "a default graph that uses outer values");
    PITH_TRY(read_nodes(r, s, bytes, PITH_WIRE_BYTES(7)));
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(5)) PITH_TRY(add_output(r, s, f.bytes, &output));
    return read_hints(r, s, bytes, PITH_WIRE_BYTES(12));
}

static pith_status read_function(reader *r, pith_function *function, pith_graph *main, pith_str bytes) {
    const pith_opset *opsets = r->opsets;
    size_t opset_count = r->opset_count;
    scope s = { 0 };
    function->name = find_bytes(r, bytes, PITH_WIRE_BYTES(1));
    function->domain = plain_domain(find_bytes(r, bytes, PITH_WIRE_BYTES(10)));
    function->overload = find_bytes(r, bytes, PITH_WIRE_BYTES(13));
    PITH_TRY(pith_graph_create(&s.graph, r->source.arena, main, r->source.err));
    s.graph->parent = NULL;
    s.graph->name = function->name;
    function->body = s.graph;
    pith_status status = read_opsets(r, bytes, PITH_WIRE_BYTES(9));
    if (!status) status = read_body(r, function, &s, bytes);
    r->opsets = opsets;
    r->opset_count = opset_count;
    if (status)
        return pith_fail_at(r->source.err, status, "function '" PITH_STR_FMT "': ", PITH_STR_ARG(function->name));
    return PITH_OK;
}

static pith_status read_functions(reader *r, pith_graph *main, pith_str bytes) {
    size_t count, n = 0;
    PITH_TRY(count_fields(r, &count, bytes, PITH_WIRE_BYTES(25)));
    pith_function *functions = pith_arena_array(r->source.arena, count, sizeof *functions);
    if (!functions) return out_of_memory(r);
    pith_wire w;
    pith_wire_field f;
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(25)) PITH_TRY(read_function(r, &functions[n++], main, f.bytes));
    main->functions = functions;
    main->function_count = n;
    return PITH_OK;
}

/* ---- models ---- */

static pith_status read_model(reader *r, pith_graph **graph, pith_str bytes) {
    pith_wire w;
    pith_wire_field f;
    pith_str producer = { "", 0 }, version = { "", 0 }, body = { NULL, 0 };
    scope s = { 0 };
    walk(&w, bytes, r);
    while (pith_wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_VARINT(1): r->ir_version = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(2): producer = f.bytes; break;
        case PITH_WIRE_BYTES(3): version = f.bytes; break;
        case PITH_WIRE_BYTES(7): body = f.bytes; break;
        default: break;
        }
    }
    if (w.failed) return pith_fail_at(r->source.err, PITH_ERR_FORMAT, "damaged, or no ONNX file: ");
    if (!body.data || r->ir_version < 1)
        return pith_fail(r->source.err, PITH_ERR_FORMAT, "no ONNX file: it has no graph or no version");
    PITH_TRY(read_opsets(r, bytes, PITH_WIRE_BYTES(8)));
    PITH_TRY(pith_graph_create(&s.graph, r->source.arena, NULL, r->source.err));
    s.graph->log = r->log;
    s.graph->ir_version = r->ir_version;
    s.graph->producer = pith_arena_printf(r->source.arena, PITH_STR_FMT "%s" PITH_STR_FMT, PITH_STR_ARG(producer),
                                          version.size ? " " : "", PITH_STR_ARG(version));
    if (!s.graph->producer.data) return out_of_memory(r);
    PITH_TRY(read_graph(r, &s, body));
    PITH_TRY(read_functions(r, s.graph, bytes));
    *graph = s.graph;
    return PITH_OK;
}

pith_status pith_onnx_read(pith_graph **graph, pith_str bytes, const char *external_dir, pith_files *files,
                           pith_arena *arena, const pith_log *log, pith_error *err) {
    reader r = {
        .source = { .base = bytes.data, .arena = arena, .err = err, .files = files, .external_dir = external_dir },
        .log = log
    };
    return read_model(&r, graph, bytes);
}

/* ---- stand-alone values ---- */

static pith_status read_item(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind, pith_onnx_source *source,
                             int depth);

/* SequenceProto and OptionalProto have their values in the same fields: 3 tensor, 5 sequence, 7 optional. */
static int item_kind(uint32_t tag) {
    return tag == PITH_WIRE_BYTES(3)   ? PITH_F32
           : tag == PITH_WIRE_BYTES(5) ? PITH_SEQUENCE
           : tag == PITH_WIRE_BYTES(7) ? PITH_NONE
                                       : 0;
}

static pith_status read_items(pith_tensor *tensor, pith_str *name, pith_str bytes, int kind, pith_onnx_source *source,
                              int depth) {
    pith_wire w;
    pith_wire_field f;
    size_t count = 0, n = 0;
    if (depth > DEPTH_MAX) return pith_fail(source->err, PITH_ERR_UNSUPPORTED, "nested more than %d deep", DEPTH_MAX);
    pith_wire_init(&w, bytes, source->base, source->err);
    while (pith_wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1) && name) *name = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(4) || f.tag == PITH_WIRE_BYTES(6))
            return pith_fail(source->err, PITH_ERR_UNSUPPORTED, "sparse tensors and maps");
        count += item_kind(f.tag) != 0;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (kind == PITH_NONE && count > 1)
        return pith_fail(source->err, PITH_ERR_FORMAT, "an optional with %zu values", count);
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
    if (kind == PITH_SEQUENCE || kind == PITH_NONE) return read_items(tensor, name, bytes, kind, source, depth);
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
