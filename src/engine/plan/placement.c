/* placement.c - which backend runs each node, and the copies in between.
 *
 * A node goes to the first backend that takes it. What enters and leaves a graph or a subgraph is
 * in host memory. Where a step reads a value that lies in another memory, a copy becomes a step
 * behind the one that makes the value (copy_order.c); later steps read the same copy. Constants are
 * not copied by steps but once, when the plan is made (pith__resident). A view is wherever its
 * first input is. An operator that reads shapes only takes its inputs wherever they are. */
#include "engine/plan/placement.h"

#include <string.h>

#include "engine/plan/claimed_nodes.h"

static pith_status placement_infer_copy(pith__infer *c) {
    c->out[0] = *c->in[0];
    c->out[0].data = NULL;
    return PITH_OK;
}

const pith__op pith__copy_to_device = {
    .domain = "pith",
    .name = "CopyToDevice",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "",
    .infer = placement_infer_copy,
};

const pith__op pith__copy_to_host = {
    .domain = "pith",
    .name = "CopyToHost",
    .since = 1,
    .newest = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .attrs = "",
    .infer = placement_infer_copy,
};

static pith_status placement_run_copy(void *context, pith__run *r) {
    const pith__device *device = context;
    const pith_tensor *from = r->in[0], *to = r->out[0];
    if (!to || !to->bytes) return PITH_OK;
    return device->backend->copy(
        device->context, to->data, from->data, to->bytes,
        r->node->op == &pith__copy_to_host ? PITH_COPY_TO_HOST : PITH_COPY_TO_DEVICE, r->err);
}

typedef struct placement {
    pith__plan *plan;
    pith__arena *arena;
    size_t most_copies;         /* room for this many of the plan's own values; 0: there is only
                                   host memory */
    const pith__value **values; /* all of the plan */
    uint8_t *memory_of;         /* by value id */
    const pith__value **there;  /* [memory, value of the graph]: that value in that memory, if it
                                   was copied */
    pith_error *err;
} placement;

static pith_status placement_out_of_memory(const placement *p) {
    return pith__fail_memory(p->err, 0);
}

bool pith__value_is_symbolic(const pith__value *value) {
    const pith__type *type = &value->type;
    int64_t count = pith__type_count(type);
    if (!type->elems || value->kind != PITH_VALUE_NODE || count < 0) return false;
    if (type->dtype != PITH_I64 && type->dtype != PITH_I32) return false;
    for (int64_t i = 0; i < count; i++)
        if (type->elems[i] == PITH_DIM_UNKNOWN) return false;
    return true;
}

bool pith__value_is_known(const pith__value *value) {
    return value->type.data || pith__value_is_symbolic(value);
}

/* ---- who runs a node ---- */

/* A tensor that can lie in any memory: its elements are its bytes. */
static bool placement_is_plain(const pith__value *value) {
    int dtype = value->type.dtype;
    return dtype != PITH_UNDEFINED && dtype < PITH_DTYPE_COUNT && dtype != PITH_STRING;
}

/* True if the node may run in a device's memory. Nodes that own graphs, that touch strings,
 * sequences or absent optionals, or whose outputs the binding computes in host memory stay on the
 * host. So do views, which follow their input instead (placement_add_step). */
static bool placement_can_leave(const pith__node *node) {
    if (node->op->flags & PITH_OP_VIEW) return false;
    for (size_t i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == PITH_ATTR_GRAPH || node->attrs[i].kind == PITH_ATTR_GRAPHS)
            return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && !placement_is_plain(node->inputs[i])) return false;
    for (int i = 0; i < node->output_count; i++) {
        const pith__value *value = node->outputs[i];
        if (value && (!placement_is_plain(value) || pith__value_is_known(value))) return false;
    }
    return true;
}

/* The first device of the list that supports the node. The order of the list is the caller's
 * preference; costs of copies are not weighed against it. Without a copy to a device, only devices
 * that work in host memory are asked. */
static pith_status placement_choose(const void *context, const pith__node *node,
                                    const pith__device **device) {
    const placement *p = context;
    const pith__devices *devices = p->plan->devices;
    bool can_leave = devices->memory_count > 1 && placement_can_leave(node);
    char place[256];
    for (size_t i = 0; i < devices->count; i++) {
        const pith__device *d = *device = &devices->items[i];
        if ((can_leave || !d->memory) && d->backend->supports(d->context, node)) return PITH_OK;
    }
    return pith__fail(p->err, PITH_ERR_UNSUPPORTED, "%s: no backend can run it",
                      pith__node_place(node, place, sizeof place));
}

