/* graph_read.c - bytes to a graph, the mirror of graph_write.c.
 *
 * Numbers are checked one by one as they are read. pith__graph_check then checks what they mean
 * together: order, producers, captures. Strings and tensors stay spans of the file. */
#include "base/dtype.h"
#include "base/error.h"
#include "formats/compiled/graph_bytes.h"

#define NONE UINT32_MAX

/* How deep subgraphs may be nested, and sequences in sequences. It bounds recursion, far above what
 * models have. */
enum { DEPTH_MAX = 32 };

typedef struct reader {
    pith__bytes_in *in;
    const pith__constant_spans_in *weights;
    pith__arena *arena;
} reader;

static pith_status graph_read_out_of_memory(reader *r) {
    return r->in->status = pith__fail_memory(r->in->err, 0);
}

/* count things of size bytes, of which each has at least item_bytes in the file; NULL if anything
 * failed. */
static void *graph_read_array(reader *r, size_t *count, size_t item_bytes, size_t size) {
    *count = pith__get_count(r->in, item_bytes);
    void *array = r->in->status ? NULL : pith__arena_array(r->arena, *count, size);
    if (!array && !r->in->status) graph_read_out_of_memory(r);
    return array;
}

/* ---- types and tensors ---- */

/* A size is a number, a symbol by its name, or unknown. The same name is the same symbol. */
void pith__type_read(pith__type *type, pith__bytes_in *in, pith__dims *dims) {
    enum { UNKNOWN, NUMBER, SYMBOL, KINDS };
    pith__type_init(type);
    type->dtype = (int32_t)pith__get_below(in, PITH_NONE + 1, "an unknown dtype");
    type->item_dtype = (int32_t)pith__get_below(in, PITH_MAP_STRING + 1, "an unknown dtype");
    type->rank = (int32_t)pith__get_below(in, PITH_MAX_RANK + 2, "an impossible rank") - 1;
    for (int i = 0; i < type->rank; i++) {
        uint32_t kind = pith__get_below(in, KINDS, "an unknown kind of size");
        type->dims[i] = PITH_DIM_UNKNOWN;
        if (kind == NUMBER) type->dims[i] = pith__get_i64(in);
        if (kind == NUMBER && type->dims[i] < 0) pith__bytes_fail(in, "a negative size");
        if (kind != SYMBOL) continue;
        pith_str name = pith__get_str(in);
        if (in->status) return;
        type->dims[i] = pith__dim_symbol(dims, name);
        if (type->dims[i] == PITH_DIM_UNKNOWN) in->status = pith__fail_memory(in->err, name.size);
    }
}

/* Each string takes at least the 4 bytes of its length in the file, which bounds the memory for the
 * list before it is allocated. */
static void read_strings(reader *r, pith_tensor *t, int64_t count) {
    if ((uint64_t)count > (r->in->bytes.size - r->in->at) / 4) {
        pith__bytes_fail(r->in, "more strings than the section has room for");
        return;
    }
    pith_str *strings = pith__arena_array(r->arena, (size_t)count, sizeof *strings);
    if (!strings) {
        graph_read_out_of_memory(r);
        return;
    }
    for (int64_t i = 0; i < count; i++) strings[i] = pith__get_str(r->in);
    t->data = strings;
}

static void graph_read_tensor(reader *r, pith_tensor *t, int depth);

/* The same for the items of a sequence, each of which has at least a dtype and a rank. Items must
 * be tensors of numbers or strings. */
static void graph_read_items(reader *r, pith_tensor *t, int64_t count, int depth) {
    if ((uint64_t)count > (r->in->bytes.size - r->in->at) / 8 || depth == DEPTH_MAX) {
        pith__bytes_fail(r->in, "a sequence of more items than the section has room for");
        return;
    }
    pith_tensor *items = pith__arena_array(r->arena, (size_t)count, sizeof *items);
    if (!items) graph_read_out_of_memory(r);
    for (int64_t i = 0; i < count; i++) {
        if (r->in->status) break;
        graph_read_tensor(r, &items[i], depth + 1);
        if (items[i].dtype >= PITH_DTYPE_COUNT)
            pith__bytes_fail(r->in, "a sequence item that is not a tensor");
    }
    t->data = items;
    t->bytes = (size_t)count * sizeof *items;
}

