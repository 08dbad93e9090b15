/* device_ends.c - inputs and outputs in the memory of a device.
 *
 * The plan has inputs and outputs in host memory, with copies behind and in front of them. Where a
 * run has one in the memory of a device, the copy to or from that memory is left out: the value
 * that it would make is the caller's tensor, and the value that it would read is the result.
 * Nothing is written over a caller's input. Steps that read such an input elsewhere get a copy in
 * host memory, made before the first step. A binding holds for the memories that it was made for.
 */
#include "engine/exec/device_ends.h"

#include <string.h>

#include "base/dtype.h"
#include "base/text_out.h"
#include "engine/exec/output_target.h"

static size_t ends_outputs(const pith__plan *plan) { return pith__plan_port_count(plan); }

static pith_status ends_failed(const pith__executor *e, const pith__device *d, pith_status status) {
    if (status && !pith__status_stops(status) && !e->tree->failed) e->tree->failed = d;
    return status;
}

/* ---- what the caller says ---- */

static pith_status ends_no_device(const pith__devices *devices, const char *what, pith_str name,
                                  int32_t number, pith_error *err) {
    char list[300];
    pith__text_out out = pith__text_begin(list, sizeof list);
    for (size_t i = 0; i < devices->count; i++) {
        const pith__device *d = &devices->items[i];
        if (d->choice->number == number)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "%s '" PITH_STR_FMT "': device %d, '%s', has no memory of its own; "
                              "what is in host memory has device 0",
                              what, PITH_STR_ARG(name), number, d->choice->name);
        if (d->memory)
            pith__text_put(&out, "%s%d ('%s')", out.used ? ", " : "", d->choice->number,
                           d->choice->name);
    }
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "%s '" PITH_STR_FMT
                      "': the model does not run on device %d; its devices with "
                      "memory are %s",
                      what, PITH_STR_ARG(name), number, out.used ? list : "none");
}

/* The memory of the device of a tensor. */
static pith_status ends_find(int *memory, const pith__executor *e, const pith_tensor *t,
                             const char *what, pith_str name, pith_error *err) {
    const pith__devices *devices = e->plan->devices;
    *memory = 0;
    for (size_t m = 1; m < devices->memory_count && !*memory; m++)
        if (devices->memories[m]->choice->number == t->device) *memory = (int)m;
    if (!*memory) return ends_no_device(devices, what, name, t->device, err);
    const pith__device *d = devices->memories[*memory];
    if (t->dtype == PITH_STRING || t->dtype >= PITH_DTYPE_COUNT)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s '" PITH_STR_FMT "' is %s, which is in host memory only", what,
                          PITH_STR_ARG(name), pith__dtype_name(t->dtype));
    if (t->data && (uintptr_t)t->data % pith__dtype_alignment(t->dtype))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s '" PITH_STR_FMT "' is not aligned to its type, %s", what,
                          PITH_STR_ARG(name), pith__dtype_name(t->dtype));
    if (t->data && t->bytes && d->backend->holds &&
        !d->backend->holds(d->context, t->data, t->bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s '" PITH_STR_FMT
                          "': its %zu bytes are not in the memory of device %d, "
                          "'%s'",
                          what, PITH_STR_ARG(name), t->bytes, t->device, d->choice->name);
    if (t->stream && (!d->backend->await || !d->backend->follow))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s '" PITH_STR_FMT "' has a stream; device %d, '%s', has none", what,
                          PITH_STR_ARG(name), t->device, d->choice->name);
    return PITH_OK;
}

static bool ends_wanted(const pith__executor *e, size_t output) {
    return !e->wanted || e->wanted[output];
}

/* Work that the last run left: its outputs were to be ready when a stream gets there. */
static pith_status ends_settle(const pith__executor *e, pith_error *err) {
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) {
        const uint64_t mark = e->devices->left[m];
        e->devices->left[m] = 0;
        if (mark) PITH_TRY(pith__device_wait(e, e->plan->devices->memories[m], mark, NULL, err));
    }
    return PITH_OK;
}

