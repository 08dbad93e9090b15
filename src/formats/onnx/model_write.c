/* model_write.c - see model_write.h. Format: onnx/onnx.proto.
 *
 * First every value gets a name that is its own in the whole model, and every large constant a
 * place in the data file. Then the messages are walked (formats/onnx/wire_out.h), which only
 * reads. */
#include "formats/onnx/model_write.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory/span_map.h"
#include "formats/onnx/value_write.h"
#include "formats/onnx/wire.h"

enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_DOMAIN = 4,
    MODEL_DOC = 6,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14
};
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_CONSTANT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTR = 5,
    NODE_DOMAIN = 7
};
enum { PORT_NAME = 1, PORT_TYPE = 2 };
enum {
    TYPE_TENSOR = 1,
    TYPE_SEQUENCE = 4,
    TYPE_MAP = 5,
    TYPE_OPTIONAL = 9,
    MAP_KEY = 1,
    MAP_VALUE = 2
};
enum {
    TENSOR_ELEM = 1,
    TENSOR_SHAPE = 2,
    ITEM_TYPE = 1,
    SHAPE_DIM = 1,
    DIM_NUMBER = 1,
    DIM_NAME = 2
};
enum {
    CONSTANT_DIMS = 1,
    CONSTANT_DTYPE = 2,
    CONSTANT_NAME = 8,
    CONSTANT_PLACE = 13,
    CONSTANT_LOCATION = 14
};
enum { PLACE_KEY = 1, PLACE_VALUE = 2, LOCATION_EXTERNAL = 1 };
enum { ATTR_NAME = 1, ATTR_KIND = 20 };

/* The fields of AttributeProto by kind. */
static const uint8_t attr_fields[] = {
    [PITH_ATTR_FLOAT] = 2,   [PITH_ATTR_INT] = 3,     [PITH_ATTR_STRING] = 4,
    [PITH_ATTR_TENSOR] = 5,  [PITH_ATTR_GRAPH] = 6,   [PITH_ATTR_FLOATS] = 7,
    [PITH_ATTR_INTS] = 8,    [PITH_ATTR_STRINGS] = 9, [PITH_ATTR_TENSORS] = 10,
    [PITH_ATTR_GRAPHS] = 11, [PITH_ATTR_TYPE] = 14,
};

/* The constants of a graph that are written. */
typedef struct written_graph {
    const pith__graph *graph;
    pith__value **constants;
    uint64_t *offsets; /* in the data file; UINT64_MAX: in the model */
    size_t count;
} written_graph;

typedef struct model_writer {
    const pith__onnx_model *model;
    pith__arena *arena;
    pith__map names, node_names;
    written_graph *graphs; /* the main graph is the first */
    size_t graph_count, graph_capacity;
    bool apart; /* large constants go to the data file */
    uint64_t data_size;
    size_t made; /* names so far */
    pith_error *err;
} model_writer;

/* ---- names and places ---- */

static bool write_take_name(model_writer *w, pith_str name, bool *new) {
    uint32_t old;
    if (!pith__map_put(&w->names, name, 0, &old)) return false;
    *new = old == UINT32_MAX;
    return true;
}

/* Leaves the value its name, if it has one that no other has. */
static pith_status write_name(model_writer *w, pith__value *v) {
    bool new = false;
    if (v->name.size && !write_take_name(w, v->name, &new)) return pith__fail_memory(w->err, 0);
    while (!new) {
        v->name = pith__arena_printf(w->arena, "v%zu", w->made++);
        if (!v->name.data || !write_take_name(w, v->name, &new))
            return pith__fail_memory(w->err, 0);
    }
    return PITH_OK;
}

/* Engines want node names that are unique too; a repeated one gets a number. */
static pith_status write_name_node(model_writer *w, pith__node *node) {
    const pith_str base = node->name;
    uint32_t old = 0;
    if (!base.size) return PITH_OK;
    for (size_t i = 1; old != UINT32_MAX; i++) {
        if (i > 1)
            node->name =
                pith__arena_printf(w->arena, PITH_STR_FMT "_%zu", PITH_STR_ALL(base), w->made++);
        if (!node->name.data || !pith__map_put(&w->node_names, node->name, 0, &old))
            return pith__fail_memory(w->err, 0);
    }
    return PITH_OK;
}

static bool value_is_used(const pith__value *v) { return v->user_count || v->output_uses; }