/* Reads a tensor's dtype and shape; its contents are a span of the weights' section by number, and
 * must have just the bytes that the shape needs. data of the tensor is the file's: read-only, never
 * copied. Strings and items of sequences stand in line. */
static void graph_read_tensor(reader *r, pith_tensor *t, int depth) {
    pith__bytes_in *in = r->in;
    *t = (pith_tensor){ .dtype = (int32_t)pith__get_below(in, PITH_NONE + 1, "an unknown dtype"),
                        .rank =
                            (int32_t)pith__get_below(in, PITH_MAX_RANK + 1, "an impossible rank") };
    for (int i = 0; i < t->rank; i++) t->dims[i] = pith__get_i64(in);
    int64_t count = pith__dims_count(t->dims, t->rank);
    if (in->status || t->dtype == PITH_NONE) return;
    if (t->dtype == PITH_SEQUENCE) {
        if (t->rank != 1 || count < 0)
            pith__bytes_fail(in, "a sequence with an impossible shape");
        else
            graph_read_items(r, t, count, depth);
    } else if (!pith__dtype_bytes(t->dtype, count, &t->bytes)) {
        pith__bytes_fail(in, "a tensor with an impossible shape");
    } else if (t->dtype == PITH_STRING) {
        read_strings(r, t, count);
    } else {
        uint32_t number = pith__get_below(in, (uint32_t)r->weights->count,
                                          "a reference to weights that do not exist");
        if (in->status) return;
        pith_str span = pith__constant_spans_get(r->weights, number);
        if (span.size != t->bytes)
            pith__bytes_fail(in, "a tensor whose shape does not fit its bytes");
        t->data = (void *)(uintptr_t)span.data;
    }
}

static const pith_tensor *graph_read_new_tensor(reader *r) {
    pith_tensor *t = pith__arena_alloc(r->arena, sizeof *t);
    if (!t) {
        graph_read_out_of_memory(r);
        return NULL;
    }
    graph_read_tensor(r, t, 0);
    return t;
}

/* ---- values ---- */

static void check_packed(reader *r, const pith__type *type) {
    size_t bytes;
    if (!pith__type_concrete(type) ||
        !pith__dtype_bytes(type->dtype, pith__type_count(type), &bytes))
        pith__bytes_fail(r->in, "a packed constant without a shape");
}

/* The type is what the model's file declares: that of an input of the main graph is a hint, as in
 * any graph that was read, unless it is fixed. */
static void graph_read_input(reader *r, pith__graph *graph, pith__value *v) {
    pith__type_read(&v->type, r->in, graph->dims);
    const uint32_t flags = pith__get_below(r->in, 4, "flags other than 0 to 3");
    if (r->in->status) return;
    v->fixed = flags & 2;
    if (flags & 1) {
        v->type.data = graph_read_new_tensor(r);
    } else if (!graph->parent) {
        v->hint = pith__arena_alloc(r->arena, sizeof *v->hint);
        if (v->hint)
            *v->hint = v->type;
        else
            graph_read_out_of_memory(r);
    }
}

/* A constant that is packed has a type and no contents; its packed form is in the nodes that read
 * it. The order of kinds is checked here, since pith__graph_read takes the first values for inputs
 * and captures by their number alone. */