pith_status pith__device_ends_begin(pith__executor *e, pith_error *err) {
    pith__executor_devices *d = e->devices;
    const size_t first = ends_outputs(e->plan), count = e->plan->graph->output_count;
    if (d) PITH_TRY(ends_settle(e, err));
    if (d) memset(d->ends, 0, first + count);
    if (d) d->any = false;
    if (!e->targets) return PITH_OK;
    for (size_t i = 0; i < count; i++) {
        int memory;
        if (!e->targets[i].device || !ends_wanted(e, i)) continue;
        PITH_TRY(
            ends_find(&memory, e, &e->targets[i], "output", e->plan->graph->outputs[i]->name, err));
        d->ends[first + i] = (uint8_t)memory;
        d->any = true;
    }
    return PITH_OK;
}

/* ---- ports ---- */

/* A step that reads a value which shows a port; bit m of the result: it reads host memory if the
 * port is in memory m. */
static uint64_t ends_reads(const pith__step *step, int input) {
    const uint32_t flags = step->node->op->flags;
    if (flags & PITH_OP_SHAPE_ONLY || (flags & PITH_OP_VIEW && input == 0)) return 0;
    return step->is_copy && step->memory ? ~(UINT64_C(1) << step->memory) : UINT64_MAX;
}

/* Follows views, which show what they read. */
static pith_status ends_find_readers(pith__executor *e, pith_error *err) {
    const pith__plan *plan = e->plan;
    uint64_t *readers = e->devices->readers;
    pith__arena_reset(&e->scratch);
    uint32_t *shows = pith__arena_array(&e->scratch, plan->value_count, sizeof *shows);
    if (!shows) return pith__fail_memory(err, plan->value_count * sizeof *shows);
    for (size_t p = 0; p < pith__plan_port_count(plan); p++)
        shows[pith__plan_port(plan, p)->id] = (uint32_t)p + 1;
    for (size_t i = 0; i < plan->step_count; i++) {
        const pith__step *step = &plan->steps[i];
        for (int k = 0; k < step->in_count; k++)
            if (step->in[k] && shows[step->in[k]->id])
                readers[shows[step->in[k]->id] - 1] |= ends_reads(step, k);
        if (step->node->op->flags & PITH_OP_VIEW && step->in_count && step->in[0] && step->out[0])
            shows[step->out[0]->id] = shows[step->in[0]->id];
    }
    for (size_t i = 0; i < plan->graph->output_count; i++)
        if (shows[plan->outputs[i]->id]) readers[shows[plan->outputs[i]->id] - 1] = UINT64_MAX;
    e->devices->readers_known = true;
    return PITH_OK;
}

pith_status pith__device_ends_take_port(pith__executor *e, size_t port, const pith_tensor *given,
                                        pith_error *err) {
    pith__executor_devices *ends = e->devices;
    const pith_str name = pith__plan_port(e->plan, port)->name;
    pith_tensor *t = &e->ports[port];
    int memory;
    PITH_TRY(ends_find(&memory, e, given, "input", name, err));
    if (!pith__tensor_is_sound(given, NULL))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "input '" PITH_STR_FMT "': %zu bytes of data do not hold its shape",
                          PITH_STR_ARG(name), given->bytes);
    const pith__device *d = e->plan->devices->memories[memory];
    if (given->stream)
        PITH_TRY(ends_failed(e, d, d->backend->await(d->context, given->stream, err)));
    if (!ends->readers_known) PITH_TRY(ends_find_readers(e, err));
    ends->ports[port] = *given;
    ends->ends[port] = (uint8_t)memory;
    ends->any = true;
    *t = *given;
    t->device = 0;
    t->stream = NULL;
    const bool copied = ends->readers[port] >> memory & 1;
    pith__executor_note(e, copied ? PITH_COUNT_tensors_copied : PITH_COUNT_tensors_bound, 1);
    if (!copied) return PITH_OK;
    t->data = pith__late_alloc(e, t->bytes);
    if (!t->data) return pith__fail_memory(err, t->bytes);
    if (!t->bytes) return PITH_OK;
    return ends_failed(
        e, d, d->backend->copy(d->context, t->data, given->data, t->bytes, PITH_COPY_TO_HOST, err));
}

/* ---- bindings ---- */