/* ---- copies ---- */

static pith__value *placement_add_value(placement *p, const pith__value *source,
                                        pith__value_kind kind, int memory) {
    pith__plan *plan = p->plan;
    pith__value *value = pith__arena_array(p->arena, 1, sizeof *value);
    if (!value) return NULL;
    *value = (pith__value){ .name = source->name,
                            .kind = kind,
                            .id = (uint32_t)plan->value_count,
                            .graph = source->graph,
                            .type = source->type };
    if (kind == PITH_VALUE_NODE) value->type.data = NULL;
    p->memory_of[plan->value_count] = (uint8_t)memory;
    p->values[plan->value_count++] = value;
    return value;
}

static pith_status placement_add_copy(placement *p, const pith__value *source, int memory,
                                      const pith__value **copy) {
    const pith__op *op = memory ? &pith__copy_to_device : &pith__copy_to_host;
    const pith__device *device =
        p->plan->devices->memories[memory ? memory : p->memory_of[source->id]];
    pith__value *value = placement_add_value(p, source, PITH_VALUE_NODE, memory);
    pith__value **ends = pith__arena_array(p->arena, 2, sizeof *ends);
    pith__node *node = pith__arena_array(p->arena, 1, sizeof *node);
    if (!value || !ends || !node) return placement_out_of_memory(p);
    ends[0] = (pith__value *)(uintptr_t)source;
    ends[1] = value;
    *node = (pith__node){ .name = source->name,
                          .domain = pith__str_of(op->domain),
                          .op_type = pith__str_of(op->name),
                          .opset = PITH_OPSET_NEWEST,
                          .index = -1,
                          .op = op,
                          .inputs = &ends[0],
                          .outputs = &ends[1],
                          .input_count = 1,
                          .output_count = 1,
                          .graph = source->graph };
    value->producer = node;
    p->plan->steps[p->plan->step_count++] =
        (pith__step){ .node = node,
                      .device = device,
                      .run = placement_run_copy,
                      .context = (void *)(uintptr_t)device,
                      .in = (const pith__value *const *)node->inputs,
                      .out = (const pith__value *const *)node->outputs,
                      .in_count = 1,
                      .out_count = 1,
                      .memory = memory,
                      .is_copy = true };
    *copy = value;
    return PITH_OK;
}

static pith_status placement_add_resident(placement *p, const pith__value *source, int memory,
                                          const pith__value **copy) {
    const pith__value *value = placement_add_value(p, source, source->kind, memory);
    if (!value) return placement_out_of_memory(p);
    p->plan->residents[p->plan->resident_count++] =
        (pith__resident){ .value = value, .source = source };
    *copy = value;
    return PITH_OK;
}

/* Sets *value to itself in the given memory: the value, or its copy, which is made once per memory
 * and then shared. A constant that goes to a device becomes a resident, copied when the plan is
 * made; any other value gets a copy step, through the host if it comes from another device. */
static pith_status placement_fetch(placement *p, const pith__value **value, int memory) {
    const pith__value *source = *value, **known;
    if (p->memory_of[source->id] == memory) return PITH_OK;
    known = &p->there[(size_t)memory * p->plan->graph->value_count + source->id];
    if (!*known && memory && (source->type.data || source->kind == PITH_VALUE_PACKED)) {
        PITH_TRY(placement_add_resident(p, source, memory, known));
    } else if (!*known) {
        /* From one device to another the way leads through the host. */
        if (memory && p->memory_of[source->id]) PITH_TRY(placement_fetch(p, &source, 0));
        PITH_TRY(placement_add_copy(p, source, memory, known));
    }
    *value = *known;
    return PITH_OK;
}

/* ---- steps ---- */

static pith_status placement_fetch_inputs(placement *p, const pith__node *node, pith__step *step) {
    const pith__op *op = node->op;
    const pith__value **in = pith__arena_array(p->arena, (size_t)node->input_count, sizeof *in);
    if (!in) return placement_out_of_memory(p);
    for (int i = 0; i < node->input_count; i++) {
        in[i] = node->inputs[i];
        bool anywhere = op->flags & PITH_OP_SHAPE_ONLY || (op->flags & PITH_OP_VIEW && i == 0);
        bool on_host = step->claim ? step->claim->on_host[i] : i < 32 && op->shape_inputs >> i & 1;
        if (in[i] && !anywhere)
            PITH_TRY(placement_fetch(p, &in[i], on_host ? 0 : step->device->memory));
    }
    step->in = in;
    return PITH_OK;
}

