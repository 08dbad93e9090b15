/* graph_write.c - a planned graph to bytes. graph_bytes.h says what is left out. The functions here
 * define the layout, and graph_read.c mirrors them one by one. */
#include "base/dtype.h"
#include "base/error.h"
#include "formats/compiled/graph_bytes.h"

#define NONE UINT32_MAX

typedef struct writer {
    pith__bytes_out *out;
    pith__constant_spans_out *weights;
    pith_error *err;
} writer;

/* A graph while it is written. */
typedef struct scope {
    const pith__graph *graph;
    const pith__plan *plan;
    uint32_t *number;      /* by value id: in the file; NONE: it is not used */
    uint32_t *packed_uses; /* by value id: how many readers have it packed */
    const pith__value **values;
    uint32_t count;
} scope;

/* ---- types and tensors ---- */

/* See pith__type_read. The numbers of the kinds are part of the format. */
void pith__type_write(pith__bytes_out *out, const pith__dims *dims, const pith__type *type) {
    enum { UNKNOWN, NUMBER, SYMBOL };
    pith__put_u32(out, (uint32_t)type->dtype);
    pith__put_u32(out, (uint32_t)type->item_dtype);
    pith__put_u32(out, (uint32_t)(type->rank + 1));
    for (int i = 0; i < type->rank; i++) {
        int32_t symbol = pith__dim_symbol_index(dims, type->dims[i]);
        uint32_t form = symbol >= 0 ? SYMBOL : UNKNOWN;
        if (pith__dim_known(type->dims[i])) form = NUMBER;
        pith__put_u32(out, form);
        if (form == NUMBER) pith__put_i64(out, type->dims[i]);
        if (symbol >= 0) pith__put_str(out, pith__dims_symbol_name(dims, symbol));
    }
}

/* Shape first, then the contents: strings and items of sequences where they are, numbers as a span
 * of the section "weights", which stores equal ones once. */
static pith_status write_tensor(writer *w, const pith_tensor *t) {
    uint32_t number;
    pith__put_u32(w->out, (uint32_t)t->dtype);
    pith__put_u32(w->out, (uint32_t)t->rank);
    for (int i = 0; i < t->rank; i++) pith__put_i64(w->out, t->dims[i]);
    if (t->dtype == PITH_STRING) {
        const pith_str *strings = t->data;
        for (int64_t i = 0; i < pith__dims_count(t->dims, t->rank); i++)
            pith__put_str(w->out, strings[i]);
    } else if (t->dtype == PITH_SEQUENCE) {
        const pith_tensor *items = t->data;
        for (int64_t i = 0; i < t->dims[0]; i++) PITH_TRY(write_tensor(w, &items[i]));
    } else if (t->dtype != PITH_NONE) {
        PITH_TRY(pith__constant_spans_add(&number, w->weights, t->data, t->bytes, w->err));
        pith__put_u32(w->out, number);
    }
    return PITH_OK;
}

/* ---- values ---- */

/* Whether all readers of the constant have it packed, so that the plain contents need not be in the
 * file. An output of the graph is read by the caller, who wants it plain. */
static bool is_packed(const scope *s, const pith__value *v) {
    if (v->kind == PITH_VALUE_PACKED) return true;
    return v->kind == PITH_VALUE_CONST && v->user_count && !v->output_uses &&
           s->packed_uses[v->id] == v->user_count;
}

static void count_packed_uses(scope *s) {
    if (!s->plan) return;
    for (size_t i = 0; i < s->plan->packed_count; i++) {
        const pith__packed_step *step = &s->plan->packed[i];
        for (int n = 0; n < step->node->input_count && n < 32; n++)
            if (step->pack.inputs >> n & 1) s->packed_uses[step->node->inputs[n]->id]++;
    }
}

static void use(scope *s, const pith__value *v) {
    if (!v || s->number[v->id] != NONE) return;
    s->number[v->id] = s->count;
    s->values[s->count++] = v;
}

