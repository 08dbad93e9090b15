/* model_read.c - ModelProto to graph.
 *
 * The message of a graph is walked several times, each time for one kind of field (initializers,
 * inputs, names of node outputs, nodes, outputs, declared types), because protobuf promises no
 * order and a name may be used before the node that makes it. A walk is cheap: it touches only the
 * lengths of the fields. Depth of subgraphs and types and number of nodes have limits; everything
 * else is bounded by the size of the file. Source of the field numbers: onnx.proto. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory/account.h"
#include "formats/onnx/model_read.h"
#include "formats/onnx/onnx_reader.h"

/* The most nodes of a graph, far above any real model. The most opsets of a file: each node looks
 * its domain up in the list, so a hostile list would cost time. */
#define NODES_MAX ((size_t)1 << 22)
#define OPSETS_MAX 256
/* Nodes or tensors that are read between two looks whether to stop: far less than a millisecond. */
#define READ_LOOK 256

pith_status pith__onnx_no_memory(pith__onnx_reader *r) {
    return pith__fail_memory(r->source.err, 0);
}

void pith__onnx_walk(pith__wire *w, pith_str bytes, const pith__onnx_reader *r) {
    pith__wire_init(w, bytes, r->source.base, r->source.err);
}

pith_str pith__onnx_find(const pith__onnx_reader *r, pith_str bytes, uint32_t tag) {
    pith__wire w;
    pith__wire_field f;
    pith__wire_init(&w, bytes, r->source.base, NULL);
    while (pith__wire_next(&w, &f))
        if (f.tag == tag) return f.bytes;
    return (pith_str){ "", 0 };
}

static pith_status count_fields(pith__onnx_reader *r, size_t *count, pith_str bytes, uint32_t tag) {
    pith__wire w;
    pith__wire_field f;
    *count = 0;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) *count += f.tag == tag;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_str model_read_plain_domain(pith_str domain) {
    return pith__str_is(domain, "ai.onnx") ? (pith_str){ "", 0 } : domain;
}

static pith_status set_hint(pith__onnx_reader *r, pith__value *value, const pith__type *type) {
    if (value->hint) return PITH_OK;
    value->hint = pith__arena_alloc(r->source.arena, sizeof *type);
    if (!value->hint) return pith__onnx_no_memory(r);
    *value->hint = *type;
    return PITH_OK;
}

/* ---- nodes ---- */

/* A node's head, and how long its lists are. */
typedef struct node_outline {
    pith__node_head head;
    size_t inputs, outputs, attrs;
} node_outline;

static int32_t opset_of(const pith__onnx_reader *r, pith_str domain) {
    for (size_t i = 0; i < r->opset_count; i++)
        if (pith__str_eq(r->opsets[i].domain, domain)) return (int32_t)r->opsets[i].version;
    return 1; /* what a model without the import means */
}

/* The strings of a node and how long its lists are, so that build_node can allocate them once. The
 * domain "ai.onnx" is the same as none. */
static pith_status read_outline(pith__onnx_reader *r, node_outline *h, pith_str bytes,
                                int32_t index) {
    pith__wire w;
    pith__wire_field f;
    *h = (node_outline){ .head = { { "", 0 }, { "", 0 }, { "", 0 }, { "", 0 }, 0, index } };
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_BYTES(1): h->inputs++; break;
        case PITH_WIRE_BYTES(2): h->outputs++; break;
        case PITH_WIRE_BYTES(3): h->head.name = f.bytes; break;
        case PITH_WIRE_BYTES(4): h->head.op_type = f.bytes; break;
        case PITH_WIRE_BYTES(5): h->attrs++; break;
        case PITH_WIRE_BYTES(7): h->head.domain = model_read_plain_domain(f.bytes); break;
        case PITH_WIRE_BYTES(8): h->head.overload = f.bytes; break;
        default: break;
        }
    }
    h->head.opset = opset_of(r, h->head.domain);
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* Only an empty name may be missing. An unknown one is an error at once: ONNX has no other place
 * where it could be defined. */