bool pith__device_ends_fit(const pith__executor *e, const pith__binding *b) {
    const size_t count = ends_outputs(e->plan) + e->plan->graph->output_count;
    return b->ends ? !memcmp(b->ends, e->devices->ends, count) : !e->devices->any;
}

const pith__value *pith__device_ends_source(const pith__plan *plan, const uint8_t *ends,
                                            size_t output) {
    const pith__value *value = plan->outputs[output];
    const int memory = ends[ends_outputs(plan) + output];
    if (!memory || value->id < plan->graph->value_count || !value->producer) return value;
    const pith__value *from = value->producer->inputs[0];
    return plan->memory_of[from->id] == memory ? from : value;
}

pith_status pith__device_ends_keep(pith__binder *k) {
    const pith__plan *plan = k->plan;
    const size_t outputs = plan->graph->output_count, count = ends_outputs(plan) + outputs;
    uint8_t *ends = pith__arena_array(&k->binding->arena, count, sizeof *ends);
    if (!ends) return pith__fail_memory(k->err, count);
    memcpy(ends, k->how->ends, count);
    k->binding->ends = ends;
    for (size_t i = 0; i < outputs; i++) {
        const pith__value *from = pith__device_ends_source(plan, ends, i);
        if (ends[ends_outputs(plan) + i] && from->kind == PITH_VALUE_NODE)
            k->end[from->id] = (uint32_t)plan->step_count;
    }
    return PITH_OK;
}

/* The port whose memory a value shows. */
static bool ends_port_of(const pith__binder *k, const pith__value *value, size_t *port) {
    if (!k->port_of[value->id]) return false;
    for (size_t p = 0; p < pith__plan_port_count(k->plan); p++) {
        *port = p;
        if (k->port_of[value->id] == &k->binding->tensors[pith__plan_port(k->plan, p)->id])
            return true;
    }
    return false;
}

static bool ends_has_reader(const pith__plan *plan, const pith__value *value) {
    for (size_t i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].in_count; k++)
            if (plan->steps[i].in[k] == value) return true;
    return false;
}

/* What a copy from a device to the host makes is read by nobody if every output it becomes stays in
 * that device's memory. */
static bool ends_stays(const pith__binder *k, const pith__step *step) {
    const pith__plan *plan = k->plan;
    bool output = false;
    for (size_t i = 0; i < plan->graph->output_count; i++) {
        if (plan->outputs[i] != step->out[0]) continue;
        if (pith__device_ends_source(plan, k->how->ends, i) != step->in[0]) return false;
        output = true;
    }
    return output && !ends_has_reader(plan, step->out[0]);
}

bool pith__device_ends_settle_copy(pith__binder *k, const pith__step *step,
                                   const pith__bound_step *bound, pith_status *status) {
    pith__binding *b = k->binding;
    size_t port;
    *status = PITH_OK;
    if (!step->memory) return ends_stays(k, step);
    if (!ends_port_of(k, step->in[0], &port) || k->how->ends[port] != step->memory) return false;
    if (!pith__arena_grow(&b->arena, (void **)&b->device_aliases, b->device_alias_count,
                          &k->device_alias_capacity, sizeof *b->device_aliases)) {
        *status = pith__fail_memory(k->err, sizeof *b->device_aliases);
        return true;
    }
    b->device_aliases[b->device_alias_count++] = (pith__device_alias){ bound->out[0], port };
    k->port_of[step->out[0]->id] = bound->out[0];
    return true;
}

/* ---- addresses ---- */

bool pith__device_ends_take(const pith__executor *e, size_t output, int memory) {
    const pith__executor_devices *d = e->devices;
    if (d->ends[ends_outputs(e->plan) + output] != memory) return false;
    if (!memory) return true;
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++)
        if (d->ends[p] == memory && pith__target_touches(&e->targets[output], &d->ports[p]))
            return false;
    return true;
}

void pith__device_ends_set_addresses(const pith__executor *e, pith__binding *b) {
    for (size_t i = 0; i < b->device_alias_count; i++)
        b->device_aliases[i].tensor->data = e->devices->ports[b->device_aliases[i].port].data;
}

/* ---- the end of a run ---- */

static bool ends_is_lent(const pith__executor *e, const pith_tensor *t, int memory) {
    const pith__executor_devices *d = e->devices;
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++)
        if (d->ends[p] == memory && pith__target_touches(&d->ports[p], t)) return true;
    return false;
}

