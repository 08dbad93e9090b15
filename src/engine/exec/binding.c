/* binding.c - sizes of the inputs → symbols → shape of every value → a place in the buffer for
 * every value.
 *
 * A step whose inputs are all known, or that reads only their shapes, runs here, and its small
 * result is kept with the binding. A step with a dynamic shape is late: it is inferred and gets
 * memory when it runs, so that no operator ever runs on shapes that its infer has not seen. A view
 * shares the memory of its input and keeps it alive. An operator that may work in place takes over
 * the memory of an input that no later step needs. */
#include "engine/exec/binding.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/memory/poison.h"
#include "engine/exec/device_runs.h"
#include "engine/ops/shared/call_op.h"

/* Results up to this many bytes are computed at bind if their inputs are known. A larger limit
 * saves work in repeated runs but keeps more memory with each binding; shape arithmetic needs only
 * a few bytes. */
#define KNOWN_MAX ((size_t)64 << 10)
size_t pith__plan_port_count(const pith__plan *plan) {
    return plan->graph->input_count + plan->graph->capture_count;
}

const pith__value *pith__plan_port(const pith__plan *plan, size_t port) {
    const pith__graph *g = plan->graph;
    return port < g->input_count ? g->inputs[port] : g->captures[port - g->input_count];
}

bool pith__type_is_plain(const pith__type *type) {
    return type->dtype < PITH_DTYPE_COUNT && pith__type_concrete(type);
}

static pith_status fail_place(pith_status status, const pith__step *step, pith_error *err) {
    char place[256];
    return pith__fail_at(err, status, "%s: ", pith__node_place(step->node, place, sizeof place));
}

pith_status pith__tensor_shape(pith_tensor *tensor, const pith__type *type, const pith__step *step,
                               pith_error *err) {
    size_t bytes;
    if (!pith__dtype_bytes(type->dtype, pith__dims_count(type->dims, type->rank), &bytes)) {
        char text[256];
        return fail_place(pith__fail(err, PITH_ERR_RUN, "an output of shape %s is too large",
                                     pith__dims_text(type->dims, type->rank, text, sizeof text)),
                          step, err);
    }
    *tensor = (pith_tensor){ .bytes = bytes, .dtype = type->dtype, .rank = type->rank };
    for (int i = 0; i < type->rank; i++) tensor->dims[i] = type->dims[i];
    return PITH_OK;
}

pith_status pith__step_infer(const pith__step *step, pith__infer *c) {
    PITH_TRY(pith__op_infer_node(c));
    for (int i = 0; i < step->out_count; i++) {
        int loaded = step->out[i] ? step->out[i]->type.dtype : PITH_UNDEFINED;
        if (loaded && loaded != PITH_NONE && c->out[i].dtype && c->out[i].dtype != loaded) {
            return fail_place(pith__fail(c->err, PITH_ERR_RUN, "output %d is %s instead of %s", i,
                                         pith__dtype_name(c->out[i].dtype),
                                         pith__dtype_name(loaded)),
                              step, c->err);
        }
    }
    return PITH_OK;
}

pith_status pith__step_scratch(const pith__step *step, const pith__infer *c, int threads,
                               size_t *bytes) {
    const pith__device *d = step->device;
    *bytes = 0;
    return step->is_copy ? PITH_OK
                         : d->backend->scratch(d->context, c, step->state, threads, bytes);
}

static pith_status bind_out_of_memory(const pith__binder *k) {
    return pith__fail_memory(k->err, k->plan->value_count * sizeof(pith__type));
}

/* ---- ports ---- */

bool pith__tensor_is_sound(const pith_tensor *tensor, size_t *needed) {
    size_t bytes = 0;
    if (tensor->rank < 0 || tensor->rank > PITH_MAX_RANK) return false;
    if (tensor->dtype == PITH_SEQUENCE) {
        if (tensor->rank != 1 || tensor->dims[0] < 0 ||
            (uint64_t)tensor->dims[0] > tensor->bytes / sizeof *tensor)
            return false;
        const pith_tensor *items = tensor->data;
        for (int64_t i = 0; i < tensor->dims[0]; i++)
            if (items[i].dtype >= PITH_DTYPE_COUNT || !pith__tensor_is_sound(&items[i], NULL))
                return false;
    } else if (tensor->dtype != PITH_NONE &&
               !pith__dtype_bytes(tensor->dtype, pith__dims_count(tensor->dims, tensor->rank),
                                  &bytes)) {
        return false;
    }
    if (needed) *needed = bytes;
    return bytes <= tensor->bytes && (!bytes || tensor->data);
}

/* Checks one input against what the graph says of it: dtype, rank, and enough bytes for its shape.
 * Sizes of axes are not compared here, since they may be expressions over symbols that have no
 * value yet (check_sizes does it). A sequence or an absent optional has no shape to check. */