static pith_status resolve_input(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                                 pith__value **value) {
    PITH_TRY(pith__onnx_resolve(r, s, name, value));
    if (*value) return PITH_OK;
    return pith__fail(r->source.err, PITH_ERR_FORMAT,
                      "input '" PITH_STR_FMT
                      "' is neither the output of a node, nor an input or initializer",
                      PITH_STR_ARG(name));
}

/* Attributes come first, because their subgraphs may capture values of this graph: the captures
 * become further inputs of the node, behind those that it has by name. Outputs were defined by
 * define_node_outputs before any node is built. */
static pith_status build_node(pith__onnx_reader *r, pith__onnx_scope *s, const node_outline *h,
                              pith_str bytes) {
    pith__arena *arena = r->source.arena;
    pith__onnx_subgraphs subs = { 0 };
    pith__wire w;
    pith__wire_field f;
    size_t n = 0;
    if (!h->head.op_type.size)
        return pith__fail(r->source.err, PITH_ERR_FORMAT, "has no operator type");
    if (++r->node_count > NODES_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "more than %zu nodes", NODES_MAX);
    pith__attr *attrs = pith__arena_array(arena, h->attrs, sizeof *attrs);
    if (!attrs) return pith__onnx_no_memory(r);
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(5))
            PITH_TRY(pith__onnx_read_attr(r, &attrs[n++], f.bytes, s, &subs));
    PITH_TRY(pith__onnx_complete_captures(r, &subs));

    size_t captures = subs.owner.count, in = 0, out = 0;
    if (h->inputs + captures > INT32_MAX || h->outputs > INT32_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "too many inputs or outputs");
    pith__value **inputs = pith__arena_array(arena, h->inputs + captures, sizeof *inputs);
    pith__value **outputs = pith__arena_array(arena, h->outputs, sizeof *outputs);
    if (!inputs || !outputs) return pith__onnx_no_memory(r);
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) {
            if (f.bytes.size) PITH_TRY(resolve_input(r, s, f.bytes, &inputs[in]));
            in++;
        } else if (f.tag == PITH_WIRE_BYTES(2)) {
            if (f.bytes.size) PITH_TRY(pith__onnx_resolve(r, s, f.bytes, &outputs[out]));
            out++;
        }
    }
    if (captures) memcpy(inputs + in, subs.owner.captures, captures * sizeof *inputs);
    pith__node *node = pith__graph_add_headed(s->graph, NULL, &h->head, inputs,
                                              (int)(in + captures), outputs, (int)out);
    if (!node) return pith__onnx_no_memory(r);
    node->capture_count = (int32_t)captures;
    node->attrs = attrs;
    node->attr_count = n;
    return PITH_OK;
}

static pith_status model_read_node(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes,
                                   int32_t index) {
    node_outline h;
    PITH_TRY(read_outline(r, &h, bytes, index));
    pith_status status = build_node(r, s, &h, bytes);
    if (!status) return PITH_OK;
    return pith__fail_at(r->source.err, status,
                         "node %d '" PITH_STR_FMT "' (" PITH_STR_FMT "): ", (int)index,
                         PITH_STR_ARG(h.head.name), PITH_STR_ARG(h.head.op_type));
}

/* Values for all outputs of all nodes. tag: of the node field, which differs between graphs and
 * functions. */
static pith_status define_node_outputs(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes,
                                       uint32_t tag) {
    pith__wire w, n;
    pith__wire_field f, g;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        pith__onnx_walk(&n, f.bytes, r);
        while (pith__wire_next(&n, &g)) {
            if (g.tag != PITH_WIRE_BYTES(2) || !g.bytes.size) continue;
            PITH_TRY(pith__onnx_define(r, s, g.bytes,
                                       pith__graph_add_value(s->graph, g.bytes, PITH_VALUE_NODE)));
        }
        if (n.failed) return PITH_ERR_FORMAT;
    }
    return PITH_OK;
}

