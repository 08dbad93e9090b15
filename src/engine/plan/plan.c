/* plan.c - a graph to steps.
 *
 * Going backward from the outputs, a node becomes a step if one of its outputs is needed and is not
 * known anyway. Known are constants, and integer tensors whose elements are expressions over the
 * sizes of the inputs: whole subgraphs of shape arithmetic disappear that way. Then the nodes are
 * placed (placement.h), every step is prepared on its backend, in order, and the weights they asked
 * for are packed. */
#include "engine/plan/placement.h"

#include <assert.h>

#include "base/dtype.h"
#include "engine/ops/shared/call_op.h"
#include "engine/plan/claimed_nodes.h"

enum { READ_ANYWHERE = 1, READ_ALIGNED = 2 };

typedef struct builder {
    pith__plan *plan;
    const pith__graph *graph;
    const pith__files *files;
    pith__arena *arena;
    pith__packer packer;
    bool *needed;   /* by value id */
    uint8_t *reads; /* by value id: READ_*, by steps that do not have it packed */
    uint32_t *last_use;
    const pith_tensor **constants;
    pith_error *err;
} builder;

static pith_status plan_out_of_memory(builder *b) { return pith__fail_memory(b->err, 0); }

/* Marks what is needed, backward from the outputs; returns how many nodes become steps, which
 * node->mark says of each. The list of nodes is in topological order, so one walk from its end has
 * seen all readers of a value before the node that makes it. A node whose needed outputs are all
 * known becomes no step, and what only it read is not needed either. */
static size_t find_needed(builder *b) {
    size_t steps = 0;
    for (size_t i = 0; i < b->graph->output_count; i++) b->needed[b->graph->outputs[i]->id] = true;
    for (pith__node *node = b->graph->last; node; node = node->prev) {
        node->mark = 0;
        for (int i = 0; i < node->output_count; i++) {
            const pith__value *value = node->outputs[i];
            if (value && b->needed[value->id] && !pith__value_is_known(value)) node->mark = 1;
        }
        if (!node->mark) continue;
        steps++;
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i]) b->needed[node->inputs[i]->id] = true;
    }
    return steps;
}

static bool is_aligned(const pith_tensor *t) {
    return (uintptr_t)t->data % pith__dtype_alignment(t->dtype) == 0;
}

static pith_status align_constant(builder *b, const pith__value *value) {
    const pith_tensor *tensor = value->type.data;
    pith_tensor *copy = pith__arena_alloc(b->arena, sizeof *copy);
    if (!copy) return plan_out_of_memory(b);
    *copy = *tensor;
    copy->data = pith__arena_alloc64(b->arena, tensor->bytes);
    if (!copy->data) return plan_out_of_memory(b);
    b->constants[value->id] = copy;
    return pith__copy_until(b->packer.stop, copy->data, tensor->data, tensor->bytes, b->err);
}

/* Enters a constant. A small one that is not aligned in its file is copied at once. A large one is
 * looked at again when it is known how steps read it: if only to pack it, or unaligned, the copy is
 * saved. */
static pith_status add_constant(builder *b, const pith__value *value) {
    b->constants[value->id] = value->type.data;
    if (is_aligned(value->type.data) || pith__constant_lies_anywhere(value->type.data))
        return PITH_OK;
    return align_constant(b, value);
}

static pith_status align_constants(builder *b) {
    for (size_t i = 0; i < b->graph->output_count; i++)
        b->reads[b->plan->outputs[i]->id] |= READ_ALIGNED;
    for (size_t i = 0; i < b->graph->value_count; i++) {
        const pith__value *value = b->graph->values[i];
        if (!b->constants[i] || !value->type.data || is_aligned(b->constants[i])) continue;
        if (b->reads[i] & READ_ALIGNED) PITH_TRY(align_constant(b, value));
    }
    return PITH_OK;
}

/* Dtype and shape are all there is to see: who reads it has it packed, or `data` says where it is.
 */
static pith_status add_shape(builder *b, const pith__value *value, void *data) {
    pith_tensor *t = pith__arena_alloc(b->arena, sizeof *t);
    if (!t) return plan_out_of_memory(b);
    *t = (pith_tensor){ .data = data, .dtype = value->type.dtype, .rank = value->type.rank };
    for (int i = 0; i < t->rank; i++) t->dims[i] = value->type.dims[i];
    b->constants[value->id] = t;
    if (pith__dtype_bytes(t->dtype, pith__type_count(&value->type), &t->bytes)) return PITH_OK;
    return plan_out_of_memory(b);
}