/* Puts an Identity between the output and its value, which is no node's or another output's too. */
static pith_status write_separate_output(model_writer *w, pith__graph *graph, size_t i,
                                         pith_str name) {
    pith__value *v = graph->outputs[i];
    pith__node *node = pith__graph_add_node(graph, NULL, "", "Identity", &v, 1, NULL, 1);
    if (!node) return pith__fail_memory(w->err, 0);
    node->outputs[0]->type = v->type;
    node->outputs[0]->name = name;
    node->outputs[0]->output_uses = 1;
    v->output_uses--;
    graph->outputs[i] = node->outputs[0];
    return PITH_OK;
}

/* Outputs of the main graph keep their names, whatever passes did to their values. */
static pith_status write_name_outputs(model_writer *w, pith__graph *graph) {
    for (size_t i = 0; i < graph->output_count; i++) {
        pith_str name = graph->parent ? PITH_STR("") : pith__graph_output_name(graph, i);
        pith__value *v = graph->outputs[i];
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) seen = graph->outputs[k] == v;
        if (v->kind != PITH_VALUE_NODE || seen)
            PITH_TRY(write_separate_output(w, graph, i, name));
        else if (name.size)
            v->name = name;
        if (!graph->parent) PITH_TRY(write_name(w, graph->outputs[i]));
    }
    return PITH_OK;
}

static pith_status write_name_graph(model_writer *w, pith__graph *graph);

/* Captures have the names of the values that they stand for. */
static pith_status write_name_subgraph(model_writer *w, const pith__node *node, pith__graph *sub) {
    const int32_t first = node->input_count - node->capture_count;
    for (size_t i = 0; i < sub->capture_count; i++)
        if (sub->captures[i] && node->inputs[first + (int32_t)i])
            sub->captures[i]->name = node->inputs[first + (int32_t)i]->name;
    return write_name_graph(w, sub);
}

static pith_status write_name_subgraphs(model_writer *w, const pith__node *node) {
    for (size_t a = 0; a < node->attr_count; a++) {
        const pith__attr *attr = &node->attrs[a];
        if (attr->kind == PITH_ATTR_GRAPH) PITH_TRY(write_name_subgraph(w, node, attr->graph));
        if (attr->kind != PITH_ATTR_GRAPHS) continue;
        for (size_t i = 0; i < attr->count; i++)
            PITH_TRY(write_name_subgraph(w, node, attr->graphs[i]));
    }
    return PITH_OK;
}

/* What an optional holds, a tensor or a sequence, is not kept when a file is read. */
static pith_status write_check_ports(const model_writer *w, const pith__graph *graph) {
    for (size_t i = 0; i < graph->input_count + graph->output_count; i++) {
        const bool in = i < graph->input_count;
        const pith__value *v = in ? graph->inputs[i] : graph->outputs[i - graph->input_count];
        if (v->type.dtype != PITH_UNDEFINED && v->type.dtype != PITH_NONE) continue;
        return pith__fail(w->err, PITH_ERR_UNSUPPORTED,
                          "%s '" PITH_STR_FMT
                          "' is an optional or of no known type, and cannot be written",
                          in ? "input" : "output", PITH_STR_ARG(v->name));
    }
    return PITH_OK;
}

static pith_status write_name_graph(model_writer *w, pith__graph *graph) {
    const bool main = !graph->parent;
    if (main)
        for (size_t i = 0; i < graph->input_count; i++) PITH_TRY(write_name(w, graph->inputs[i]));
    PITH_TRY(write_name_outputs(w, graph));
    for (size_t i = 0; i < graph->value_count; i++) {
        pith__value *v = graph->values[i];
        bool named = v->kind == PITH_VALUE_CAPTURE ||
                     (main && (v->kind == PITH_VALUE_INPUT || v->output_uses));
        bool written =
            value_is_used(v) || v->kind == PITH_VALUE_INPUT || (v->producer && v->name.size);
        if (!named && written) PITH_TRY(write_name(w, v));
    }
    for (pith__node *node = graph->first; node; node = node->next) {
        PITH_TRY(write_name_node(w, node));
        if (node->domain.size && pith__str_is(node->domain, "pith"))
            return pith__fail(w->err, PITH_ERR_UNSUPPORTED,
                              "the operator " PITH_STR_FMT " is Pith's own and has no form in ONNX",
                              PITH_STR_ARG(node->op_type));
        PITH_TRY(write_name_subgraphs(w, node));
    }
    return PITH_OK;
}