/* Puts the result where the caller wants it, or keeps it in memory of the executor. */
static pith_status ends_put(pith__executor *e, pith_tensor *result, const pith_tensor *target,
                            int memory, bool there, pith_error *err) {
    const pith__device *d = e->plan->devices->memories[memory];
    void *to = target->data;
    if (!to && (!there || ends_is_lent(e, result, memory))) {
        to = pith__late_alloc_in(e, memory, result->bytes);
        if (!to) return pith__device_functions_used->no_memory(d, result->bytes, "an output", err);
    }
    const bool moves = to && to != result->data && result->bytes;
    pith__executor_note(e, moves ? PITH_COUNT_tensors_copied : PITH_COUNT_tensors_bound, 1);
    if (moves)
        PITH_TRY(
            ends_failed(e, d,
                        d->backend->copy(d->context, to, result->data, result->bytes,
                                         there ? PITH_COPY_WITHIN : PITH_COPY_TO_DEVICE, err)));
    if (to) result->data = to;
    result->device = target->device;
    result->stream = target->stream;
    return PITH_OK;
}

/* With a stream it goes on where the device is done, without one the run waits for that. */
static pith_status ends_hand_over(pith__executor *e, const pith_tensor *target, int memory,
                                  pith_error *err) {
    const pith__device *d = e->plan->devices->memories[memory];
    if (!d->backend->mark) return PITH_OK;
    const uint64_t mark = d->backend->mark(d->context);
    if (!target->stream) return pith__device_wait(e, d, mark, NULL, err);
    e->devices->left[memory] = mark;
    return ends_failed(e, d, d->backend->follow(d->context, target->stream, err));
}

static pith_status ends_finish(pith__executor *e, const pith__binding *b, pith_tensor *outputs,
                               pith_error *err) {
    const pith__plan *plan = e->plan;
    const uint8_t *ends = e->devices->ends + ends_outputs(plan);
    for (size_t i = 0; i < plan->graph->output_count; i++) {
        if (!ends[i]) continue;
        const pith_tensor *target = &e->targets[i];
        const pith__value *from = pith__device_ends_source(plan, e->devices->ends, i);
        const bool there = plan->memory_of[from->id] == ends[i];
        const pith_str name = plan->graph->outputs[i]->name;
        outputs[i] = b->tensors[from->id];
        if (outputs[i].dtype >= PITH_DTYPE_COUNT || outputs[i].dtype == PITH_STRING)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "output '" PITH_STR_FMT "' is %s, which is in host memory only",
                              PITH_STR_ARG(name), pith__dtype_name(outputs[i].dtype));
        if (target->data) PITH_TRY(pith__target_check(target, &outputs[i], name, err));
        PITH_TRY(ends_put(e, &outputs[i], target, ends[i], there, err));
    }
    for (size_t i = 0; i < plan->graph->output_count; i++)
        if (ends[i]) PITH_TRY(ends_hand_over(e, &e->targets[i], ends[i], err));
    return PITH_OK;
}

pith_status pith__device_ends_finish(pith__executor *e, pith__binding *b, pith_tensor *outputs,
                                     pith_error *err) {
    if (!e->devices->any) return PITH_OK;
    const pith_status status = ends_finish(e, b, outputs, err);
    if (status) pith__device_drain(e);
    pith__late_count(e);
    return status;
}

bool pith__device_ends_bound(const pith__executor *e, const pith_tensor *inputs,
                             const pith_tensor *targets, const pith__device_choice *choice,
                             pith_error *err) {
    bool bound = false;
    for (size_t i = 0; i < e->plan->graph->input_count; i++)
        bound = bound || inputs[i].device == choice->number;
    const size_t wanted = targets ? e->plan->graph->output_count : 0;
    for (size_t i = 0; i < wanted; i++)
        bound = bound || (targets[i].device == choice->number && ends_wanted(e, i));
    if (bound)
        pith__fail_at(
            err, err ? err->code : PITH_ERR_RUN,
            "tensors of the run lie in the memory of '%s', so no other device can do it: ",
            choice->name);
    return bound;
}