/* Nodes are read in the order of the file, and then sorted: ONNX demands a topological order, but
 * files without one exist and other runtimes take them. */
static pith_status read_nodes(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes,
                              uint32_t tag) {
    pith__wire w;
    pith__wire_field f;
    int32_t index = 0;
    PITH_TRY(define_node_outputs(r, s, bytes, tag));
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        if (index % READ_LOOK == 0) PITH_TRY(pith__stop_check(r->source.stop, r->source.err));
        PITH_TRY(model_read_node(r, s, f.bytes, index++));
    }
    return pith__graph_sort(s->graph, r->source.err);
}

/* Declared types of inner values. */
static pith_status read_hints(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes,
                              uint32_t tag) {
    pith__wire w;
    pith__wire_field f;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        uint32_t id = pith__map_get(&s->names, pith__onnx_find(r, f.bytes, PITH_WIRE_BYTES(1)));
        if (id == UINT32_MAX || s->graph->values[id]->kind != PITH_VALUE_NODE) continue;
        pith_str name;
        pith__type type;
        PITH_TRY(pith__onnx_read_value_info(r, &name, &type, f.bytes, s->graph));
        PITH_TRY(set_hint(r, s->graph->values[id], &type));
    }
    return PITH_OK;
}

/* ---- graphs ---- */

static pith_status read_initializer(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes) {
    pith_tensor tensor;
    pith_str name = { "", 0 };
    PITH_TRY(pith__onnx_decode_tensor(&tensor, &name, bytes, &r->source));
    if (!name.size) return pith__fail(r->source.err, PITH_ERR_FORMAT, "an initializer has no name");
    return pith__onnx_define(r, s, name, pith__graph_add_const(s->graph, name, &tensor));
}

/* Since IR version 4 an initializer that is also listed as an input is its default. Before, every
 * initializer had to be listed, and counts as a constant only. Declared shapes are hints. */
static pith_status read_input(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes) {
    pith__graph *graph = s->graph;
    pith_str name;
    pith__type type;
    PITH_TRY(pith__onnx_read_value_info(r, &name, &type, bytes, graph));
    if (!name.size) return pith__fail(r->source.err, PITH_ERR_FORMAT, "an input has no name");
    /* Sizes without a name are sizes of their own. */
    if (type.dtype != PITH_SEQUENCE)
        for (int i = 0; i < type.rank; i++) {
            if (type.dims[i] != PITH_DIM_UNKNOWN) continue;
            pith_str symbol =
                pith__arena_printf(r->source.arena, PITH_STR_FMT "_dim%d", PITH_STR_ALL(name), i);
            if (!symbol.data) return pith__onnx_no_memory(r);
            type.dims[i] = pith__dim_symbol(graph->dims, symbol);
            if (type.dims[i] == PITH_DIM_UNKNOWN) return pith__onnx_no_memory(r);
        }
    uint32_t id = pith__map_get(&s->names, name);
    pith__value *value = id == UINT32_MAX ? NULL : graph->values[id];
    if (value && value->kind == PITH_VALUE_CONST) {
        if (r->ir_version < 4) return PITH_OK; /* initializers had to be listed as inputs then */
        value->kind = PITH_VALUE_INPUT;        /* its type stays that of its contents */
        PITH_TRY(set_hint(r, value, &type));
    } else {
        value = pith__graph_add_value(graph, name, PITH_VALUE_INPUT);
        PITH_TRY(pith__onnx_define(r, s, name, value));
        value->type = type;
    }
    graph->inputs[graph->input_count++] = value;
    return PITH_OK;
}