/* device: where the node goes; NULL: to the first device of the list that supports it. Its inputs
 * are fetched into that device's memory; a view stays where its input lies, since it moves nothing.
 */
static pith_status placement_add_step(placement *p, const pith__node *node,
                                      const pith__device *device, pith__claim *claim) {
    pith__step step = { .node = node,
                        .device = device,
                        .claim = claim,
                        .in = (const pith__value *const *)node->inputs,
                        .out = (const pith__value *const *)node->outputs,
                        .in_count = node->input_count,
                        .out_count = node->output_count };
    if (!device) PITH_TRY(placement_choose(p, node, &step.device));
    step.run = step.device->backend->run;
    step.context = step.device->context;
    step.memory = step.device->memory;
    if (pith__backends_differ && p->most_copies) {
        PITH_TRY(placement_fetch_inputs(p, node, &step));
        if (node->op->flags & PITH_OP_VIEW && node->input_count && node->inputs[0])
            step.memory = p->memory_of[node->inputs[0]->id];
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] && !pith__value_is_known(node->outputs[i]))
                p->memory_of[node->outputs[i]->id] = (uint8_t)step.memory;
    }
    p->plan->steps[p->plan->step_count++] = step;
    return PITH_OK;
}

/* A copy per input and output of a node and per output of the graph at most, two where it goes
 * through the host. */
static size_t placement_count_most(const pith__graph *graph) {
    size_t most = graph->output_count;
    for (const pith__node *node = graph->first; node; node = node->next)
        if (node->mark) most += 2 * (size_t)node->input_count;
    return most;
}

/* With host memory alone, the plan uses the graph's own arrays of values and outputs; only devices
 * with memories need copies, and room for them. */
static pith_status placement_begin(placement *p, size_t nodes) {
    pith__plan *plan = p->plan;
    const pith__graph *graph = plan->graph;
    size_t most =
        pith__backends_differ && plan->devices->memory_count > 1 ? placement_count_most(graph) : 0;
    if (nodes + most >= UINT32_MAX)
        return pith__fail(p->err, PITH_ERR_UNSUPPORTED, "too many nodes");
    p->most_copies = most;
    plan->steps = pith__arena_array(p->arena, nodes + most, sizeof *plan->steps);
    p->memory_of = pith__arena_array(p->arena, graph->value_count + most, sizeof *p->memory_of);
    if (!plan->steps || !p->memory_of) return placement_out_of_memory(p);
    plan->memory_of = p->memory_of;
    plan->values = (const pith__value *const *)graph->values;
    plan->value_count = graph->value_count;
    plan->outputs = (const pith__value *const *)graph->outputs;
    if (!pith__backends_differ || !most) return PITH_OK;
    p->values = pith__arena_array(p->arena, graph->value_count + most, sizeof *p->values);
    p->there = pith__arena_array(p->arena, graph->value_count * plan->devices->memory_count,
                                 sizeof *p->there);
    plan->residents = pith__arena_array(p->arena, most, sizeof *plan->residents);
    if (!p->values || !p->there || !plan->residents) return placement_out_of_memory(p);
    for (size_t i = 0; i < graph->value_count; i++) p->values[i] = graph->values[i];
    plan->values = p->values;
    return PITH_OK;
}

static pith_status placement_fetch_outputs(placement *p) {
    const pith__graph *graph = p->plan->graph;
    const pith__value **outputs = pith__arena_array(p->arena, graph->output_count, sizeof *outputs);
    if (!outputs) return placement_out_of_memory(p);
    for (size_t i = 0; i < graph->output_count; i++) {
        outputs[i] = graph->outputs[i];
        PITH_TRY(placement_fetch(p, &outputs[i], 0));
    }
    p->plan->outputs = outputs;
    return PITH_OK;
}

static pith_status placement_take(void *context, const pith__placed_node *node) {
    return placement_add_step(context, node->node, node->device, node->claim);
}

pith_status pith__plan_place(pith__plan *plan, size_t nodes, pith_error *err) {
    placement p = { .plan = plan, .arena = plan->arena, .err = err };
    PITH_TRY(placement_begin(&p, nodes));
    if (pith__plan_devices_used && p.most_copies) {
        PITH_TRY(
            pith__plan_devices_used->place(plan, nodes, placement_choose, placement_take, &p, err));
        PITH_TRY(placement_fetch_outputs(&p));
        return pith__plan_devices_used->order(plan, err);
    }
    for (const pith__node *node = plan->graph->first; node; node = node->next)
        if (node->mark) PITH_TRY(placement_add_step(&p, node, NULL, NULL));
    return PITH_OK;
}