static pith_status check_port(const pith__value *value, const pith_tensor *tensor,
                              pith_error *err) {
    const pith__type *type = &value->type;
    if (type->dtype && type->dtype != PITH_NONE && tensor->dtype != type->dtype) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "input '" PITH_STR_FMT "' is %s; the model needs %s",
                          PITH_STR_ARG(value->name), pith__dtype_name(tensor->dtype),
                          pith__dtype_name(type->dtype));
    }
    if (tensor->dtype >= PITH_DTYPE_COUNT) return PITH_OK;
    char text[256];
    if (tensor->rank < 0 || tensor->rank > PITH_MAX_RANK) {
        return pith__fail(err, PITH_ERR_ARGUMENT, "input '" PITH_STR_FMT "' has rank %d",
                          PITH_STR_ARG(value->name), tensor->rank);
    }
    if (!pith__tensor_is_sound(tensor, NULL)) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "input '" PITH_STR_FMT "': %zu bytes of data do not hold %s %s",
                          PITH_STR_ARG(value->name), tensor->bytes, pith__dtype_name(tensor->dtype),
                          pith__dims_text(tensor->dims, tensor->rank, text, sizeof text));
    }
    if (type->rank >= 0 && type->rank != tensor->rank) {
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "input '" PITH_STR_FMT "' has shape %s; the model needs rank %d",
                          PITH_STR_ARG(value->name),
                          pith__dims_text(tensor->dims, tensor->rank, text, sizeof text),
                          type->rank);
    }
    return PITH_OK;
}

/* owner: by symbol, the input whose size decided it. */
static pith_status fail_size(const pith__binder *k, const pith__value *value, int axis,
                             int64_t size, pith__dim wanted, const pith__value *const *owner) {
    char text[128], number[32];
    pith__dim dim = value->type.dims[axis];
    int32_t symbol = pith__dim_symbol_index(k->plan->graph->dims, dim);
    pith__dim_text(k->plan->graph->dims, dim, text, sizeof text);
    pith__dim_text(NULL, wanted, number, sizeof number);
    if (symbol >= 0 && owner[symbol]) {
        return pith__fail(k->err, PITH_ERR_ARGUMENT,
                          "input '" PITH_STR_FMT "' has size %" PRId64
                          " at axis %d, but input '" PITH_STR_FMT "' sets %s to %s",
                          PITH_STR_ARG(value->name), size, axis, PITH_STR_ARG(owner[symbol]->name),
                          text, number);
    }
    return pith__fail(k->err, PITH_ERR_ARGUMENT,
                      "input '" PITH_STR_FMT "' has size %" PRId64 " at axis %d, not %s (%s)",
                      PITH_STR_ARG(value->name), size, axis, number, text);
}

/* Compares every axis of every input with its expression, now that the symbols have values. This
 * finds a fixed size that differs as well as two inputs that disagree about a symbol. An expression
 * over a symbol that no input decided is unknown and passes: the steps that need it are late. */
static pith_status check_sizes(pith__binder *k, const pith__value *const *owner) {
    for (size_t p = 0; p < pith__plan_port_count(k->plan); p++) {
        const pith__value *value = pith__plan_port(k->plan, p);
        const pith_tensor *tensor = &k->how->ports[p];
        if (!tensor->dtype || tensor->dtype >= PITH_DTYPE_COUNT || value->type.data) continue;
        for (int i = 0; i < value->type.rank; i++) {
            pith__dim wanted =
                pith__dim_eval(k->plan->graph->dims, value->type.dims[i], k->binding->symbols);
            if (wanted != PITH_DIM_UNKNOWN && wanted != tensor->dims[i]) {
                return fail_size(k, value, i, tensor->dims[i], wanted, owner);
            }
        }
    }
    return PITH_OK;
}

/* Gives each symbol of the graph a value from the sizes of the inputs. An axis can decide a symbol
 * if its expression is of the form a * symbol + b; the first such axis wins, and check_sizes then
 * holds all others against it. A subgraph begins with the values of the outer graph, so its own
 * inputs decide only what those leave open. */
static pith_status solve_symbols(pith__binder *k) {
    const pith__dims *dims = k->plan->graph->dims;
    size_t count = pith__dims_symbol_count(dims);
    pith__dim *symbols = pith__arena_array(&k->binding->arena, count, sizeof *symbols);
    const pith__value **owner = pith__arena_array(k->how->scratch, count, sizeof *owner);
    if (!symbols || !owner) return bind_out_of_memory(k);
    for (size_t i = 0; i < count; i++)
        symbols[i] = k->how->outer_symbols ? k->how->outer_symbols[i] : PITH_DIM_UNKNOWN;
    for (size_t p = 0; p < pith__plan_port_count(k->plan); p++) {
        const pith__value *value = pith__plan_port(k->plan, p);
        const pith_tensor *tensor = &k->how->ports[p];
        if (!tensor->dtype || tensor->dtype >= PITH_DTYPE_COUNT || value->type.data) continue;
        for (int i = 0; i < value->type.rank; i++) {
            int32_t symbol;
            int64_t size;
            if (!pith__dim_solve(dims, value->type.dims[i], tensor->dims[i], &symbol, &size))
                continue;
            if (symbols[symbol] != PITH_DIM_UNKNOWN) continue;
            symbols[symbol] = size;
            owner[symbol] = value;
        }
    }
    k->binding->symbols = symbols;
    return check_sizes(k, owner);
}