/* The same value may be several outputs, and an input or a constant may be one. */
static pith_status add_output(pith__onnx_reader *r, pith__onnx_scope *s, pith_str name,
                              pith__value **value) {
    PITH_TRY(pith__onnx_resolve(r, s, name, value));
    if (!*value) {
        return pith__fail(r->source.err, PITH_ERR_FORMAT,
                          "output '" PITH_STR_FMT "' is not the output of any node",
                          PITH_STR_ARG(name));
    }
    s->graph->outputs[s->graph->output_count++] = *value;
    (*value)->output_uses++;
    return PITH_OK;
}

static pith_status read_output(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes) {
    pith_str name;
    pith__type type;
    pith__value *value;
    PITH_TRY(pith__onnx_read_value_info(r, &name, &type, bytes, s->graph));
    PITH_TRY(add_output(r, s, name, &value));
    return value->kind == PITH_VALUE_NODE ? set_hint(r, value, &type) : PITH_OK;
}

/* Calls read for every field with the tag. */
static pith_status each_field(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes,
                              uint32_t tag,
                              pith_status (*read)(pith__onnx_reader *r, pith__onnx_scope *s,
                                                  pith_str bytes)) {
    pith__wire w;
    pith__wire_field f;
    size_t index = 0;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        if (index++ % READ_LOOK == 0) PITH_TRY(pith__stop_check(r->source.stop, r->source.err));
        PITH_TRY(read(r, s, f.bytes));
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status refuse_sparse(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes) {
    (void)s;
    pith_str values = pith__onnx_find(r, bytes, PITH_WIRE_BYTES(1)),
             name = pith__onnx_find(r, values, PITH_WIRE_BYTES(8));
    return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED,
                      "sparse initializer '" PITH_STR_FMT "' (sparse tensors are not supported)",
                      PITH_STR_ARG(name));
}

/* Room for as many ports as the message lists. The opsets are those of the model or the function
 * whose body this is. */
static pith_status model_read_make_ports(pith__onnx_reader *r, pith__graph *graph, pith_str bytes,
                                         uint32_t input_tag, uint32_t output_tag) {
    size_t inputs, outputs;
    PITH_TRY(count_fields(r, &inputs, bytes, input_tag));
    PITH_TRY(count_fields(r, &outputs, bytes, output_tag));
    graph->inputs = pith__arena_array(r->source.arena, inputs, sizeof *graph->inputs);
    graph->outputs = pith__arena_array(r->source.arena, outputs, sizeof *graph->outputs);
    graph->opsets = r->opsets;
    graph->opset_count = r->opset_count;
    return graph->inputs && graph->outputs ? PITH_OK : pith__onnx_no_memory(r);
}

/* The order matters: names must be defined before something refers to them, and an input must know
 * whether an initializer has its name. Fields: GraphProto of onnx.proto. */
pith_status pith__onnx_read_graph(pith__onnx_reader *r, pith__onnx_scope *s, pith_str bytes) {
    pith__graph *graph = s->graph;
    if (s->depth > PITH_ONNX_DEPTH_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED, "subgraphs nested more than %d deep",
                          PITH_ONNX_DEPTH_MAX);
    if (pith__map_init(&s->names, r->source.arena, 0)) return pith__onnx_no_memory(r);
    graph->name = pith__onnx_find(r, bytes, PITH_WIRE_BYTES(2));
    PITH_TRY(model_read_make_ports(r, graph, bytes, PITH_WIRE_BYTES(11), PITH_WIRE_BYTES(12)));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(15), refuse_sparse));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(5), read_initializer));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(11), read_input));
    PITH_TRY(read_nodes(r, s, bytes, PITH_WIRE_BYTES(1)));
    PITH_TRY(each_field(r, s, bytes, PITH_WIRE_BYTES(12), read_output));
    return read_hints(r, s, bytes, PITH_WIRE_BYTES(13));
}

/* ---- functions ---- */

/* OperatorSetIdProto: a domain with a version. A domain that is missing means version 1. The
 * version that counts for a node is that of its own model or function. */