static pith_status write_place_constant(model_writer *w, written_graph *g, pith__value *v) {
    const pith_tensor *t = v->type.data;
    uint64_t *offset = &g->offsets[g->count];
    if (!t)
        return pith__fail(w->err, PITH_ERR_UNSUPPORTED,
                          "constant '" PITH_STR_FMT
                          "' has no contents: a compiled model cannot be written as ONNX",
                          PITH_STR_ARG(v->name));
    *offset = UINT64_MAX;
    g->constants[g->count++] = v;
    if (!w->apart || t->dtype == PITH_STRING || t->bytes < PITH_ONNX_DATA_LEAST) return PITH_OK;
    *offset = (w->data_size + PITH_ONNX_DATA_ALIGNMENT - 1) / PITH_ONNX_DATA_ALIGNMENT *
              PITH_ONNX_DATA_ALIGNMENT;
    w->data_size = *offset + t->bytes;
    return PITH_OK;
}

static bool value_is_constant(const pith__value *v) {
    if (v->kind == PITH_VALUE_INPUT) return v->type.data != NULL;
    return (v->kind == PITH_VALUE_CONST || v->kind == PITH_VALUE_PACKED) && value_is_used(v);
}

static pith_status write_place_graph(model_writer *w, const pith__graph *graph) {
    void *graphs = w->graphs;
    if (!pith__arena_grow(w->arena, &graphs, w->graph_count, &w->graph_capacity, sizeof *w->graphs))
        return pith__fail_memory(w->err, 0);
    w->graphs = graphs;
    written_graph g = { .graph = graph };
    g.constants = pith__arena_array(w->arena, graph->value_count + 1, sizeof *g.constants);
    g.offsets = pith__arena_array(w->arena, graph->value_count + 1, sizeof *g.offsets);
    if (!g.constants || !g.offsets) return pith__fail_memory(w->err, 0);
    for (size_t i = 0; i < graph->value_count; i++)
        if (value_is_constant(graph->values[i]))
            PITH_TRY(write_place_constant(w, &g, graph->values[i]));
    w->graphs[w->graph_count++] = g;
    for (const pith__node *node = graph->first; node; node = node->next)
        for (size_t a = 0; a < node->attr_count; a++) {
            const pith__attr *attr = &node->attrs[a];
            if (attr->kind == PITH_ATTR_GRAPH) PITH_TRY(write_place_graph(w, attr->graph));
            if (attr->kind == PITH_ATTR_GRAPHS)
                for (size_t i = 0; i < attr->count; i++)
                    PITH_TRY(write_place_graph(w, attr->graphs[i]));
        }
    return PITH_OK;
}

/* ---- messages; each is what `put` writes, and the writer that it needs ---- */

typedef struct put_value {
    const pith__graph *graph;
    const pith__value *value;
    pith_str name;
} put_value;

typedef struct put_graph {
    const model_writer *w;
    const pith__graph *graph;
} put_graph;

typedef struct put_node {
    const model_writer *w;
    const pith__node *node;
} put_node;

typedef struct put_attr {
    const model_writer *w;
    const pith__attr *attr;
} put_attr;

typedef struct put_type {
    const pith__dims *dims;
    const pith__type *type;
    bool item; /* the items of a sequence or optional */
} put_type;

typedef struct put_dim {
    const pith__dims *dims;
    pith__dim dim;
} put_dim;

static void put_text(pith__wire_out *out, int number, pith_str text) {
    if (text.size) pith__wire_put_bytes(out, number, text.data, text.size);
}

static void write_dim(pith__wire_out *out, const void *message) {
    const put_dim *m = message;
    char text[256];
    if (pith__dim_known(m->dim))
        pith__wire_put_varint(out, DIM_NUMBER, (uint64_t)m->dim);
    else if (m->dim != PITH_DIM_UNKNOWN && pith__dim_means(m->dims, m->dim))
        put_text(out, DIM_NAME, pith__str_of(pith__dim_text(m->dims, m->dim, text, sizeof text)));
}

static void write_shape(pith__wire_out *out, const void *message) {
    const put_type *m = message;
    for (int i = 0; i < m->type->rank; i++) {
        put_dim dim = { m->dims, m->type->dims[i] };
        pith__wire_put_message(out, SHAPE_DIM, write_dim, &dim);
    }
}

static void write_tensor_type(pith__wire_out *out, const void *message) {
    const put_type *m = message;
    pith__wire_put_varint(out, TENSOR_ELEM,
                          (uint64_t)(m->item ? m->type->item_dtype : m->type->dtype));
    if (!m->item && m->type->rank >= 0) pith__wire_put_message(out, TENSOR_SHAPE, write_shape, m);
}