/* Takes dtypes and shapes of the inputs and captures, and solves the symbols in them. A port keeps
 * the bytes that its shape needs, not those it was given, so that the binding fits a later call
 * with a larger buffer. */
static pith_status bind_ports(pith__binder *k) {
    size_t count = pith__plan_port_count(k->plan);
    pith__binding *b = k->binding;
    b->ports = pith__arena_array(&b->arena, count, sizeof *b->ports);
    if (!b->ports) return bind_out_of_memory(k);
    for (size_t p = 0; p < count; p++) {
        const pith__value *value = pith__plan_port(k->plan, p);
        const pith_tensor *tensor = &k->how->ports[p];
        b->ports[p] = *tensor;
        if (value->type.data) continue;
        if (!tensor->dtype) {
            if (value->kind == PITH_VALUE_CAPTURE) continue;
            return pith__fail(k->err, PITH_ERR_ARGUMENT, "input '" PITH_STR_FMT "' is missing",
                              PITH_STR_ARG(value->name));
        }
        PITH_TRY(check_port(value, tensor, k->err));
        if (tensor->dtype < PITH_DTYPE_COUNT)
            (void)pith__tensor_is_sound(tensor, &b->ports[p].bytes);
        b->tensors[value->id] = *tensor;
        k->port_of[value->id] = &b->tensors[value->id];
        if (tensor->dtype < PITH_DTYPE_COUNT) {
            pith__type_set(&k->types[value->id], tensor->dtype, tensor->rank, tensor->dims);
        } else {
            pith__type_init(&k->types[value->id]);
            k->types[value->id].dtype = tensor->dtype;
            k->types[value->id].item_dtype = value->type.item_dtype;
        }
    }
    return solve_symbols(k);
}

/* ---- known contents ---- */

/* A tensor whose elements follow from the sizes of the inputs: computed here, kept with the
 * binding. */