static void graph_read_value(reader *r, pith__graph *graph) {
    pith__bytes_in *in = r->in;
    pith__value_kind kind =
        (pith__value_kind)pith__get_below(in, PITH_VALUE_PACKED + 1, "an unknown kind of value");
    pith_str name = pith__get_str(in);
    if (in->status) return;
    pith__value *v = pith__graph_add_value(graph, name, kind);
    if (!v) {
        graph_read_out_of_memory(r);
        return;
    }
    bool first = kind == PITH_VALUE_INPUT || kind == PITH_VALUE_CAPTURE, late = v->id > 0 && first;
    if (late && graph->values[v->id - 1]->kind > kind)
        pith__bytes_fail(in, "inputs and captures out of order");
    if (kind == PITH_VALUE_INPUT) {
        graph->input_count++;
        graph_read_input(r, graph, v);
    } else if (kind == PITH_VALUE_CAPTURE) {
        graph->capture_count++;
    } else if (kind == PITH_VALUE_PACKED) {
        pith__type_read(&v->type, in, graph->dims);
        if (!in->status) check_packed(r, &v->type);
    } else if (kind == PITH_VALUE_CONST) {
        const pith_tensor *t = graph_read_new_tensor(r);
        if (!in->status) pith__type_of_tensor(&v->type, t);
    }
}

/* Inputs and captures are the first values. An input's type.data is its default: its type then is
 * that of the default. */
static void read_values(reader *r, pith__graph *graph) {
    size_t count = pith__get_count(r->in, 8);
    for (size_t i = 0; i < count; i++) {
        if (r->in->status) break;
        graph_read_value(r, graph);
    }
    if (r->in->status) return;
    for (size_t i = 0; i < graph->input_count; i++)
        if (graph->values[i]->type.data)
            pith__type_of_tensor(&graph->values[i]->type, graph->values[i]->type.data);
    graph->inputs = pith__arena_array(r->arena, graph->input_count, sizeof *graph->inputs);
    graph->captures = pith__arena_array(r->arena, graph->capture_count, sizeof *graph->captures);
    if (!graph->inputs || !graph->captures) {
        graph_read_out_of_memory(r);
        return;
    }
    for (size_t i = 0; i < graph->input_count; i++) graph->inputs[i] = graph->values[i];
    for (size_t i = 0; i < graph->capture_count; i++)
        graph->captures[i] = graph->values[graph->input_count + i];
}

/* ---- nodes ---- */

static pith__graph *read_graph(reader *r, pith__graph *parent, int depth);

static void graph_read_floats(reader *r, float *floats, size_t count) {
    const void *bytes = pith__get_bytes(r->in, count * sizeof *floats);
    if (bytes && count) memcpy(floats, bytes, count * sizeof *floats);
}

/* The items of a list attribute. A count is compared with what is left of the section for the
 * smallest item of its kind before memory is taken. */
static void graph_read_list(reader *r, pith__attr *attr) {
    pith__bytes_in *in = r->in;
    if (attr->kind == PITH_ATTR_FLOATS) {
        float *floats = graph_read_array(r, &attr->count, sizeof *floats, sizeof *floats);
        if (floats) graph_read_floats(r, floats, attr->count);
        attr->floats = floats;
    } else if (attr->kind == PITH_ATTR_INTS) {
        int64_t *ints = graph_read_array(r, &attr->count, sizeof *ints, sizeof *ints);
        if (ints)
            for (size_t i = 0; i < attr->count; i++) ints[i] = pith__get_i64(in);
        attr->ints = ints;
    } else if (attr->kind == PITH_ATTR_STRINGS) {
        pith_str *strings = graph_read_array(r, &attr->count, 4, sizeof *strings);
        if (strings)
            for (size_t i = 0; i < attr->count; i++) strings[i] = pith__get_str(in);
        attr->strings = strings;
    } else {
        const pith_tensor **tensors = graph_read_array(r, &attr->count, 8, sizeof *tensors);
        if (tensors)
            for (size_t i = 0; i < attr->count; i++) {
                if (in->status) break;
                tensors[i] = graph_read_new_tensor(r);
            }
        attr->tensors = tensors;
    }
}

static void read_type_attr(reader *r, pith__attr *attr, pith__graph *graph) {
    pith__type *type = pith__arena_alloc(r->arena, sizeof *type);
    if (type)
        pith__type_read(type, r->in, graph->dims);
    else
        graph_read_out_of_memory(r);
    attr->type = type;
}