static void write_type(pith__wire_out *out, const void *message);

/* Keys, and tensors of f32. */
static void write_map_type(pith__wire_out *out, const void *message) {
    const put_type *m = message;
    const pith__type number = { .dtype = PITH_F32, .rank = -1 };
    pith__wire_put_varint(out, MAP_KEY,
                          m->type->item_dtype == PITH_MAP_I64 ? PITH_I64 : PITH_STRING);
    pith__wire_put_message(out, MAP_VALUE, write_type, &(put_type){ m->dims, &number, false });
}

static bool type_is_of_maps(const pith__type *t) {
    return t->item_dtype == PITH_MAP_I64 || t->item_dtype == PITH_MAP_STRING;
}

static void write_items(pith__wire_out *out, const void *message) {
    put_type item = *(const put_type *)message;
    item.item = true;
    pith__wire_put_message(out, ITEM_TYPE, write_type, &item);
}

static void write_type(pith__wire_out *out, const void *message) {
    const put_type *m = message;
    bool list = !m->item && (m->type->dtype == PITH_SEQUENCE || m->type->dtype == PITH_NONE);
    if (m->item && type_is_of_maps(m->type)) {
        pith__wire_put_message(out, TYPE_MAP, write_map_type, m);
        return;
    }
    if (!list) {
        pith__wire_put_message(out, TYPE_TENSOR, write_tensor_type, m);
        return;
    }
    const int field = m->type->dtype == PITH_SEQUENCE ? TYPE_SEQUENCE : TYPE_OPTIONAL;
    pith__wire_put_message(out, field, write_items, m);
}

static void write_port(pith__wire_out *out, const void *message) {
    const put_value *m = message;
    put_type type = { m->graph->dims, &m->value->type, false };
    put_text(out, PORT_NAME, m->name);
    if (m->value->type.dtype != PITH_UNDEFINED)
        pith__wire_put_message(out, PORT_TYPE, write_type, &type);
}

typedef struct put_place {
    const char *key;
    pith_str value;
} put_place;

static void write_place(pith__wire_out *out, const void *message) {
    const put_place *m = message;
    put_text(out, PLACE_KEY, pith__str_of(m->key));
    put_text(out, PLACE_VALUE, m->value);
}

typedef struct put_constant {
    const model_writer *w;
    const pith__value *value;
    uint64_t offset;
} put_constant;

static void write_constant(pith__wire_out *out, const void *message) {
    const put_constant *m = message;
    const pith_tensor *t = m->value->type.data;
    char numbers[2][24];
    if (m->offset == UINT64_MAX) {
        pith__onnx_put_tensor(out, t, NULL);
        put_text(out, CONSTANT_NAME, m->value->name);
        return;
    }
    for (int i = 0; i < t->rank; i++)
        pith__wire_put_varint(out, CONSTANT_DIMS, (uint64_t)t->dims[i]);
    pith__wire_put_varint(out, CONSTANT_DTYPE, (uint64_t)t->dtype);
    put_text(out, CONSTANT_NAME, m->value->name);
    int a = snprintf(numbers[0], sizeof numbers[0], "%llu", (unsigned long long)m->offset);
    int b = snprintf(numbers[1], sizeof numbers[1], "%zu", t->bytes);
    const put_place places[] = { { "location", pith__str_of(m->w->model->data_name) },
                                 { "offset", { numbers[0], (size_t)a } },
                                 { "length", { numbers[1], (size_t)b } } };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        pith__wire_put_message(out, CONSTANT_PLACE, write_place, &places[i]);
    pith__wire_put_varint(out, CONSTANT_LOCATION, LOCATION_EXTERNAL);
}

static void write_plain_tensor(pith__wire_out *out, const void *message) {
    pith__onnx_put_tensor(out, message, NULL);
}

static void write_graph(pith__wire_out *out, const void *message);

static void write_attr_list(pith__wire_out *out, const put_attr *m, int field) {
    const pith__attr *a = m->attr;
    for (size_t i = 0; i < a->count; i++) {
        switch (a->kind) {
        case PITH_ATTR_FLOATS: pith__wire_put_float(out, field, a->floats[i]); break;
        case PITH_ATTR_INTS: pith__wire_put_varint(out, field, (uint64_t)a->ints[i]); break;
        case PITH_ATTR_STRINGS:
            pith__wire_put_bytes(out, field, a->strings[i].data, a->strings[i].size);
            break;
        case PITH_ATTR_TENSORS:
            pith__wire_put_message(out, field, write_plain_tensor, a->tensors[i]);
            break;
        default:
            pith__wire_put_message(out, field, write_graph, &(put_graph){ m->w, a->graphs[i] });
            break;
        }
    }
}

