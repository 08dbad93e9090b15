/* device_runs.c - the steps of a run with several memories, and the copies beside them.
 *
 * A copy between the host's memory and a device's is begun, and the run goes on with the next step.
 * Before each step the copies under way are looked at: a step waits for a copy that writes what it
 * reads, and for one that reads or writes where it writes. Within a device order is the backend's.
 * At the end, and after an error, the run waits for all copies, since they use the host's memory.
 */
#include "engine/exec/device_runs.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/memory/poison.h"
#include "base/os/clock.h"
#include "engine/exec/device_ends.h"
#include "engine/ops/shared/call_op.h"
#include "engine/plan/placement.h"

/* Looks at work under way that are made without a pause, where the run may have to stop. Then each
 * look comes PAUSE_NS after the last, so that a long program of a device costs the host nothing. */
#define LOOKS 200
#define PAUSE_NS 50000

/* ---- waiting ---- */

static pith_status device_failed(const pith__executor *e, const pith__device *d,
                                 pith_status status) {
    if (status && !pith__status_stops(status) && !e->tree->failed) e->tree->failed = d;
    return status;
}

/* The same, for the caller: the message gets the place of the step. */
static pith_status device_failed_at(const pith__executor *e, const pith__device *d, size_t step,
                                    pith_status status, pith_error *err) {
    char place[256];
    if (!device_failed(e, d, status) || pith__status_stops(status)) return status;
    return pith__fail_at(err, status,
                         "%s: ", pith__node_place(e->plan->steps[step].node, place, sizeof place));
}

pith_status pith__device_wait(const pith__executor *e, const pith__device *d, uint64_t mark,
                              pith__stop *stop, pith_error *err) {
    bool done = false;
    for (int looks = 0; !done; looks++) {
        PITH_TRY(device_failed(e, d, d->backend->poll(d->context, mark, !stop, &done, err)));
        if (done || !stop) break;
        PITH_TRY(pith__stop_check(stop, err));
        if (looks < LOOKS)
            sched_yield();
        else
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    }
    return PITH_OK;
}

/* ---- flights ---- */

static void flight_tell(const pith__running *r, const pith__flight *f) {
    const pith__executor *e = r->executor;
    if (!e->tree->trace) return;
    const pith__step *step = &e->plan->steps[f->step];
    const pith__bound_step *bound = &r->binding->steps[f->step];
    pith__exec exec = r->exec;
    const pith__run run =
        pith__invoke_run(step->node, step->state, bound->in, bound->out, &exec, NULL);
    const pith__trace_event event = { .step = step,
                                      .index = f->step,
                                      .device = f->device,
                                      .depth = e->depth,
                                      .begin_ns = f->begin_ns,
                                      .end_ns = pith__clock_ns(),
                                      .run = &run };
    e->tree->trace(e->tree->trace_context, &event);
}

/* It is done. */
static void flight_land(const pith__running *r, size_t index) {
    pith__executor_devices *d = r->executor->devices;
    const pith__flight f = d->flights[index];
    if (f.beside && f.host) d->beside[f.device->memory]++;
    memmove(&d->flights[index], &d->flights[index + 1],
            (--d->flight_count - index) * sizeof *d->flights);
    flight_tell(r, &f);
}

static pith_status flight_wait(const pith__running *r, size_t index, pith_error *err) {
    const pith__executor *e = r->executor;
    const pith__flight *f = &e->devices->flights[index];
    const pith_status status = pith__device_wait(e, f->device, f->mark, r->exec.stop, err);
    PITH_TRY(device_failed_at(e, f->device, f->step, status, err));
    flight_land(r, index);
    return PITH_OK;
}

static pith_status flights_wait(const pith__running *r, pith_error *err) {
    while (r->executor->devices->flight_count) PITH_TRY(flight_wait(r, 0, err));
    return PITH_OK;
}

/* Lands what is done, and notes of the others that a step begins beside them. */
static pith_status flights_look(const pith__running *r, pith_error *err) {
    const pith__executor *e = r->executor;
    pith__executor_devices *d = e->devices;
    for (size_t i = 0; i < d->flight_count;) {
        pith__flight *f = &d->flights[i];
        bool done = false;
        const pith_status status =
            f->device->backend->poll(f->device->context, f->mark, false, &done, err);
        PITH_TRY(device_failed_at(e, f->device, f->step, status, err));
        if (done) {
            flight_land(r, i);
        } else {
            f->beside = true;
            i++;
        }
    }
    return PITH_OK;
}

static pith_status flight_begin(const pith__running *r, const pith__flight *f, pith_error *err) {
    pith__executor_devices *d = r->executor->devices;
    if (d->flight_count == PITH_FLIGHTS_MOST) PITH_TRY(flight_wait(r, 0, err));
    d->flights[d->flight_count++] = *f;
    return PITH_OK;
}