/* Inputs come first, then captures, then the others as they are met. */
static void number_values(scope *s) {
    const pith__graph *g = s->graph;
    for (size_t i = 0; i < g->input_count; i++) use(s, g->inputs[i]);
    for (size_t i = 0; i < g->capture_count; i++) use(s, g->captures[i]);
    for (const pith__node *node = g->first; node; node = node->next) {
        for (int i = 0; i < node->input_count; i++) use(s, node->inputs[i]);
        for (int i = 0; i < node->output_count; i++) use(s, node->outputs[i]);
    }
    for (size_t i = 0; i < g->output_count; i++) use(s, g->outputs[i]);
}

/* An input of the main graph is written with the type that its file declares: opening a compiled
 * model checks the caller's shapes as opening the original does. */
static pith_status write_value(writer *w, const scope *s, const pith__value *v) {
    bool packed = is_packed(s, v);
    pith__put_u32(w->out, packed ? PITH_VALUE_PACKED : v->kind);
    pith__put_str(w->out, v->name);
    if (packed) {
        pith__type_write(w->out, s->graph->dims, &v->type);
    } else if (v->kind == PITH_VALUE_CONST) {
        return write_tensor(w, v->type.data);
    } else if (v->kind == PITH_VALUE_INPUT) {
        pith__type_write(w->out, s->graph->dims, v->hint ? v->hint : &v->type);
        pith__put_u32(w->out, (v->type.data ? 1u : 0) | (v->fixed ? 2u : 0));
        if (v->type.data) return write_tensor(w, v->type.data);
    }
    return PITH_OK;
}

/* ---- nodes ---- */

static pith_status write_graph(writer *w, const pith__graph *graph, const pith__plan *plan);

/* The plan of a subgraph, which the step of its node holds; NULL if the node is no step. */
static const pith__plan *subplan_of(const scope *s, const pith__node *node, pith_str attribute) {
    if (!s->plan) return NULL;
    for (size_t i = 0; i < s->plan->step_count; i++) {
        const pith__step *step = &s->plan->steps[i];
        if (step->node != node) continue;
        for (size_t n = 0; n < step->subplan_count; n++)
            if (pith__str_eq(step->subplans[n].attribute, attribute)) return step->subplans[n].plan;
    }
    return NULL;
}

/* A single number is written as it is in memory: both are little-endian. */
static pith_status write_attr(writer *w, const scope *s, const pith__node *node,
                              const pith__attr *attr) {
    char place[256];
    pith__put_str(w->out, attr->name);
    pith__put_u32(w->out, attr->kind);
    switch (attr->kind) {
    case PITH_ATTR_FLOAT: pith__put_bytes(w->out, &attr->real, sizeof attr->real); return PITH_OK;
    case PITH_ATTR_INT: pith__put_i64(w->out, attr->integer); return PITH_OK;
    case PITH_ATTR_STRING: pith__put_str(w->out, attr->string); return PITH_OK;
    case PITH_ATTR_TENSOR: return write_tensor(w, attr->tensor);
    case PITH_ATTR_GRAPH: return write_graph(w, attr->graph, subplan_of(s, node, attr->name));
    case PITH_ATTR_TYPE: pith__type_write(w->out, s->graph->dims, attr->type); return PITH_OK;
    case PITH_ATTR_GRAPHS:
        return pith__fail(w->err, PITH_ERR_UNSUPPORTED,
                          "%s: attribute '" PITH_STR_FMT "' is a list of graphs",
                          pith__node_place(node, place, sizeof place), PITH_STR_ARG(attr->name));
    default: break;
    }
    pith__put_u32(w->out, (uint32_t)attr->count);
    for (size_t i = 0; i < attr->count; i++) {
        if (attr->kind == PITH_ATTR_FLOATS)
            pith__put_bytes(w->out, &attr->floats[i], sizeof *attr->floats);
        if (attr->kind == PITH_ATTR_INTS) pith__put_i64(w->out, attr->ints[i]);
        if (attr->kind == PITH_ATTR_STRINGS) pith__put_str(w->out, attr->strings[i]);
        if (attr->kind == PITH_ATTR_TENSORS) PITH_TRY(write_tensor(w, attr->tensors[i]));
    }
    return PITH_OK;
}

static void write_uses(writer *w, const scope *s, pith__value *const *values, int count) {
    pith__put_u32(w->out, (uint32_t)count);
    for (int i = 0; i < count; i++)
        pith__put_u32(w->out, values[i] ? s->number[values[i]->id] : NONE);
}