static void write_attr(pith__wire_out *out, const void *message) {
    const put_attr *m = message;
    const pith__attr *a = m->attr;
    const int field = attr_fields[a->kind];
    put_text(out, ATTR_NAME, a->name);
    pith__wire_put_varint(out, ATTR_KIND, (uint64_t)a->kind);
    switch (a->kind) {
    case PITH_ATTR_FLOAT: pith__wire_put_float(out, field, a->real); break;
    case PITH_ATTR_INT: pith__wire_put_varint(out, field, (uint64_t)a->integer); break;
    case PITH_ATTR_STRING: pith__wire_put_bytes(out, field, a->string.data, a->string.size); break;
    case PITH_ATTR_TENSOR: pith__wire_put_message(out, field, write_plain_tensor, a->tensor); break;
    case PITH_ATTR_GRAPH:
        pith__wire_put_message(out, field, write_graph, &(put_graph){ m->w, a->graph });
        break;
    case PITH_ATTR_TYPE:
        pith__wire_put_message(out, field, write_type,
                               &(put_type){ m->w->model->graph->dims, a->type, false });
        break;
    default: write_attr_list(out, m, field); break;
    }
}

/* "" stands for what is absent; at the end it is left out. */
static void write_ports(pith__wire_out *out, int field, pith__value *const *ports, int count) {
    while (count && !ports[count - 1]) count--;
    for (int i = 0; i < count; i++)
        pith__wire_put_bytes(out, field, ports[i] ? ports[i]->name.data : "",
                             ports[i] ? ports[i]->name.size : 0);
}

static void write_node(pith__wire_out *out, const void *message) {
    const put_node *m = message;
    const pith__node *node = m->node;
    write_ports(out, NODE_INPUT, node->inputs, node->input_count - node->capture_count);
    write_ports(out, NODE_OUTPUT, node->outputs, node->output_count);
    put_text(out, NODE_NAME, node->name);
    put_text(out, NODE_OP, node->op_type);
    put_text(out, NODE_DOMAIN, node->domain);
    for (size_t i = 0; i < node->attr_count; i++)
        pith__wire_put_message(out, NODE_ATTR, write_attr, &(put_attr){ m->w, &node->attrs[i] });
}

static void write_graph(pith__wire_out *out, const void *message) {
    const put_graph *m = message;
    const pith__graph *graph = m->graph;
    const written_graph *constants = m->w->graphs;
    while (constants->graph != graph) constants++;
    for (const pith__node *node = graph->first; node; node = node->next)
        pith__wire_put_message(out, GRAPH_NODE, write_node, &(put_node){ m->w, node });
    put_text(out, GRAPH_NAME, graph->name.size ? graph->name : PITH_STR("graph"));
    for (size_t i = 0; i < constants->count; i++) {
        put_constant constant = { m->w, constants->constants[i], constants->offsets[i] };
        pith__wire_put_message(out, GRAPH_CONSTANT, write_constant, &constant);
    }
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith__value *v = graph->inputs[i];
        pith__wire_put_message(out, GRAPH_INPUT, write_port, &(put_value){ graph, v, v->name });
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        const pith__value *v = graph->outputs[i];
        pith__wire_put_message(out, GRAPH_OUTPUT, write_port, &(put_value){ graph, v, v->name });
    }
}

static void write_opset(pith__wire_out *out, const void *message) {
    const pith__opset *opset = message;
    put_text(out, OPSET_DOMAIN, opset->domain);
    pith__wire_put_varint(out, OPSET_VERSION, (uint64_t)opset->version);
}

/* The fields of m->about with numbers in this range. */
static void put_about(pith__wire_out *out, const pith__onnx_model *m, uint32_t first,
                      uint32_t last) {
    pith__wire w;
    pith__wire_field f;
    if (!m->about.data) return;
    pith__wire_init(&w, m->about, m->about.data, NULL);
    while (pith__wire_next(&w, &f)) {
        const uint32_t number = f.tag >> 3;
        if (number < first || number > last) continue;
        if (f.tag == PITH_WIRE_VARINT(number))
            pith__wire_put_varint(out, (int)number, f.value);
        else if (f.tag == PITH_WIRE_BYTES(number))
            pith__wire_put_bytes(out, (int)number, f.bytes.data, f.bytes.size);
    }
}