static pith_status read_opsets(pith__onnx_reader *r, pith_str bytes, uint32_t tag) {
    size_t count, n = 0;
    PITH_TRY(count_fields(r, &count, bytes, tag));
    if (count > OPSETS_MAX)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED,
                          "imports %zu operator sets, at most %d are supported", count, OPSETS_MAX);
    pith__opset *opsets = pith__arena_array(r->source.arena, count, sizeof *opsets);
    if (!opsets) return pith__onnx_no_memory(r);
    pith__wire w, o;
    pith__wire_field f, g;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != tag) continue;
        pith__opset *opset = &opsets[n++];
        opset->domain = (pith_str){ "", 0 };
        pith__onnx_walk(&o, f.bytes, r);
        while (pith__wire_next(&o, &g)) {
            if (g.tag == PITH_WIRE_BYTES(1)) opset->domain = model_read_plain_domain(g.bytes);
            if (g.tag == PITH_WIRE_VARINT(2)) opset->version = (int64_t)g.value;
        }
        if (o.failed) return PITH_ERR_FORMAT;
        if (opset->version < 1 || opset->version > INT32_MAX)
            return pith__fail(r->source.err, PITH_ERR_FORMAT, "opset version %lld",
                              (long long)opset->version);
    }
    r->opsets = opsets;
    r->opset_count = count;
    return PITH_OK;
}

/* The body's inputs and outputs are mere names. */
static pith_status read_body(pith__onnx_reader *r, pith__function *function, pith__onnx_scope *s,
                             pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith__onnx_subgraphs subs = { 0 };
    pith__value *output;
    if (pith__map_init(&s->names, r->source.arena, 0)) return pith__onnx_no_memory(r);
    PITH_TRY(model_read_make_ports(r, s->graph, bytes, PITH_WIRE_BYTES(4), PITH_WIRE_BYTES(5)));
    size_t names, defaults;
    PITH_TRY(count_fields(r, &names, bytes, PITH_WIRE_BYTES(6)));
    PITH_TRY(count_fields(r, &defaults, bytes, PITH_WIRE_BYTES(11)));
    pith_str *attr_names = pith__arena_array(r->source.arena, names, sizeof *attr_names);
    pith__attr *attrs = pith__arena_array(r->source.arena, defaults, sizeof *attrs);
    if (!attr_names || !attrs) return pith__onnx_no_memory(r);
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(4)) {
            pith__value *input = pith__graph_add_value(s->graph, f.bytes, PITH_VALUE_INPUT);
            PITH_TRY(pith__onnx_define(r, s, f.bytes, input));
            s->graph->inputs[s->graph->input_count++] = input;
        } else if (f.tag == PITH_WIRE_BYTES(6)) {
            attr_names[function->attr_name_count++] = f.bytes;
        } else if (f.tag == PITH_WIRE_BYTES(11)) {
            PITH_TRY(pith__onnx_read_attr(r, &attrs[function->default_count++], f.bytes, s, &subs));
        }
    }
    function->attr_names = attr_names;
    function->defaults = attrs;
    PITH_TRY(pith__onnx_complete_captures(r, &subs));
    if (subs.owner.count)
        return pith__fail(r->source.err, PITH_ERR_UNSUPPORTED,
                          "a default graph that uses outer values");
    PITH_TRY(read_nodes(r, s, bytes, PITH_WIRE_BYTES(7)));
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(5)) PITH_TRY(add_output(r, s, f.bytes, &output));
    return read_hints(r, s, bytes, PITH_WIRE_BYTES(12));
}

/* A body has opsets of its own, which hold while it is read. Its graph has no parent: a function
 * sees no values but its inputs. */