/* Constants that a step of a device reads go to its memory. */
static pith_status add_residents(builder *b) {
    for (size_t i = 0; i < b->plan->resident_count; i++) {
        pith__resident *r = &b->plan->residents[i];
        const pith_tensor *from = r->source->type.data;
        if (b->reads[r->value->id] && from->bytes) {
            const pith__device *d = b->plan->devices->memories[b->plan->memory_of[r->value->id]];
            r->data = pith__device_functions_used->alloc(d, from->bytes);
            pith_status status =
                r->data
                    ? d->backend->copy(d->context, r->data, from->data, from->bytes,
                                       PITH_COPY_TO_DEVICE, b->err)
                    : pith__device_functions_used->no_memory(d, from->bytes, "a constant", b->err);
            if (status) b->plan->devices->failed = d->choice;
            if (status) return status;
        }
        PITH_TRY(add_shape(b, r->value, r->data));
    }
    return PITH_OK;
}

/* Constants, and values that follow from the sizes of the inputs: no step makes them. */
static pith_status find_known(builder *b) {
    size_t symbolic = 0;
    for (size_t i = 0; i < b->graph->value_count; i++)
        if (b->needed[i] && !b->graph->values[i]->type.data &&
            pith__value_is_symbolic(b->graph->values[i]))
            symbolic++;
    const pith__value **list = pith__arena_array(b->arena, symbolic, sizeof *list);
    if (!list) return plan_out_of_memory(b);
    b->plan->symbolic = list;
    for (size_t i = 0; i < b->graph->value_count; i++) {
        const pith__value *value = b->graph->values[i];
        if (!b->needed[i]) continue;
        if (value->type.data)
            PITH_TRY(add_constant(b, value));
        else if (value->kind == PITH_VALUE_PACKED)
            PITH_TRY(add_shape(b, value, NULL));
        else if (pith__value_is_symbolic(value))
            list[b->plan->symbolic_count++] = value;
    }
    return PITH_OK;
}

/* ---- steps ---- */

static pith_status plan_make(pith__plan **plan, const pith__graph *graph, const pith__files *files,
                             pith__arena *arena, pith__devices *devices, pith_error *err);

static pith_status plan_subgraphs(builder *b, pith__step *step) {
    const pith__node *node = step->node;
    size_t count = 0;
    for (size_t i = 0; i < node->attr_count; i++) count += node->attrs[i].kind == PITH_ATTR_GRAPH;
    if (!count) return PITH_OK;
    step->subplans = pith__arena_array(b->arena, count, sizeof *step->subplans);
    if (!step->subplans) return plan_out_of_memory(b);
    for (size_t i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind != PITH_ATTR_GRAPH) continue;
        step->subplans[step->subplan_count].attribute = node->attrs[i].name;
        PITH_TRY(plan_make(&step->subplans[step->subplan_count].plan, node->attrs[i].graph,
                           b->files, b->arena, b->plan->devices, b->err));
        b->plan->packed_bytes += step->subplans[step->subplan_count++].plan->packed_bytes;
    }
    return PITH_OK;
}

/* Notes which inputs are read when the step runs: all that are not packed. */
static pith_status note_reads(builder *b, const pith__step *step, uint32_t packed_inputs) {
    for (int i = 0; i < step->in_count; i++) {
        const pith__value *value = step->in[i];
        if (!value || (i < 32 && packed_inputs >> i & 1)) continue;
        if (step->claim && step->claim->packed[i]) continue;
        if (value->kind == PITH_VALUE_PACKED) {
            return pith__fail(b->err, PITH_ERR_FORMAT,
                              "the file does not hold input '" PITH_STR_FMT "'",
                              PITH_STR_ARG(value->name));
        }
        b->reads[value->id] |=
            i < 32 && step->node->op->unaligned >> i & 1 ? READ_ANYWHERE : READ_ALIGNED;
    }
    return PITH_OK;
}

/* Lets the backend prepare a step: it sees types, constants that are aligned, and no contents of
 * what it asks to have packed. Those are filled for all steps together, in parallel (plan_build).
 */