/* Attributes that refer to those of a function are gone by the time a graph is compiled, as are
 * lists of graphs, which writing refuses. */
static void read_attr(reader *r, pith__attr *attr, pith__graph *graph, int depth) {
    pith__bytes_in *in = r->in;
    attr->name = pith__get_str(in);
    attr->reference = (pith_str){ "", 0 };
    attr->kind =
        (pith__attr_kind)pith__get_below(in, PITH_ATTR_TYPE + 1, "an unknown kind of attribute");
    if (in->status) return;
    switch (attr->kind) {
    case PITH_ATTR_FLOAT: graph_read_floats(r, &attr->real, 1); break;
    case PITH_ATTR_INT: attr->integer = pith__get_i64(in); break;
    case PITH_ATTR_STRING: attr->string = pith__get_str(in); break;
    case PITH_ATTR_TENSOR: attr->tensor = graph_read_new_tensor(r); break;
    case PITH_ATTR_GRAPH: attr->graph = read_graph(r, graph, depth + 1); break;
    case PITH_ATTR_TYPE: read_type_attr(r, attr, graph); break;
    case PITH_ATTR_FLOATS:
    case PITH_ATTR_INTS:
    case PITH_ATTR_STRINGS:
    case PITH_ATTR_TENSORS: graph_read_list(r, attr); break;
    default: pith__bytes_fail(in, "an unknown kind of attribute"); break;
    }
}

/* Reads the inputs or outputs of a node as numbers of values. A value may be the output of one node
 * only. made: by value, those that are a node's output; NULL for inputs. */
static pith__value **read_uses(reader *r, size_t *count, const pith__graph *graph, bool *made) {
    pith__value **uses = graph_read_array(r, count, 4, sizeof *uses);
    if (uses)
        for (size_t i = 0; i < *count; i++) {
            if (r->in->status) break;
            uint32_t number = pith__get_u32(r->in);
            if (number == NONE || r->in->status) continue;
            bool good = number < graph->value_count;
            if (good && made) {
                good = graph->values[number]->kind == PITH_VALUE_NODE && !made[number];
                made[number] = true;
            }
            if (good)
                uses[i] = graph->values[number];
            else
                pith__bytes_fail(r->in, made ? "an output that its node cannot make"
                                             : "a reference to a value that does not exist");
        }
    if (!r->in->status && *count > INT32_MAX / 2)
        pith__bytes_fail(r->in, "a node with too many inputs or outputs");
    return uses;
}

/* A layout goes by its name, which the planner compares with the one that a kernel wants. */
static void read_packed(reader *r, pith__node *node) {
    pith__packed *packed = graph_read_array(r, &node->packed_count, 8, sizeof *packed);
    if (packed)
        for (size_t i = 0; i < node->packed_count; i++) {
            packed[i].layout = pith__get_str(r->in);
            uint32_t number = pith__get_below(r->in, (uint32_t)r->weights->count,
                                              "a reference to weights that do not exist");
            if (r->in->status) return;
            pith_str span = pith__constant_spans_get(r->weights, number);
            packed[i].data = span.data;
            packed[i].bytes = span.size;
        }
    node->packed = packed;
}

/* Inputs may be any values of the graph, as pith__graph_check looks at their order later; outputs
 * must be values that no other node has made yet. */