static bool about_has_producer(const pith__onnx_model *m) {
    pith__wire w;
    pith__wire_field f;
    if (!m->about.data) return false;
    pith__wire_init(&w, m->about, m->about.data, NULL);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(MODEL_PRODUCER) && f.bytes.size) return true;
    return false;
}

static void write_model(pith__wire_out *out, const model_writer *w) {
    const pith__onnx_model *m = w->model;
    const bool known = about_has_producer(m);
    pith__wire_put_varint(out, MODEL_IR, (uint64_t)m->ir_version);
    if (!known && m->producer) put_text(out, MODEL_PRODUCER, pith__str_of(m->producer));
    if (!known && m->producer_version)
        put_text(out, MODEL_PRODUCER_VERSION, pith__str_of(m->producer_version));
    put_about(out, m, known ? MODEL_PRODUCER : MODEL_DOMAIN, MODEL_DOC);
    pith__wire_put_message(out, MODEL_GRAPH, write_graph, &(put_graph){ w, m->graph });
    for (size_t i = 0; i < m->opset_count; i++)
        pith__wire_put_message(out, MODEL_OPSET, write_opset, &m->opsets[i]);
    put_about(out, m, MODEL_METADATA, MODEL_METADATA);
}

/* ---- files ---- */

/* To be asked first: what was stopped is not whole. */
static pith_status file_status(const pith__out *f, pith__stop *stop, pith_error *err) {
    PITH_TRY(pith__stop_check(stop, err));
    return pith__out_status(f, "the file", err);
}

/* out: what the other file is written by, with the bytes so far. */
static pith_status file_put_data(const model_writer *w, const pith_writer *writer, pith__out *out) {
    static const char zeros[PITH_ONNX_DATA_ALIGNMENT];
    pith__out file = *out;
    file.writer = writer;
    uint64_t at = 0;
    PITH_TRY(pith__writer_check(writer, w->err));
    pith__out_begin(&file, w->data_size);
    for (size_t g = 0; g < w->graph_count; g++)
        for (size_t i = 0; i < w->graphs[g].count; i++) {
            const pith_tensor *t = w->graphs[g].constants[i]->type.data;
            const uint64_t offset = w->graphs[g].offsets[i];
            if (offset == UINT64_MAX) continue;
            PITH_TRY(file_status(&file, file.stop, w->err));
            if (offset > at) pith__out_put(&file, zeros, (size_t)(offset - at));
            pith__out_put(&file, t->data, t->bytes);
            at = offset + t->bytes;
        }
    out->done = file.done;
    return file_status(&file, file.stop, w->err);
}

pith_status pith__onnx_write_model(const pith__onnx_model *model, const pith__onnx_sinks *sinks,
                                   pith__arena *arena, pith_error *err) {
    model_writer w = { .model = model, .arena = arena, .err = err };
    pith__wire_out counted = { NULL, NULL, 0 };
    if (pith__map_init(&w.names, arena, model->graph->value_count) ||
        pith__map_init(&w.node_names, arena, model->graph->node_count))
        return pith__fail_memory(err, 0);
    PITH_TRY(write_check_ports(&w, model->graph));
    PITH_TRY(write_name_graph(&w, model->graph));
    w.apart = model->data_name && model->data_always;
    PITH_TRY(write_place_graph(&w, model->graph));
    write_model(&counted, &w);
    if (counted.size > PITH_ONNX_FILE_MOST && model->data_name && !w.apart) {
        w.apart = true;
        w.graph_count = 0;
        counted.size = 0;
        PITH_TRY(write_place_graph(&w, model->graph));
        write_model(&counted, &w);
    }
    if (counted.size > PITH_ONNX_FILE_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model has %zu bytes; a file of ONNX may have 2 GB, so give it a "
                          "second file for its "
                          "weights (external data)",
                          counted.size);
    pith__stop *stop = pith__graph_stop(model->graph);
    pith__out file = { .writer = sinks->model,
                       .stop = stop,
                       .told = pith__graph_told(model->graph),
                       .total = w.data_size + counted.size };
    pith__wire_out out = { &file, stop, 0 };
    PITH_TRY(pith__writer_check(sinks->model, err));
    if (sinks->sizes) *sinks->sizes = (pith__onnx_sizes){ counted.size, w.data_size };
    if (w.data_size) PITH_TRY(file_put_data(&w, sinks->data, &file));
    pith__out_begin(&file, counted.size);
    write_model(&out, &w);
    return file_status(&file, stop, err);
}