/* After an error: nobody may be told, and nothing may be left that uses the host's memory. */
void pith__device_drain(const pith__executor *e) {
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) {
        const pith__device *device = e->plan->devices->memories[m];
        bool done;
        if (device->backend->mark)
            (void)device->backend->poll(device->context, device->backend->mark(device->context),
                                        true, &done, NULL);
    }
    e->devices->flight_count = 0;
}

/* ---- which steps must wait ---- */

static bool spans_meet(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static bool flight_meets(const pith__flight *f, const pith_tensor *t) {
    return t && t->data && t->bytes && spans_meet(f->host, f->bytes, t->data, t->bytes);
}

static bool step_reads(const pith__executor *e, const pith__binding *b, size_t index,
                       const pith__flight *f) {
    const pith__step *step = &e->plan->steps[index];
    const pith__bound_step *bound = &b->steps[index];
    for (int i = 0; i < step->in_count; i++)
        if (step->in[i] && !e->plan->memory_of[step->in[i]->id] && flight_meets(f, bound->in[i]))
            return true;
    for (int i = 0; i < bound->tail_count; i++)
        if (step_reads(e, b, bound->tail[i], f)) return true;
    return false;
}

/* A late step writes to memory that it takes anew. */
static bool step_writes(const pith__executor *e, const pith__binding *b, size_t index,
                        const pith__flight *f) {
    const pith__step *step = &e->plan->steps[index];
    const pith__bound_step *bound = &b->steps[index];
    if (step->memory || bound->mode == PITH_BOUND_LATE) return false;
    for (int i = 0; i < step->out_count; i++)
        if (flight_meets(f, bound->out[i])) return true;
    const char *buffer = e->level->buffers[0].data;
    return bound->scratch_bytes && buffer &&
           spans_meet(f->host, f->bytes, buffer + bound->scratch, bound->scratch_bytes);
}

/* Steps side by side, steps that own graphs, and memory that is given back or overwritten when a
 * step ends wait for all copies. */
static pith_status flights_clear(const pith__running *r, bool many, pith_error *err) {
    const pith__executor *e = r->executor;
    pith__executor_devices *d = e->devices;
    if (many || e->options.separate || PITH_POISONS || e->plan->steps[r->step].subplan_count)
        return flights_wait(r, err);
    for (size_t i = 0; i < d->flight_count;) {
        const pith__flight *f = &d->flights[i];
        if (f->host && ((f->writes && step_reads(e, r->binding, r->step, f)) ||
                        step_writes(e, r->binding, r->step, f)))
            PITH_TRY(flight_wait(r, i, err));
        else
            i++;
    }
    return PITH_OK;
}

/* ---- steps ---- */

static pith_status copy_begin(pith__running *r, pith_error *err) {
    const pith__executor *e = r->executor;
    const pith__step *step = &e->plan->steps[r->step];
    const pith__bound_step *bound = &r->binding->steps[r->step];
    const pith_tensor *from = bound->in[0], *to = bound->out[0];
    const pith__device *d = step->device;
    const bool to_host = step->node->op == &pith__copy_to_host;
    if (!to || !to->bytes) return PITH_OK;
    pith__flight f = { .device = d,
                       .step = r->step,
                       .host = to_host ? to->data : from->data,
                       .bytes = to->bytes,
                       .writes = to_host,
                       .begin_ns = pith__clock_ns() };
    const pith_status status =
        d->backend->begin_copy(d->context, to->data, from->data, to->bytes,
                               to_host ? PITH_COPY_TO_HOST : PITH_COPY_TO_DEVICE, err);
    PITH_TRY(device_failed_at(e, d, r->step, status, err));
    f.mark = d->backend->mark(d->context);
    return flight_begin(r, &f, err);
}

/* Only for a listener: the executor itself never waits for a program. */
static pith_status program_watch(const pith__running *r, size_t step, uint64_t begin_ns,
                                 pith_error *err) {
    const pith__device *d = r->executor->plan->steps[step].device;
    if (!r->executor->tree->trace || !d->backend->mark) return PITH_OK;
    const pith__flight f = {
        .device = d, .mark = d->backend->mark(d->context), .step = step, .begin_ns = begin_ns
    };
    return flight_begin(r, &f, err);
}

static pith_status device_step(pith__running *r, const pith__region *region, size_t *end,
                               pith__next_step *next, pith_error *err) {
    pith__executor *e = r->executor;
    pith__executor_devices *d = e->devices;
    const size_t index = r->step;
    const pith__step *step = &e->plan->steps[index];
    const pith__bound_step *bound = &r->binding->steps[index];
    const bool many = region && region->begin == index && region->end > index + 1;
    const bool nothing = !many && (bound->mode == PITH_BOUND_SKIP || (e->skips && e->skips[index]));
    if (d->flight_count && (!nothing || PITH_POISONS)) {
        PITH_TRY(flights_clear(r, many, err));
        PITH_TRY(flights_look(r, err));
    }
    if (many || nothing) return next(r, region, end, err);
    const pith__backend *backend = step->device->backend;
    if (step->is_copy) d->copies[step->device->memory]++;
    if (step->is_copy && bound->mode == PITH_BOUND_RUN && backend->begin_copy && backend->mark &&
        !e->options.separate) {
        *end = index + 1;
        PITH_TRY(pith__stop_check(r->exec.stop, err));
        return copy_begin(r, err);
    }
    const uint64_t begin_ns = e->tree->trace ? pith__clock_ns() : 0;
    PITH_TRY(next(r, region, end, err));
    if (!step->device->memory || step->is_copy) return PITH_OK;
    d->programs[step->device->memory]++;
    return bound->mode == PITH_BOUND_RUN ? program_watch(r, index, begin_ns, err) : PITH_OK;
}

static pith_status device_steps(pith__running *r, pith__next_step *next, pith_error *err) {
    const pith__binding *b = r->binding;
    for (size_t end = 0, region = 0; r->step < r->executor->plan->step_count; r->step = end) {
        const pith__region *at = region < b->region_count ? &b->regions[region] : NULL;
        PITH_TRY(device_step(r, at, &end, next, err));
        region += at && at->end == end;
    }
    return flights_wait(r, err);
}

/* Says at the end of a run what each device did in it. */
static void device_report(const pith__executor *e) {
    const pith__executor_devices *d = e->devices;
    if (e->depth) return;
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) {
        if (!d->programs[m] && !d->copies[m]) continue;
        pith__executor_note(e, PITH_COUNT_device_copies, d->copies[m]);
        pith__executor_note(e, PITH_COUNT_device_copies_beside, d->beside[m]);
        pith__log_write(e->options.log, PITH_LOG_DEBUG,
                        "device '%s': %zu programs, %zu copies, %zu of them during other steps",
                        e->plan->devices->memories[m]->choice->name, (size_t)d->programs[m],
                        (size_t)d->copies[m], (size_t)d->beside[m]);
    }
}