static pith_status prepare_step(builder *b, pith__step *step) {
    const pith__node *node = step->node;
    pith__arena scratch;
    pith__arena_init(&scratch, b->arena->allocator);
    size_t ins = pith__node_in_room(node), outs = pith__node_out_room(node);
    const pith__type **in = pith__arena_array(&scratch, ins, sizeof *in);
    pith__type *types = pith__arena_array(&scratch, ins + outs, sizeof *types);
    pith_status status = PITH_ERR_MEMORY;
    if (!in || !types) {
        pith__fail_memory(b->err, (ins + outs) * sizeof *types);
        goto out;
    }
    for (size_t i = 0; i < ins; i++) {
        const pith__value *value = pith__node_input(node, (int)i);
        if (!value) continue;
        types[i] = value->type;
        if (types[i].data) types[i].data = b->constants[value->id];
        in[i] = &types[i];
    }
    for (size_t i = 0; i < outs; i++) {
        const pith__value *value = pith__node_output(node, (int)i);
        if (value)
            types[ins + i] = value->type;
        else
            pith__type_init(&types[ins + i]);
    }
    pith__prepare c = pith__invoke_prepare(node, in, types + ins, b->plan->isa, b->arena, b->err);
    c.packer = &b->packer;
    size_t before = b->arena->total;
    c.lacks = &b->plan->devices->lacks;
    const pith__backend *backend = step->device->backend;
    status = step->claim ? backend->compile(step->device->context, &c, step->claim)
                         : backend->prepare(step->device->context, &c);
    const bool lacks = c.lacks->count > 0; /* pith__plan_build_on names all at once, so the other
                                              steps follow */
    if (lacks) status = PITH_OK;
    if (status && !pith__status_stops(status)) b->plan->devices->failed = step->device->choice;
    b->plan->packed_bytes += b->arena->total - before;
    step->state = c.state;
    if (!status && !lacks) status = note_reads(b, step, c.packed_inputs);
out:
    pith__arena_free(&scratch);
    char place[256];
    if (!status || pith__status_stops(status)) return status;
    return pith__fail_at(b->err, status, "%s: ", pith__node_place(node, place, sizeof place));
}

static pith_status plan_ready_step(builder *b, uint32_t index) {
    pith__plan *plan = b->plan;
    pith__step *step = &plan->steps[index];
    PITH_TRY(pith__stop_check(b->packer.stop, b->err));
    if (pith__node_in_room(step->node) > plan->widest_in)
        plan->widest_in = pith__node_in_room(step->node);
    if (pith__node_out_room(step->node) > plan->widest_out)
        plan->widest_out = pith__node_out_room(step->node);
    for (int i = 0; i < step->in_count; i++)
        if (step->in[i]) b->last_use[step->in[i]->id] = index;
    if (step->is_copy) return note_reads(b, step, 0);
    char place[256];
    pith_status status = plan_subgraphs(b, step);
    if (pith__status_stops(status)) return status;
    if (status)
        return pith__fail_at(b->err, status,
                             "%s: ", pith__node_place(step->node, place, sizeof place));
    return prepare_step(b, step);
}

/* What only packing read can be read again from its file, if need be. */
static void release_sources(void *context, const pith__packed_step *step) {
    const builder *b = context;
    for (int i = 0; i < step->node->input_count && i < 32; i++) {
        const pith__value *value = step->node->inputs[i];
        if (!(step->pack.inputs >> i & 1) || !b->files || b->reads[value->id]) continue;
        pith__files_release(b->files, value->type.data->data, value->type.data->bytes);
    }
}

/* Tells each step what the next one that packed anything reads first, so that its kernel can
 * prefetch those weights while it computes. The last steps get what the first one reads, as a next
 * run begins with it. */
static void look_ahead(const builder *b) {
    const pith__packer *packer = &b->packer;
    size_t left = packer->count;
    pith__packed_bytes next = { NULL, 0 };
    if (left) next = (pith__packed_bytes){ *packer->steps[0].packed, packer->steps[0].pack.bytes };
    for (size_t i = b->plan->step_count; i-- > 0;) {
        pith__step *step = &b->plan->steps[i];
        step->upcoming = next;
        for (; left && packer->steps[left - 1].node == step->node; left--)
            next = (pith__packed_bytes){ *packer->steps[left - 1].packed,
                                         packer->steps[left - 1].pack.bytes };
    }
}

/* The order matters: steps are placed before values are counted, since copies add some; constants
 * are aligned after the steps have said how they read them; the packed forms get addresses after
 * all were asked for, so that they lie in one block, and are filled last. */
