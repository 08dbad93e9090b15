/* plan.c - from a finished graph to steps.
 *
 * A node becomes a step unless all its outputs are constants, contents that follow from input shapes (evaluated at bind
 * without any kernel), or unused. Weights are packed here, by each operator's prepare. */
#include "plan/plan.h"

#include <string.h>

bool pith_dtype_holds_elems(int dtype) {
    switch (dtype) {
    case PITH_I64: case PITH_I32: case PITH_I16: case PITH_I8:
    case PITH_U64: case PITH_U32: case PITH_U16: case PITH_U8: case PITH_BOOL: return true;
    default: return false;
    }
}

/* Sizes of the symbols that the caller's shapes give: 1 for those, unknown for what only a run can tell. */
static pith_status probe_symbols(pith_dim **values, const pith_graph *graph, pith_arena *arena, pith_error *err) {
    size_t count = pith_dims_symbol_count(graph->dims);
    *values = pith_arena_array(arena, count + 1, sizeof **values);
    if (!*values) return pith_fail_memory(err, count * sizeof **values);
    for (size_t i = 0; i < count; i++) (*values)[i] = PITH_DIM_UNKNOWN;
    if (graph->parent) return PITH_OK; /* the symbols of a subgraph's inputs are its owner's business */
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith_type *type = &graph->inputs[i]->type;
        for (int d = 0; d < type->rank; d++) {
            int32_t symbol = pith_dim_symbol_index(graph->dims, type->dims[d]);
            if (symbol >= 0) (*values)[symbol] = 1;
        }
    }
    return PITH_OK;
}

static bool follows_from_shapes(const pith_graph *graph, const pith_value *value, const pith_dim *symbols) {
    if (!value->type.elems || value->type.data || !pith_dtype_holds_elems(value->type.dtype)) return false;
    int64_t count = pith_type_count(&value->type);
    if (count < 0 || count > PITH_ELEMS_MAX) return false;
    for (int64_t i = 0; i < count; i++) {
        pith_dim d = value->type.elems[i];
        if (!pith_dim_known(d) && !pith_dim_known(pith_dim_eval(graph->dims, d, symbols))) return false;
    }
    return true;
}

static bool is_wanted(const pith_value *value) { return value && (value->user_count || value->output_uses); }

static bool is_step(const pith_node *node, const bool *from_shapes) {
    for (int i = 0; i < node->output_count; i++) {
        const pith_value *out = node->outputs[i];
        if (is_wanted(out) && out->kind == PITH_VALUE_NODE && !from_shapes[out->id]) return true;
    }
    return false;
}

static pith_status prepare_step(pith_plan *plan, pith_step *step, uint32_t *read, pith_arena *arena, pith_error *err) {
    const pith_node *node = step->node;
    const pith_type **types = pith_arena_array(arena, (size_t)node->input_count + 1, sizeof *types);
    pith_type *out = pith_arena_array(arena, (size_t)node->output_count + 1, sizeof *out);
    if (!types || !out) return pith_fail_memory(err, sizeof *out * (size_t)node->output_count);
    for (int i = 0; i < node->input_count; i++) types[i] = node->inputs[i] ? &node->inputs[i]->type : NULL;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i]) out[i] = node->outputs[i]->type;
        else pith_type_init(&out[i]);
    }
    pith_prepare c = { .node = node, .in = types, .out = out, .in_count = node->input_count,
                       .out_count = node->output_count, .isa = plan->isa, .arena = arena, .err = err };
    pith_status status = step->backend->prepare(NULL, &c);
    if (status) {
        char place[256];
        return pith_fail_at(err, status, "%s: ", pith_node_place(node, place, sizeof place));
    }
    step->state = c.state;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !(i < 32 && c.consumed >> i & 1)) read[node->inputs[i]->id] = 1;
    return PITH_OK;
}

static pith_status build_subplans(pith_step *step, pith_arena *arena, pith_error *err) {
    const pith_node *node = step->node;
    size_t count = 0;
    for (size_t i = 0; i < node->attr_count; i++) count += node->attrs[i].kind == PITH_ATTR_GRAPH;
    if (!count) return PITH_OK;
    step->subplans = pith_arena_array(arena, count, sizeof *step->subplans);
    if (!step->subplans) return pith_fail_memory(err, count * sizeof *step->subplans);
    for (size_t i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind != PITH_ATTR_GRAPH) continue;
        pith_subplan *sub = &step->subplans[step->subplan_count++];
        sub->attribute = node->attrs[i].name;
        PITH_TRY(pith_plan_build(&sub->plan, node->attrs[i].graph, arena, err));
    }
    return PITH_OK;
}

/* Constants every user of which packed them. */
static pith_status list_consumed(pith_plan *plan, const uint32_t *read, pith_arena *arena, pith_error *err) {
    const pith_graph *graph = plan->graph;
    plan->consumed = pith_arena_array(arena, graph->value_count + 1, sizeof *plan->consumed);
    if (!plan->consumed) return pith_fail_memory(err, graph->value_count * sizeof *plan->consumed);
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith_value *value = graph->values[i];
        if (value->kind != PITH_VALUE_CONST || !value->user_count || value->output_uses || read[i]) continue;
        plan->consumed[plan->consumed_count++] = (pith_consumed){ value->type.data->data, value->type.data->bytes };
    }
    return PITH_OK;
}

pith_status pith_plan_build(pith_plan **out, const pith_graph *graph, pith_arena *arena, pith_error *err) {
    size_t before = arena->total;
    pith_plan *plan = pith_arena_array(arena, 1, sizeof *plan);
    if (!plan) return pith_fail_memory(err, sizeof *plan);
    *plan = (pith_plan){ .graph = graph, .backend = &pith_backend_cpu, .isa = pith_cpu_get()->isa };
    plan->steps = pith_arena_array(arena, graph->node_count + 1, sizeof *plan->steps);
    plan->last_use = pith_arena_array(arena, graph->value_count + 1, sizeof *plan->last_use);
    plan->from_shapes = pith_arena_array(arena, graph->value_count + 1, sizeof *plan->from_shapes);
    uint32_t *read = pith_arena_array(arena, graph->value_count + 1, sizeof *read);
    if (!plan->steps || !plan->last_use || !plan->from_shapes || !read)
        return pith_fail_memory(err, graph->value_count * sizeof *read);

    pith_dim *symbols;
    PITH_TRY(probe_symbols(&symbols, graph, arena, err));
    for (size_t i = 0; i < graph->value_count; i++) {
        plan->last_use[i] = PITH_NEVER_USED;
        const pith_value *value = graph->values[i];
        plan->from_shapes[i] = value->kind == PITH_VALUE_NODE && follows_from_shapes(graph, value, symbols);
    }
    for (const pith_node *node = graph->first; node; node = node->next) {
        if (!is_step(node, plan->from_shapes)) continue;
        pith_step *step = &plan->steps[plan->step_count];
        *step = (pith_step){ .node = node, .backend = plan->backend };
        PITH_TRY(prepare_step(plan, step, read, arena, err));
        PITH_TRY(build_subplans(step, arena, err));
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i]) plan->last_use[node->inputs[i]->id] = (uint32_t)plan->step_count;
        plan->step_count++;
    }
    for (size_t i = 0; i < graph->output_count; i++) plan->last_use[graph->outputs[i]->id] = (uint32_t)plan->step_count;
    PITH_TRY(list_consumed(plan, read, arena, err));
    plan->packed_bytes = arena->total - before;
    *out = plan;
    return PITH_OK;
}