static void graph_read_node(reader *r, pith__graph *graph, bool *made, int depth) {
    pith__bytes_in *in = r->in;
    size_t input_count, output_count;
    pith__node_head head = { .overload = PITH_STR("") };
    head.domain = pith__get_str(in);
    head.op_type = pith__get_str(in);
    head.name = pith__get_str(in);
    head.opset = (int32_t)pith__get_u32(in);
    head.index = (int32_t)pith__get_u32(in);
    pith__value **inputs = read_uses(r, &input_count, graph, NULL);
    pith__value **outputs = read_uses(r, &output_count, graph, made);
    if (in->status) return;
    pith__node *node = pith__graph_add_headed(graph, NULL, &head, inputs, (int)input_count, outputs,
                                              (int)output_count);
    if (!node) {
        graph_read_out_of_memory(r);
        return;
    }
    node->capture_count =
        (int32_t)pith__get_below(in, (uint32_t)input_count + 1, "more captures than inputs");
    node->attrs = graph_read_array(r, &node->attr_count, 8, sizeof *node->attrs);
    for (size_t i = 0; i < node->attr_count; i++) {
        if (in->status) break;
        read_attr(r, &node->attrs[i], graph, depth);
    }
    if (!in->status) read_packed(r, node);
}

/* ---- graphs ---- */

/* Outputs are values by number, with the name that callers see, which may differ from that of the
 * value. */
static void read_outputs(reader *r, pith__graph *graph) {
    graph->outputs = graph_read_array(r, &graph->output_count, 8, sizeof *graph->outputs);
    pith_str *names = pith__arena_array(r->arena, graph->output_count, sizeof *names);
    if (!names) graph_read_out_of_memory(r);
    for (size_t i = 0; i < graph->output_count; i++) {
        if (r->in->status) return;
        uint32_t number = pith__get_below(r->in, (uint32_t)graph->value_count,
                                          "a reference to a value that does not exist");
        names[i] = pith__get_str(r->in);
        if (r->in->status) return;
        graph->outputs[i] = graph->values[number];
        graph->outputs[i]->output_uses++;
        if (graph->outputs[i]->kind == PITH_VALUE_PACKED)
            pith__bytes_fail(r->in, "a graph output without contents");
    }
    graph->output_names = names;
}

/* Values first, then nodes that refer to them by number, then outputs. Memory for a list is asked
 * for only if the rest of the file can hold as many entries (pith__get_count), so a damaged count
 * costs nothing. depth bounds the recursion through subgraphs. */
static pith__graph *read_graph(reader *r, pith__graph *parent, int depth) {
    pith__graph *graph;
    if (depth > DEPTH_MAX) {
        pith__bytes_fail(r->in, "subgraphs that are nested too deep");
        return NULL;
    }
    if (pith__graph_create(&graph, r->arena, parent, r->in->err)) {
        r->in->status = PITH_ERR_MEMORY;
        return NULL;
    }
    graph->name = pith__get_str(r->in);
    read_values(r, graph);
    bool *made = pith__arena_array(r->arena, graph->value_count, sizeof *made);
    if (!made) graph_read_out_of_memory(r);
    size_t nodes = r->in->status ? 0 : pith__get_count(r->in, 32);
    for (size_t i = 0; i < nodes; i++) {
        if (r->in->status) break;
        graph_read_node(r, graph, made, depth);
    }
    if (!r->in->status) read_outputs(r, graph);
    return r->in->status ? NULL : graph;
}

pith_status pith__graph_read(pith__graph **graph, pith__bytes_in *in,
                             const pith__constant_spans_in *weights, pith__arena *arena,
                             const pith_log *log) {
    reader r = { in, weights, arena };
    pith_str producer = pith__get_str(in);
    int64_t ir_version = pith__get_i64(in);
    size_t opset_count;
    pith__opset *opsets = graph_read_array(&r, &opset_count, 12, sizeof *opsets);
    if (opsets)
        for (size_t i = 0; i < opset_count; i++) {
            opsets[i].domain = pith__get_str(in);
            opsets[i].version = pith__get_i64(in);
        }
    pith__graph *read = in->status ? NULL : read_graph(&r, NULL, 0);
    PITH_TRY(pith__bytes_end(in));
    read->log = log;
    read->producer = producer;
    read->ir_version = ir_version;
    read->compiled = true;
    read->opsets = opsets;
    read->opset_count = opset_count;
    pith_status status = pith__graph_check(read, in->err);
    if (status) return pith__fail_at(in->err, status, "%s: ", in->what);
    *graph = read;
    return PITH_OK;
}