static pith_status keep_elems(pith__binder *k, uint32_t id, int dtype, int rank,
                              const int64_t *dims, const pith__dim *elems) {
    pith_tensor *t = &k->binding->tensors[id];
    int64_t count = pith__dims_count(dims, rank);
    size_t size = dtype == PITH_I64 ? sizeof(int64_t) : sizeof(int32_t);
    *t = (pith_tensor){ .bytes = (size_t)count * size, .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
    t->data = pith__arena_alloc64(&k->binding->arena, t->bytes);
    if (!t->data) return bind_out_of_memory(k);
    for (int64_t i = 0; i < count; i++) {
        pith__dim item = pith__dim_eval(k->plan->graph->dims, elems[i], k->binding->symbols);
        if (item == PITH_DIM_UNKNOWN) {
            return pith__fail(k->err, PITH_ERR_RUN,
                              "element %" PRId64 " of '" PITH_STR_FMT
                              "' does not follow from the inputs' sizes",
                              i, PITH_STR_ARG(k->plan->values[id]->name));
        }
        if (dtype == PITH_I64)
            ((int64_t *)t->data)[i] = item;
        else
            ((int32_t *)t->data)[i] = (int32_t)item;
    }
    pith__type_of_tensor(&k->types[id], t);
    return PITH_OK;
}

/* Enters what no step has to compute: the plan's constants, and integer tensors whose elements are
 * expressions over the inputs' sizes. The type of a constant carries its contents, so that infer
 * and can_run_now may read them. That of a packed constant does not, since the original is gone,
 * nor that of one in a device's memory, which the host cannot read. */
static pith_status bind_known(pith__binder *k) {
    for (size_t i = 0; i < k->plan->value_count; i++) {
        const pith_tensor *constant = k->plan->constants[i];
        if (!constant) continue;
        k->binding->tensors[i] = *constant;
        pith__type_of_tensor(&k->types[i], &k->binding->tensors[i]);
        if (k->plan->values[i]->kind == PITH_VALUE_PACKED || k->plan->memory_of[i])
            k->types[i].data = NULL;
    }
    for (size_t i = 0; i < k->plan->symbolic_count; i++) {
        const pith__value *value = k->plan->symbolic[i];
        PITH_TRY(keep_elems(k, value->id, value->type.dtype, value->type.rank, value->type.dims,
                            value->type.elems));
    }
    return PITH_OK;
}

static bool has_elems(const pith__type *type) {
    if (!type->elems || (type->dtype != PITH_I64 && type->dtype != PITH_I32)) return false;
    int64_t count = pith__type_count(type);
    for (int64_t i = 0; i < count; i++)
        if (!pith__dim_known(type->elems[i])) return false;
    return true;
}

/* ---- places ---- */

static pith_status add_slot(pith__binder *k, int memory, pith__slot slot, uint32_t *index) {
    pith__room *r = &k->rooms[memory];
    if (!pith__arena_grow(k->how->scratch, (void **)&r->slots, r->count, &r->capacity,
                          sizeof *r->slots)) {
        return bind_out_of_memory(k);
    }
    *index = (uint32_t)r->count;
    r->slots[r->count++] = slot;
    return PITH_OK;
}

/* May output 0 take the memory of input j? This step must be the last that needs the memory (the
 * slot ends here, views of it included), both must have the same number of bytes, and the memory
 * must be that of the step. No other input may lie in the same slot, because the operator could
 * read there what it has already overwritten. Elementwise operators are the exception: they read
 * element i of every input before they write element i, so inputs of the output's own shape may
 * share the slot. */
static bool fits_in_place(const pith__binder *k, const pith__step *step,
                          const pith__bound_step *bound, uint32_t index, int j) {
    bool elementwise = step->node->op->flags & PITH_OP_ELEMENTWISE;
    if (j >= step->in_count || !bound->in[j] || k->slot_of[step->in[j]->id] == PITH_NO_SLOT)
        return false;
    if (k->plan->memory_of[step->in[j]->id] != step->memory) return false;
    const pith__slot *slot = pith__binder_slot(k, step->in[j]);
    if (slot->end != index || bound->in[j]->bytes != bound->out[0]->bytes) return false;
    if (elementwise && !pith__tensor_same_shape(bound->in[j], bound->out[0])) return false;
    for (int i = 0; i < step->in_count; i++) {
        if (i == j || !bound->in[i] || k->slot_of[step->in[i]->id] == PITH_NO_SLOT) continue;
        if (pith__binder_slot(k, step->in[i]) != slot) continue;
        if (!elementwise || !pith__tensor_same_shape(bound->in[i], bound->out[0])) return false;
    }
    return true;
}

/* How many of a step's first inputs its output may be written over. Only output 0 may be, over
 * input 0; an elementwise operator may take either of its first two operands. */
static int in_place_inputs(const pith__op *op, int output) {
    if (output > 0 || !(op->flags & PITH_OP_IN_PLACE)) return 0;
    return op->flags & PITH_OP_ELEMENTWISE ? 2 : 1;
}

/* Gives each output a slot: that of an input it may be written over, or a new one that lasts from
 * this step to the last that needs the value. An output that no step reads still needs memory while
 * its own step runs. */
static pith_status place_outputs(pith__binder *k, const pith__step *step,
                                 const pith__bound_step *bound, uint32_t index) {
    for (int i = 0; i < step->out_count; i++) {
        if (!bound->out[i]) continue;
        uint32_t id = step->out[i]->id, end = k->end[id] == UINT32_MAX ? index : k->end[id];
        int candidates = in_place_inputs(step->node->op, i);
        for (int j = 0; j < candidates && k->slot_of[id] == PITH_NO_SLOT; j++) {
            if (!fits_in_place(k, step, bound, index, j)) continue;
            k->slot_of[id] = k->slot_of[step->in[j]->id];
            pith__binder_slot(k, step->out[i])->end = end;
        }
        pith__slot slot = { .bytes = bound->out[i]->bytes, .begin = index, .end = end };
        if (k->slot_of[id] == PITH_NO_SLOT)
            PITH_TRY(add_slot(k, step->memory, slot, &k->slot_of[id]));
    }
    return PITH_OK;
}

/* A view has no memory of its own: it takes the slot of its input, or shows a port or a constant.
 * What shows a port is noted as an alias, because the port's address changes with every run. */
static pith_status place_view(pith__binder *k, const pith__step *step,
                              const pith__bound_step *bound) {
    const pith_tensor *from = bound->in[0];
    pith_tensor *to = bound->out[0];
    if (!to || !from) return PITH_OK;
    uint32_t from_id = step->in[0]->id, id = step->out[0]->id;
    if (from->bytes < to->bytes) {
        return fail_place(
            pith__fail(k->err, PITH_ERR_RUN,
                       "the result has %zu bytes, but the input that it shares has only %zu",
                       to->bytes, from->bytes),
            step, k->err);
    }
    k->slot_of[id] = k->slot_of[from_id];
    k->port_of[id] = k->port_of[from_id];
    k->maker[id] = k->maker[from_id];
    if (k->slot_of[id] != PITH_NO_SLOT) return PITH_OK;
    to->data = from->data;
    if (k->port_of[id]) {
        pith__binding *b = k->binding;
        if (!pith__arena_grow(&b->arena, (void **)&b->aliases, b->alias_count, &k->alias_capacity,
                              sizeof *b->aliases)) {
            return bind_out_of_memory(k);
        }
        b->aliases[b->alias_count++] = (struct pith__alias){ to, k->port_of[id] };
    } else {
        k->types[id].data = to;
    }
    return PITH_OK;
}

/* ---- steps ---- */

/* True if the step can run while the binding is made: the contents of all inputs it reads are
 * known, and its results have at most KNOWN_MAX bytes together. Excluded are random operators,
 * which draw in every run; views, which cost nothing (place_view); steps that own graphs, whose
 * executors exist only in a run; and steps whose results lie in a device's memory. */
static bool can_run_now(const pith__binder *k, const pith__step *step,
                        const pith__bound_step *bound) {
    const pith__op *op = step->node->op;
    if (op->flags & (PITH_OP_RANDOM | PITH_OP_VIEW) || step->subplan_count || step->memory)
        return false;
    const bool reads = !(op->flags & PITH_OP_SHAPE_ONLY);
    for (int i = 0; i < step->in_count; i++)
        if (reads && k->in[i] && !k->in[i]->data) return false;
    size_t bytes = 0;
    for (int i = 0; i < step->out_count; i++) {
        if (!bound->out[i]) continue;
        if (bound->out[i]->bytes > KNOWN_MAX - bytes) return false;
        bytes += bound->out[i]->bytes;
    }
    return true;
}

/* Runs a step on one thread and keeps its results in the binding's arena. The results count as
 * known from here on, so that a chain of shape arithmetic runs to its end while the binding is
 * made, and runs of this binding skip all of it. */
static pith_status run_now(pith__binder *k, const pith__step *step, pith__bound_step *bound) {
    pith__arena *arena = &k->binding->arena;
    pith__lone_exec exec = pith__lone_exec_on(arena, k->plan->isa, k->how->stop);
    pith__run run =
        pith__invoke_run(step->node, step->state, bound->in, bound->out, &exec.exec, k->err);
    run.plan = step;
    run.scratch = pith__arena_alloc64(k->how->scratch, bound->scratch_bytes);
    if (!run.scratch) return bind_out_of_memory(k);
    for (int i = 0; i < step->out_count; i++) {
        if (!bound->out[i]) continue;
        bound->out[i]->data = pith__arena_alloc64(arena, bound->out[i]->bytes);
        if (!bound->out[i]->data) return bind_out_of_memory(k);
    }
    pith_status status = step->run(step->context, &run);
    PITH_TRY(pith__stop_check(k->how->stop, k->err));
    if (status) return fail_place(status, step, k->err);
    for (int i = 0; i < step->out_count; i++)
        if (bound->out[i]) pith__type_of_tensor(&k->types[step->out[i]->id], bound->out[i]);
    return PITH_OK;
}

/* True if nothing can be said of the step before it runs: its output shapes depend on contents, it
 * owns graphs, or the shape of an input is not known. The last condition hands lateness on to every
 * step that reads a late value. */
static bool wanted_late(const pith__binder *k, const pith__step *step) {
    if (step->node->op->flags & PITH_OP_LATE || step->subplan_count) return true;
    for (int i = 0; i < step->in_count; i++)
        if (k->in[i] && !pith__type_is_plain(k->in[i])) return true;
    return false;
}

static void set_late(pith__binder *k, const pith__step *step, pith__bound_step *bound) {
    bound->mode = PITH_BOUND_LATE;
    for (int i = 0; i < step->out_count; i++) {
        if (!step->out[i]) continue;
        pith__type_init(&k->types[step->out[i]->id]);
        k->types[step->out[i]->id].dtype = step->out[i]->type.dtype;
    }
}

/* Decides what a step with known shapes needs of the run. In this order: nothing, if all outputs
 * follow from sizes; a view of its input; its result now, if inputs are known and the result is
 * small; a place in the tail of the step before it; and only then memory and a turn of its own. */
static pith_status settle_step(pith__binder *k, const pith__step *step, pith__bound_step *bound,
                               uint32_t index, pith__infer *c) {
    const pith__op *op = step->node->op;
    bool elems = true, wanted = false;
    for (int i = 0; i < step->out_count; i++) {
        if (!bound->out[i]) continue;
        wanted = true;
        k->types[step->out[i]->id] = k->out[i];
        k->types[step->out[i]->id].data = NULL;
        PITH_TRY(pith__tensor_shape(bound->out[i], &k->out[i], step, k->err));
        elems = elems && !step->memory && has_elems(&k->out[i]);
    }
    bound->mode = PITH_BOUND_SKIP;
    if (!wanted) return PITH_OK;
    if (elems) {
        for (int i = 0; i < step->out_count; i++) {
            const pith__type *type = &k->out[i];
            if (bound->out[i]) {
                PITH_TRY(keep_elems(k, step->out[i]->id, type->dtype, type->rank, type->dims,
                                    type->elems));
            }
        }
        return PITH_OK;
    }
    if (op->flags & PITH_OP_VIEW) return place_view(k, step, bound);
    size_t scratch = 0;
    pith_status status;
    if (step->is_copy && k->how->ends &&
        pith__run_devices_used->settle_copy(k, step, bound, &status))
        return status;
    status = pith__step_scratch(step, c, k->how->threads, &scratch);
    if (status) return fail_place(status, step, k->err);
    bound->scratch_bytes = scratch;
    if (can_run_now(k, step, bound)) return run_now(k, step, bound);
    if (k->how->tails && k->how->tails->join(k, step, bound, index)) return PITH_OK;
    bound->mode = PITH_BOUND_RUN;
    for (int i = 0; i < step->out_count; i++)
        if (step->out[i]) k->maker[step->out[i]->id] = index;
    PITH_TRY(place_outputs(k, step, bound, index));
    uint32_t slot;
    if (!scratch) return PITH_OK;
    bound->scratch = k->rooms[step->memory].count;
    return add_slot(k, step->memory, (pith__slot){ .bytes = scratch, .begin = index, .end = index },
                    &slot);
}

/* An output whose shape infer does not know yet, used or not: scratch reads the shapes of both. */
static bool unsettled(const pith__binder *k, const pith__bound_step *bound, size_t i) {
    return (bound->out[i] || k->out[i].dtype) && !pith__type_is_plain(&k->out[i]);
}

/* A capture that the owner of the subgraph does not have, or its copy. */
static bool is_absent(const pith__binder *k, const pith__value *value) {
    if (value->id >= k->plan->graph->value_count && value->producer)
        value = value->producer->inputs[0];
    return value->kind == PITH_VALUE_CAPTURE && !value->type.data && !k->port_of[value->id];
}

/* Infers the shapes of a step's outputs from the sizes bound so far. Where one does not follow, the
 * step is late: its outputs get no place here, and everything that reads them becomes late as well.
 */
static pith_status bind_step(pith__binder *k, uint32_t index) {
    const pith__step *step = &k->plan->steps[index];
    pith__bound_step *bound = &k->binding->steps[index];
    pith__binding *b = k->binding;
    PITH_TRY(pith__stop_check(k->how->stop, k->err));
    size_t in_room = pith__node_in_room(step->node);
    bound->in = pith__arena_array(&b->arena, in_room, sizeof *bound->in);
    bound->out = pith__arena_array(&b->arena, pith__node_out_room(step->node), sizeof *bound->out);
    bound->children = pith__arena_array(&b->arena, step->subplan_count, sizeof *bound->children);
    if (!bound->in || !bound->out || !bound->children) return bind_out_of_memory(k);
    memset(k->in, 0, in_room * sizeof *k->in);
    for (int i = 0; i < step->in_count; i++) {
        const pith__value *value = step->in[i];
        bool absent = !value || is_absent(k, value);
        bound->in[i] = absent ? NULL : &b->tensors[value->id];
        k->in[i] = absent ? NULL : &k->types[value->id];
    }
    for (int i = 0; i < step->out_count; i++) {
        const pith__value *value = step->out[i];
        bool wanted = value && (i == 0 || k->plan->last_use[value->id] != UINT32_MAX);
        bound->out[i] = wanted ? &b->tensors[value->id] : NULL;
    }
    if (step->is_copy && !bound->in[0]) {
        bound->mode = PITH_BOUND_SKIP;
        return PITH_OK;
    }
    bool late = wanted_late(k, step);
    pith__infer c = pith__invoke_infer(step->node, k->in, k->out, k->how->scratch, k->err);
    if (!late) PITH_TRY(pith__step_infer(step, &c));
    for (size_t i = 0; i < pith__node_out_room(step->node) && !late; i++)
        late = unsettled(k, bound, i);
    if (!late) return settle_step(k, step, bound, index, &c);
    set_late(k, step, bound);
    return PITH_OK;
}

/* Sets for each value the last step that needs its memory: its own last reader, or the last reader
 * of a view of it. Steps are visited backward, so that a view of a view has handed on its end
 * before the value it shows is reached. */
static pith_status find_ends(pith__binder *k) {
    memcpy(k->end, k->plan->last_use, k->plan->value_count * sizeof *k->end);
    if (k->how->ends) PITH_TRY(pith__run_devices_used->keep(k));
    for (size_t i = k->plan->step_count; i-- > 0;) {
        const pith__step *step = &k->plan->steps[i];
        if (!(step->node->op->flags & PITH_OP_VIEW) || !step->in_count || !step->out_count ||
            !step->in[0] || !step->out[0]) {
            continue;
        }
        uint32_t shown = k->end[step->out[0]->id], *own = &k->end[step->in[0]->id];
        if (shown != UINT32_MAX && (*own == UINT32_MAX || *own < shown)) *own = shown;
    }
    return PITH_OK;
}

static int compare_ends(const void *a, const void *b) {
    const pith__slot *x = a, *y = b;
    return (x->end > y->end) - (x->end < y->end);
}

/* Keeps the slots in the order of their ends, for builds that overwrite memory as soon as no step
 * needs it (PITH_POISON). There a value that is read after its end is garbage in every run, not
 * only when another value happens to lie in its place. */
static pith_status keep_dying(pith__binder *k) {
    const pith__room *host = &k->rooms[0];
    pith__slot *dying = pith__arena_array(&k->binding->arena, host->count, sizeof *dying);
    if (!dying) return bind_out_of_memory(k);
    if (host->count) {
        memcpy(dying, host->slots, host->count * sizeof *dying);
        qsort(dying, host->count, sizeof *dying, compare_ends);
    }
    k->binding->dying = dying;
    k->binding->dying_count = host->count;
    return PITH_OK;
}

/* The slots of all memories as separate ones; first[m]: the number before those of memory m. */
static pith_status keep_separate(pith__binder *k, size_t *first) {
    pith__separate *s = &k->binding->separate;
    pith__arena *arena = &k->binding->arena;
    size_t memories = k->plan->devices->memory_count, steps = k->plan->step_count;
    for (size_t m = 0; m < memories; m++) {
        first[m] = s->count;
        s->count += k->rooms[m].count;
    }
    s->slots = pith__arena_array(arena, s->count + 1, sizeof *s->slots);
    s->begins = pith__arena_array(arena, steps + 1, sizeof *s->begins);
    s->ends = pith__arena_array(arena, steps + 1, sizeof *s->ends);
    if (!s->slots || !s->begins || !s->ends) return bind_out_of_memory(k);
    for (size_t m = 0; m < memories; m++)
        for (size_t i = 0; i < k->rooms[m].count; i++) {
            const pith__slot *slot = &k->rooms[m].slots[i];
            size_t number = first[m] + i + 1;
            s->slots[number] = (pith__separate_slot){ .bytes = slot->bytes,
                                                      .memory = (int)m,
                                                      .next_begin = s->begins[slot->begin],
                                                      .next_end = s->ends[slot->end] };
            s->begins[slot->begin] = s->ends[slot->end] = number;
        }
    return PITH_OK;
}

/* Finds the outputs that a run can compute straight in the memory its caller bound to them. Such an
 * output has a slot, and everything in that slot moves with it: what the output was written over,
 * and its views. If two outputs share a slot, the first has it; the other one is copied. owner: by
 * memory and slot, 1 + index of the output. */
static pith_status find_movable(pith__binder *k, size_t **owner) {
    pith__binding *b = k->binding;
    const size_t count = k->plan->graph->output_count;
    b->outputs = pith__arena_array(&b->arena, count, sizeof *b->outputs);
    if (!b->outputs) return bind_out_of_memory(k);
    for (size_t m = 0; m < k->plan->devices->memory_count; m++) {
        owner[m] = pith__arena_array(k->how->scratch, k->rooms[m].count, sizeof **owner);
        if (!owner[m]) return bind_out_of_memory(k);
    }
    for (size_t i = 0; i < count; i++) {
        const pith__value *value = k->plan->outputs[i];
        if (k->how->ends) value = pith__run_devices_used->source(k->plan, k->how->ends, i);
        const uint32_t id = value->id, slot = k->slot_of[id];
        const int memory = k->plan->memory_of[id];
        b->outputs[i].known =
            b->tensors[id].dtype != PITH_UNDEFINED && b->tensors[id].dtype < PITH_DTYPE_COUNT;
        if (slot == PITH_NO_SLOT || owner[memory][slot]) continue;
        b->outputs[i].movable = true;
        b->outputs[i].memory = memory;
        owner[memory][slot] = i + 1;
    }
    return PITH_OK;
}

/* Which steps run side by side, and that their memory lasts as long as they do. */
static pith_status find_regions(pith__binder *k) {
    pith__binding *b = k->binding;
    pith__room *host = &k->rooms[0];
    pith__branch_search search = { .plan = k->plan,
                                   .binding = b,
                                   .slot_of = k->slot_of,
                                   .slot_count = host->count,
                                   .threads = k->how->threads,
                                   .at_once = k->how->branches,
                                   .scratch = k->how->scratch,
                                   .arena = &b->arena };
    if (search.at_once < 2 || search.threads < 2 || !k->how->beside) return PITH_OK;
    if (k->how->beside->find(&b->regions, &b->region_count, &search)) return bind_out_of_memory(k);
    k->how->beside->widen(host->slots, host->count, b->regions, b->region_count);
    return PITH_OK;
}

/* Slots to offsets, per memory, and from them the place of each value that has a slot. Several
 * values may share one: views, and results that were written over an input. Regions come first,
 * since they lengthen the life of slots. */
static pith_status place_all(pith__binder *k) {
    pith__binding *b = k->binding;
    size_t values = k->plan->value_count;
    PITH_TRY(find_regions(k));
    size_t *first =
        pith__arena_array(k->how->scratch, k->plan->devices->memory_count, sizeof *first);
    if (!first) return bind_out_of_memory(k);
    for (size_t m = 0; m < k->plan->devices->memory_count; m++) {
        if (pith__slots_place(k->rooms[m].slots, k->rooms[m].count, k->plan->step_count,
                              &b->memories[m].bytes, k->how->scratch)) {
            return bind_out_of_memory(k);
        }
    }
    if (k->how->separate) PITH_TRY(keep_separate(k, first));
    size_t **owner =
        pith__arena_array(k->how->scratch, k->plan->devices->memory_count, sizeof *owner);
    if (!owner) return bind_out_of_memory(k);
    PITH_TRY(find_movable(k, owner));
    size_t placed = 0;
    for (size_t i = 0; i < values; i++) placed += k->slot_of[i] != PITH_NO_SLOT;
    b->placed = pith__arena_array(&b->arena, placed, sizeof *b->placed);
    if (!b->placed) return bind_out_of_memory(k);
    for (size_t i = 0; i < values; i++) {
        if (k->slot_of[i] == PITH_NO_SLOT) continue;
        int memory = k->plan->memory_of[i];
        size_t offset = k->rooms[memory].slots[k->slot_of[i]].offset;
        pith__separate_slot *own =
            k->how->separate ? &b->separate.slots[first[memory] + k->slot_of[i] + 1] : NULL;
        size_t output = owner[memory][k->slot_of[i]];
        if (output && b->tensors[i].bytes > b->outputs[output - 1].bytes)
            b->outputs[output - 1].bytes = b->tensors[i].bytes;
        b->placed[b->placed_count++] = (struct pith__placed){ .tensor = &b->tensors[i],
                                                              .offset = offset,
                                                              .memory = memory,
                                                              .output = output,
                                                              .next = own ? own->first : 0 };
        if (own) own->first = b->placed_count;
    }
    for (size_t i = 0; i < k->plan->step_count; i++) {
        pith__bound_step *bound = &b->steps[i];
        if (bound->mode != PITH_BOUND_RUN || !bound->scratch_bytes) continue;
        if (k->how->separate)
            bound->scratch += first[k->plan->steps[i].memory] + 1;
        else
            bound->scratch = k->rooms[k->plan->steps[i].memory].slots[bound->scratch].offset;
    }
    return PITH_POISONS ? keep_dying(k) : PITH_OK;
}

/* One walk over the steps in their order: each finds the shapes of its inputs bound. The cost is
 * linear in the steps, but for the placing, which takes log n per slot. */
pith_status pith__binding_make(pith__binding *binding, const pith__bind *how) {
    const pith__plan *plan = how->plan;
    size_t values = plan->value_count, memories = plan->devices->memory_count;
    pith__binder k = { .binding = binding, .how = how, .plan = plan, .err = how->err };
    binding->threads = how->threads;
    binding->tensors = pith__arena_array(&binding->arena, values, sizeof *binding->tensors);
    binding->steps = pith__arena_array(&binding->arena, plan->step_count, sizeof *binding->steps);
    binding->memories = pith__arena_array(&binding->arena, memories, sizeof *binding->memories);
    k.rooms = pith__arena_array(how->scratch, memories, sizeof *k.rooms);
    k.types = pith__arena_array(how->scratch, values, sizeof *k.types);
    k.slot_of = pith__arena_array(how->scratch, values, sizeof *k.slot_of);
    k.end = pith__arena_array(how->scratch, values, sizeof *k.end);
    k.port_of = pith__arena_array(how->scratch, values, sizeof *k.port_of);
    k.maker = pith__arena_array(how->scratch, values, sizeof *k.maker);
    k.in = pith__arena_array(how->scratch, plan->widest_in, sizeof *k.in);
    k.out = pith__arena_array(how->scratch, plan->widest_out, sizeof *k.out);
    if (!binding->tensors || !binding->steps || !binding->memories || !k.rooms || !k.types ||
        !k.slot_of || !k.end || !k.port_of || !k.maker || !k.in || !k.out) {
        return bind_out_of_memory(&k);
    }
    memset(k.slot_of, 0xFF, values * sizeof *k.slot_of);
    memset(k.maker, 0xFF, values * sizeof *k.maker);
    PITH_TRY(find_ends(&k));
    PITH_TRY(bind_ports(&k));
    PITH_TRY(bind_known(&k));
    for (size_t i = 0; i < plan->step_count; i++) PITH_TRY(bind_step(&k, (uint32_t)i));
    PITH_TRY(place_all(&k));
    assert(pith__binding_check(binding, plan, NULL) != PITH_ERR_FORMAT);
    return PITH_OK;
}