static pith_status read_function(pith__onnx_reader *r, pith__function *function, pith__graph *main,
                                 pith_str bytes) {
    const pith__opset *opsets = r->opsets;
    size_t opset_count = r->opset_count;
    pith__onnx_scope s = { 0 };
    function->name = pith__onnx_find(r, bytes, PITH_WIRE_BYTES(1));
    function->domain = model_read_plain_domain(pith__onnx_find(r, bytes, PITH_WIRE_BYTES(10)));
    function->overload = pith__onnx_find(r, bytes, PITH_WIRE_BYTES(13));
    PITH_TRY(pith__graph_create(&s.graph, r->source.arena, main, r->source.err));
    s.graph->parent = NULL;
    s.graph->name = function->name;
    function->body = s.graph;
    pith_status status = read_opsets(r, bytes, PITH_WIRE_BYTES(9));
    if (!status) status = read_body(r, function, &s, bytes);
    r->opsets = opsets;
    r->opset_count = opset_count;
    if (status)
        return pith__fail_at(r->source.err, status,
                             "function '" PITH_STR_FMT "': ", PITH_STR_ARG(function->name));
    return PITH_OK;
}

/* Functions are kept with the main graph and inlined when operators are bound (engine/ops/shared),
 * so that they may call each other in any order. */
static pith_status read_functions(pith__onnx_reader *r, pith__graph *main, pith_str bytes) {
    size_t count, n = 0;
    PITH_TRY(count_fields(r, &count, bytes, PITH_WIRE_BYTES(25)));
    pith__function *functions = pith__arena_array(r->source.arena, count, sizeof *functions);
    if (!functions) return pith__onnx_no_memory(r);
    pith__wire w;
    pith__wire_field f;
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(25))
            PITH_TRY(read_function(r, &functions[n++], main, f.bytes));
    main->functions = functions;
    main->function_count = n;
    return PITH_OK;
}

/* ---- models ---- */

/* The fields of a ModelProto. Training information, metadata and docs are passed over. A file that
 * is no protobuf at all mostly fails in the first walk, hence the words in front of its error. */
static pith_status model_read_model(pith__onnx_reader *r, pith__graph **graph, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith_str producer = { "", 0 }, version = { "", 0 }, body = { NULL, 0 };
    pith__onnx_scope s = { 0 };
    pith__onnx_walk(&w, bytes, r);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_VARINT(1): r->ir_version = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(2): producer = f.bytes; break;
        case PITH_WIRE_BYTES(3): version = f.bytes; break;
        case PITH_WIRE_BYTES(7): body = f.bytes; break;
        default: break;
        }
    }
    if (w.failed)
        return pith__fail_at(r->source.err, PITH_ERR_FORMAT, "damaged, or not an ONNX file: ");
    if (!body.data || r->ir_version < 1)
        return pith__fail(r->source.err, PITH_ERR_FORMAT,
                          "not an ONNX file: it has no graph or no version");
    PITH_TRY(read_opsets(r, bytes, PITH_WIRE_BYTES(8)));
    PITH_TRY(pith__graph_create(&s.graph, r->source.arena, NULL, r->source.err));
    s.graph->log = r->log;
    s.graph->ir_version = r->ir_version;
    s.graph->producer =
        pith__arena_printf(r->source.arena, PITH_STR_FMT "%s" PITH_STR_FMT, PITH_STR_ALL(producer),
                           version.size ? " " : "", PITH_STR_ALL(version));
    if (!s.graph->producer.data) return pith__onnx_no_memory(r);
    PITH_TRY(pith__onnx_read_graph(r, &s, body));
    PITH_TRY(read_functions(r, s.graph, bytes));
    *graph = s.graph;
    return PITH_OK;
}

pith_status pith__onnx_read(pith__graph **graph, pith_str bytes, const char *external_dir,
                            pith__files *files, pith__arena *arena, const pith_log *log,
                            pith_error *err) {
    pith__onnx_reader r = { .source = { .base = bytes.data,
                                        .arena = arena,
                                        .stop = pith__account_stop(arena->allocator),
                                        .err = err,
                                        .files = files,
                                        .external_dir = external_dir },
                            .log = log };
    return model_read_model(&r, graph, bytes);
}