static pith_status plan_build(builder *b) {
    b->needed = pith__arena_array(b->arena, b->graph->value_count, sizeof *b->needed);
    if (!b->needed) return plan_out_of_memory(b);
    PITH_TRY(pith__plan_place(b->plan, find_needed(b), b->err));
    size_t values = b->plan->value_count;
    b->last_use = pith__arena_array(b->arena, values, sizeof *b->last_use);
    b->constants = pith__arena_array(b->arena, values, sizeof *b->constants);
    b->reads = pith__arena_array(b->arena, values, sizeof *b->reads);
    if (!b->last_use || !b->constants || !b->reads) return plan_out_of_memory(b);
    memset(b->last_use, 0xFF, values * sizeof *b->last_use);
    PITH_TRY(find_known(b));
    for (size_t i = 0; i < b->plan->step_count; i++) PITH_TRY(plan_ready_step(b, (uint32_t)i));
    if (b->plan->devices->lacks.count) return PITH_OK;
    for (size_t i = 0; i < b->graph->output_count; i++) {
        b->last_use[b->plan->outputs[i]->id] = (uint32_t)b->plan->step_count;
    }
    PITH_TRY(align_constants(b));
    if (pith__backends_differ) PITH_TRY(add_residents(b));
    size_t before = b->arena->total;
    PITH_TRY(pith__packer_place(&b->packer, b->err));
    b->plan->packed_bytes += b->arena->total - before;
    b->plan->last_use = b->last_use;
    b->plan->constants = b->constants;
    b->plan->packed = b->packer.steps;
    b->plan->packed_count = b->packer.count;
    look_ahead(b);
    return pith__packer_fill(&b->packer, release_sources, b, b->err);
}

/* Constants in the memories of devices, subgraphs' included. */
static void plan_free_residents(const pith__plan *plan) {
    for (size_t i = 0; i < plan->resident_count; i++) {
        const pith__device *d =
            plan->devices->memories[plan->memory_of[plan->residents[i].value->id]];
        if (plan->residents[i].data)
            pith__device_functions_used->free(d, plan->residents[i].data,
                                              plan->residents[i].source->type.data->bytes);
    }
    for (size_t i = 0; i < plan->step_count; i++)
        for (size_t s = 0; s < plan->steps[i].subplan_count; s++)
            plan_free_residents(plan->steps[i].subplans[s].plan);
}

/* After a failure nothing is left outside of the arena. */
static pith_status plan_make(pith__plan **plan, const pith__graph *graph, const pith__files *files,
                             pith__arena *arena, pith__devices *devices, pith_error *err) {
    pith__plan *p = pith__arena_array(arena, 1, sizeof *p);
    if (!p) return pith__fail_memory(err, sizeof *p);
    builder b = { .plan = p,
                  .graph = graph,
                  .files = files,
                  .arena = arena,
                  .packer = { .arena = arena,
                              .stop = pith__graph_stop(graph),
                              .threads = pith__graph_threads(graph) },
                  .err = err };
    p->graph = graph;
    p->devices = devices;
    p->arena = arena;
    p->isa = pith__cpu_get()->isa;
    *plan = p;
    if (graph->fault.size) return PITH_OK; /* no steps: it is never run */
    pith_status status = plan_build(&b);
    if (pith__backends_differ && status && devices->memory_count > 1) plan_free_residents(p);
    assert(status || pith__plan_check(p, NULL) != PITH_ERR_FORMAT);
    return status;
}

pith_status pith__plan_build_on(pith__plan **plan, const pith__graph *graph,
                                const pith__files *files, const pith__device_list *list,
                                pith__arena *arena, const pith__device_choice **failed,
                                pith_error *err) {
    pith__devices *devices = pith__arena_array(arena, 1, sizeof *devices);
    pith__plan *built;
    *failed = NULL;
    if (!devices) return pith__fail_memory(err, sizeof *devices);
    PITH_TRY(pith__devices_open(devices, list, arena, graph->log, err));
    pith_status status = PITH_OK;
    if (pith__plan_devices_used)
        status = pith__plan_devices_used->rewrite(&graph, devices, arena, err);
    if (!status) status = plan_make(&built, graph, files, arena, devices, err);
    if (!status) status = pith__lacks_check(&devices->lacks, err);
    *failed = devices->failed;
    if (status)
        pith__devices_close(devices);
    else
        *plan = built;
    return status;
}

pith_status pith__plan_build(pith__plan **plan, const pith__graph *graph, const pith__files *files,
                             pith__arena *arena, pith_error *err) {
    const pith__device_choice *failed;
    return pith__plan_build_on(plan, graph, files, graph->devices, arena, &failed, err);
}

void pith__plan_close(pith__plan *plan) {
    if (!plan) return;
    if (pith__backends_differ && plan->devices->memory_count > 1) plan_free_residents(plan);
    pith__devices_close(plan->devices);
}