static pith_status devices_run(pith__running *r, pith__next_step *next, pith_error *err) {
    const pith__executor *e = r->executor;
    pith__executor_devices *d = e->devices;
    for (size_t m = 0; m < e->plan->devices->memory_count; m++)
        d->programs[m] = d->copies[m] = d->beside[m] = 0;
    const pith_status status = device_steps(r, next, err);
    if (status)
        pith__device_drain(e);
    else
        device_report(e);
    return status;
}

/* ---- making and ending ---- */

static pith_status devices_make(pith__executor *e, pith_error *err) {
    const size_t ports = pith__plan_port_count(e->plan), outputs = e->plan->graph->output_count,
                 memories = e->plan->devices->memory_count;
    pith__executor_devices *d = pith__arena_array(&e->arena, 1, sizeof *d);
    if (!d) return pith__fail_memory(err, sizeof *d);
    d->ports = pith__arena_array(&e->arena, ports, sizeof *d->ports);
    d->readers = pith__arena_array(&e->arena, ports, sizeof *d->readers);
    d->ends = pith__arena_array(&e->arena, ports + outputs, sizeof *d->ends);
    d->left = pith__arena_array(&e->arena, memories, sizeof *d->left);
    d->programs = pith__arena_array(&e->arena, 3 * memories, sizeof *d->programs);
    if (!d->ports || !d->readers || !d->ends || !d->left || !d->programs)
        return pith__fail_memory(err, ports * sizeof *d->ports);
    d->copies = d->programs + memories;
    d->beside = d->copies + memories;
    e->devices = d;
    return PITH_OK;
}

static void devices_end(pith__executor *e) {
    for (size_t m = 1; m < e->plan->devices->memory_count; m++) {
        const pith__device *d = e->plan->devices->memories[m];
        bool done;
        if (e->devices->left[m])
            (void)d->backend->poll(d->context, e->devices->left[m], true, &done, NULL);
    }
}

const pith__run_devices pith__run_devices_all = { .make = devices_make,
                                                  .end = devices_end,
                                                  .begin = pith__device_ends_begin,
                                                  .take_port = pith__device_ends_take_port,
                                                  .fits = pith__device_ends_fit,
                                                  .keep = pith__device_ends_keep,
                                                  .settle_copy = pith__device_ends_settle_copy,
                                                  .source = pith__device_ends_source,
                                                  .takes = pith__device_ends_take,
                                                  .set_addresses = pith__device_ends_set_addresses,
                                                  .run = devices_run,
                                                  .finish = pith__device_ends_finish,
                                                  .is_bound = pith__device_ends_bound };