/* The plan lists packed constants in the order of its nodes, so one pass over both suffices. */
static pith_status write_packed(writer *w, const pith__plan *plan, const pith__node *node,
                                size_t *next) {
    size_t first = *next;
    while (plan && *next < plan->packed_count && plan->packed[*next].node == node) ++*next;
    pith__put_u32(w->out, (uint32_t)(*next - first));
    for (size_t i = first; i < *next; i++) {
        uint32_t number;
        pith__put_str(w->out, pith__str_of(plan->packed[i].pack.layout));
        PITH_TRY(pith__constant_spans_add(&number, w->weights, *plan->packed[i].packed,
                                          plan->packed[i].pack.bytes, w->err));
        pith__put_u32(w->out, number);
    }
    return PITH_OK;
}

/* next_packed: of the plan, whose list is in the order of the nodes. */
static pith_status write_node(writer *w, const scope *s, const pith__node *node,
                              size_t *next_packed) {
    pith__put_str(w->out, node->domain);
    pith__put_str(w->out, node->op_type);
    pith__put_str(w->out, node->name);
    pith__put_u32(w->out, (uint32_t)node->opset);
    pith__put_u32(w->out, (uint32_t)node->index);
    write_uses(w, s, node->inputs, node->input_count);
    write_uses(w, s, node->outputs, node->output_count);
    pith__put_u32(w->out, (uint32_t)node->capture_count);
    pith__put_u32(w->out, (uint32_t)node->attr_count);
    for (size_t i = 0; i < node->attr_count; i++) PITH_TRY(write_attr(w, s, node, &node->attrs[i]));
    return write_packed(w, s->plan, node, next_packed);
}

/* ---- graphs ---- */

/* Values get numbers in the order of use and only if they are used: what passes left unused is not
 * in the file. */
static pith_status write_scope(writer *w, scope *s) {
    const pith__graph *g = s->graph;
    size_t next_packed = 0;
    if (s->plan) count_packed_uses(s);
    number_values(s);
    pith__put_str(w->out, g->name);
    pith__put_u32(w->out, s->count);
    for (uint32_t i = 0; i < s->count; i++) PITH_TRY(write_value(w, s, s->values[i]));
    pith__put_u32(w->out, (uint32_t)g->node_count);
    for (const pith__node *node = g->first; node; node = node->next)
        PITH_TRY(write_node(w, s, node, &next_packed));
    pith__put_u32(w->out, (uint32_t)g->output_count);
    for (size_t i = 0; i < g->output_count; i++) {
        pith__put_u32(w->out, s->number[g->outputs[i]->id]);
        pith__put_str(w->out, pith__graph_output_name(g, i));
    }
    return PITH_OK;
}

/* plan: NULL if the graph's node is never a step. */
static pith_status write_graph(writer *w, const pith__graph *graph, const pith__plan *plan) {
    pith__arena scratch;
    pith__arena_init(&scratch, w->out->arena->allocator);
    scope s = { .graph = graph, .plan = plan };
    s.number = pith__arena_array(&scratch, graph->value_count, sizeof *s.number);
    s.packed_uses = pith__arena_array(&scratch, graph->value_count, sizeof *s.packed_uses);
    s.values = pith__arena_array(&scratch, graph->value_count, sizeof *s.values);
    pith_status status = PITH_ERR_MEMORY;
    if (s.number && s.packed_uses && s.values) {
        for (size_t i = 0; i < graph->value_count; i++) s.number[i] = NONE;
        status = write_scope(w, &s);
    }
    if (status == PITH_ERR_MEMORY || w->out->failed)
        status = pith__fail_memory(w->err, w->out->size);
    pith__arena_free(&scratch);
    return status;
}

pith_status pith__graph_write(pith__bytes_out *out, pith__constant_spans_out *weights,
                              const pith__graph *graph, const pith__plan *plan, pith_error *err) {
    writer w = { out, weights, err };
    pith__put_str(out, graph->producer);
    pith__put_i64(out, graph->ir_version);
    pith__put_u32(out, (uint32_t)graph->opset_count);
    for (size_t i = 0; i < graph->opset_count; i++) {
        pith__put_str(out, graph->opsets[i].domain);
        pith__put_i64(out, graph->opsets[i].version);
    }
    return write_graph(&w, graph, plan);
}
