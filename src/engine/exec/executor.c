/* executor.c - runs a plan: finds or makes the binding for these sizes, sets addresses, and goes
 * through the steps.
 *
 * All bindings of an executor share one buffer, as large as the largest needed so far (for a tight
 * executor: as large as needed now). Values of dynamic shape lie in the late arena. After a run
 * that needed several chunks of it, the arena is made one chunk, so that in a steady state nothing
 * is allocated. A subgraph runs in an executor of its own, which is kept by the binding of the step
 * that owns it and gets the captures as further inputs. All executors of one tree share one count
 * of activation bytes and one listener to their steps. Those of one depth share one buffer too:
 * only one of them runs at a time, and its results are copied before another one runs. */
#include "engine/exec/executor.h"

#include <stdlib.h>

#include "base/stop.h"
#include "base/dtype.h"
#include "base/left_out_pieces.h"
#include "base/memory/poison.h"
#include "base/os/clock.h"
#include "engine/exec/device_runs.h"
#include "engine/exec/output_subsets.h"
#include "engine/exec/output_target.h"
#include "engine/exec/run_state.h"
#include "engine/ops/shared/call_op.h"

/* Iterations of a Loop if the options set no limit. */
#define LOOP_LIMIT ((int64_t)1 << 31)

/* ---- making and ending ---- */

/* Finds the optional parts that this build has. Branches and tails only make a run faster, so a
 * build without them is as good. A plan whose steps own graphs cannot run without the part
 * "subgraphs". */
static pith_status find_parts(pith__executor *e, pith_error *err) {
    char place[256];
    const pith__step *owner = NULL;
    for (size_t i = 0; i < e->plan->step_count && !owner; i++)
        owner = e->plan->steps[i].subplan_count ? &e->plan->steps[i] : NULL;
    if (e->options.branches > 1) pith__part_used("branches");
    e->beside = e->options.branches > 1 ? pith__part_find("branches") : NULL;
    e->tails = e->options.tails ? pith__part_find("tails") : NULL;
    if (!owner) return PITH_OK;
    e->subgraphs = pith__part_find("subgraphs");
    pith__part_used("subgraphs");
    if (e->subgraphs) return PITH_OK;
    pith_status status = pith__piece_check("parts", PITH_STR("subgraphs"), err);
    if (!status)
        status =
            pith__fail(err, PITH_ERR_UNSUPPORTED, "this build does not run graphs that nodes own");
    return pith__fail_at(err, status, "%s: ", pith__node_place(owner->node, place, sizeof place));
}

/* parent: the executor whose step owns the graph; it shares its tree of counters and lends a level
 * of buffers. NULL: the root. */
pith_status pith__executor_make(pith__executor **executor, const pith__plan *plan,
                                const pith__executor_options *options, const pith__executor *parent,
                                const pith__dim *symbols, pith_error *err) {
    const pith_allocator *allocator =
        options->allocator ? options->allocator : &pith__allocator_default;
    pith__executor *e = pith__memory_alloc(allocator, sizeof *e, 64);
    if (!e) return pith__fail_memory(err, sizeof *e);
    *e = (pith__executor){
        .plan = plan, .options = *options, .allocator = *allocator, .outer_symbols = symbols
    };
    e->tree = parent ? parent->tree : &e->own;
    e->depth = parent ? parent->depth + 1 : 0;
    e->level = parent ? parent->level->below : NULL;
    e->options.allocator = &e->allocator;
    if (e->options.loop_limit <= 0) e->options.loop_limit = LOOP_LIMIT;
    pith__arena_init(&e->arena, &e->allocator);
    pith__arena_init(&e->scratch, &e->allocator);
    pith__arena_init(&e->late, &e->allocator);
    if (!parent) e->own.arena = &e->arena;
    e->given =
        pith__arena_array(&e->arena, parent ? pith__plan_port_count(plan) : 0, sizeof *e->given);
    e->ports = pith__arena_array(&e->arena, pith__plan_port_count(plan), sizeof *e->ports);
    e->lent =
        pith__arena_array(&e->arena, parent ? 0 : pith__plan_port_count(plan), sizeof *e->lent);
    e->in = pith__arena_array(&e->arena, plan->widest_in, sizeof *e->in);
    e->types = pith__arena_array(&e->arena, plan->widest_in, sizeof *e->types);
    e->out = pith__arena_array(&e->arena, plan->widest_out, sizeof *e->out);
    e->memories = pith__arena_array(&e->arena, plan->devices->memory_count, sizeof *e->memories);
    e->results = pith__arena_array(&e->arena, plan->step_count, sizeof *e->results);
    bool levelled = !pith__level_make(&e->level, &e->arena, plan->devices->memory_count, err);
    if (!e->given || !e->ports || !e->lent || !e->in || !e->types || !e->out || !e->memories ||
        !e->results || !levelled) {
        pith__arena_free(&e->arena);
        pith__memory_free(allocator, e);
        return pith__fail_memory(err, plan->widest_in * sizeof *e->types);
    }
    for (size_t m = 0; m < plan->devices->memory_count; m++)
        e->memories[m].device = plan->devices->memories[m];
    pith_status status = find_parts(e, err);
    if (!status && pith__run_devices_used && plan->devices->memory_count > 1)
        status = pith__run_devices_used->make(e, err);
    if (status)
        pith__executor_destroy(e);
    else
        *executor = e;
    return status;
}

pith_status pith__executor_create(pith__executor **executor, const pith__plan *plan,
                                  const pith__executor_options *options, pith_error *err) {
    return pith__executor_make(executor, plan, options, NULL, NULL, err);
}

void pith__executor_trace(pith__executor *executor, pith__trace_fn *trace, void *context) {
    executor->tree->trace = trace;
    executor->tree->trace_context = context;
}

void pith__executor_set_targets(pith__executor *executor, const pith_tensor *targets) {
    executor->targets = targets;
}

void pith__executor_set_wanted(pith__executor *executor, const bool *wanted) {
    executor->wanted = wanted;
}

static void end_levels(pith__executor *e) {
    for (pith__level *l = e->level; l; l = l->below)
        for (size_t m = 0; m < e->plan->devices->memory_count; m++)
            pith__buffer_free(e, &e->memories[m], &l->buffers[m]);
}

void pith__executor_destroy(pith__executor *e) {
    if (!e) return;
    if (e->devices) pith__run_devices_used->end(e);
    pith__separate_end_all(e);
    for (size_t i = 0; i < e->binding_count; i++) {
        if (e->subgraphs) e->subgraphs->end_binding(e, e->bindings[i]);
        pith__arena_free(&e->bindings[i]->arena);
    }
    if (e->subgraphs) e->subgraphs->end_results(e);
    for (size_t m = 0; m < e->plan->devices->memory_count; m++) pith__late_free(e, &e->memories[m]);
    if (e->depth == 0) end_levels(e);
    pith__tree_count(e->tree, 0, e->late_counted);
    pith__arena_free(&e->late);
    pith__arena_free(&e->scratch);
    pith__arena_free(&e->arena);
    pith_allocator allocator = e->allocator;
    pith__memory_free(&allocator, e);
}

/* ---- bindings ---- */

/* True if a binding that was made for `bound` serves `given`: the same dtype and shape, and at
 * least as many bytes. Of a sequence or an absent input only the dtype counts, since nothing is
 * bound to its shape. */
static bool same_port(const pith_tensor *given, const pith_tensor *bound) {
    if (given->dtype != bound->dtype) return false;
    if (given->dtype == PITH_UNDEFINED || given->dtype >= PITH_DTYPE_COUNT) return true;
    if (given->rank != bound->rank || given->bytes < bound->bytes || (bound->bytes && !given->data))
        return false;
    return given->rank <= 0 ||
           memcmp(given->dims, bound->dims, (size_t)given->rank * sizeof *given->dims) == 0;
}

/* A binding that was made for these ports and this number of threads, or NULL. The number of
 * threads counts because scratch depends on it. A linear search: there are at most MAX_BINDINGS. */
static pith__binding *find_binding(pith__executor *e, int threads) {
    size_t ports = pith__plan_port_count(e->plan);
    for (size_t i = 0; i < e->binding_count; i++) {
        pith__binding *b = e->bindings[i];
        size_t p = 0;
        while (b->threads == threads && p < ports && same_port(&e->ports[p], &b->ports[p])) p++;
        if (b->threads != threads || p != ports) continue;
        if (!e->devices || pith__run_devices_used->fits(e, b)) return b;
    }
    return NULL;
}

/* An empty binding at the end of the list: a new one, or the one unused for longest. */
static pith__binding *take_binding(pith__executor *e) {
    if (e->binding_count < (e->options.fresh_plans ? 1 : MAX_BINDINGS)) {
        pith__binding *b = pith__arena_array(&e->arena, 1, sizeof *b);
        if (!b) return NULL;
        pith__arena_init(&b->arena, &e->allocator);
        return e->bindings[e->binding_count++] = b;
    }
    size_t oldest = 0, last = e->binding_count - 1;
    for (size_t i = 1; i < e->binding_count; i++)
        if (e->bindings[i]->last_used < e->bindings[oldest]->last_used) oldest = i;
    pith__binding *b = e->bindings[oldest];
    e->bindings[oldest] = e->bindings[last];
    e->bindings[last] = b;
    if (e->subgraphs) e->subgraphs->end_binding(e, b);
    pith__arena arena = b->arena;
    pith__arena_reset(&arena);
    *b = (pith__binding){ .arena = arena };
    return b;
}

static void trace(const pith__executor *e, pith__trace_event event) {
    event.depth = e->depth;
    e->tree->trace(e->tree->trace_context, &event);
}

/* Finds the binding for these ports or makes it. *made, if made is not NULL, is set to whether
 * there was none. A binding that could not be made stays in the list, empty and with a number of
 * threads that no run asks for, so that it is never found and can be taken again. */
static pith_status get_binding(pith__executor *e, int threads, pith__stop *stop,
                               pith__binding **out, bool *made, pith_error *err) {
    pith__binding *b = e->options.fresh_plans ? NULL : find_binding(e, threads);
    if (made) *made = !b;
    if (!b) {
        b = take_binding(e);
        if (!b) return pith__fail_memory(err, sizeof(pith__binding));
        pith__bind how = { .plan = e->plan,
                           .ports = e->ports,
                           .outer_symbols = e->outer_symbols,
                           .threads = threads,
                           .branches = e->options.branches,
                           .beside = e->beside,
                           .tails = e->tails,
                           .separate = e->options.separate,
                           .ends = e->devices && e->devices->any ? e->devices->ends : NULL,
                           .stop = stop,
                           .scratch = &e->scratch,
                           .err = err };
        pith__arena_reset(&e->scratch);
        uint64_t begin = pith__clock_ns();
        pith_status status = pith__binding_make(b, &how);
        pith__executor_note(e, PITH_COUNT_plans_made, !status);
        pith__executor_note(e, PITH_COUNT_plan_ns, pith__clock_ns() - begin);
        if (e->tree->trace)
            trace(e, (pith__trace_event){ .begin_ns = begin, .end_ns = pith__clock_ns() });
        if (status) {
            pith__arena arena = b->arena;
            pith__arena_reset(&arena);
            *b = (pith__binding){ .arena = arena, .threads = -1 };
            return status;
        }
    }
    b->last_used = ++e->clock;
    *out = b;
    return PITH_OK;
}

/* Takes the inputs of a run. Operators rely on the alignment of a type, so an input that lies
 * elsewhere is copied. An initializer that is an input as well can be given only with the value it
 * has in the model, since the plan has folded or packed it. */
static pith_status set_ports(pith__executor *e, const pith_tensor *ports, pith__stop *stop,
                             pith_error *err) {
    if (e->devices || (e->targets && pith__run_devices_used))
        PITH_TRY(pith__run_devices_used->begin(e, err));
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++) {
        pith_tensor *t = &e->ports[p];
        *t = ports[p];
        if (t->device && pith__run_devices_used) {
            PITH_TRY(pith__run_devices_used->take_port(e, p, &ports[p], err));
            continue;
        }
        const pith__value *value = pith__plan_port(e->plan, p);
        const pith_tensor *fixed = value->type.data;
        if (fixed && value->kind == PITH_VALUE_INPUT && t->dtype) {
            if (t->dtype != fixed->dtype || t->bytes != fixed->bytes || !t->data ||
                memcmp(t->data, fixed->data, fixed->bytes)) {
                return pith__fail(err, PITH_ERR_UNSUPPORTED,
                                  "input '" PITH_STR_FMT
                                  "' has a default that is built into this plan; "
                                  "leave the input out",
                                  PITH_STR_ARG(value->name));
            }
        }
        if (t->dtype == PITH_SEQUENCE && !pith__tensor_is_sound(t, NULL)) {
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "input '" PITH_STR_FMT "' is not a valid sequence",
                              PITH_STR_ARG(value->name));
        }
        bool fits = t->dtype >= PITH_DTYPE_COUNT ||
                    (uintptr_t)t->data % pith__dtype_alignment(t->dtype) == 0;
        if (t->dtype)
            pith__executor_note(e, fits ? PITH_COUNT_tensors_bound : PITH_COUNT_tensors_copied, 1);
        if (fits) continue;
        t->data = pith__late_alloc(e, t->bytes);
        if (!t->data) return pith__fail_memory(err, t->bytes);
        PITH_TRY(pith__copy_until(stop, t->data, ports[p].data, t->bytes, err));
    }
    return PITH_OK;
}

/* Finds or makes the binding for these ports, and makes the buffers as large as it needs them. */
static pith_status make_ready(pith__executor *e, int threads, pith__stop *stop,
                              pith__binding **binding, pith_error *err) {
    bool made, enlarged = false, used = false;
    PITH_TRY(get_binding(e, threads, stop, binding, &made, err));
    pith__executor_note(e, PITH_COUNT_runs, 1);
    pith__executor_note(e, PITH_COUNT_plans_reused, !made);
    if (e->options.separate) e->allocated = *binding;
    for (size_t m = 0; m < e->plan->devices->memory_count; m++) {
        used = used || (*binding)->memories[m].bytes;
        if (e->options.separate) continue;
        const pith__buffer before = e->level->buffers[m], *now = &e->level->buffers[m];
        PITH_TRY(pith__buffer_reserve(e, m, (*binding)->memories[m].bytes, err));
        enlarged = enlarged || now->bytes != before.bytes || now->data != before.data;
    }
    if (used)
        pith__executor_note(e,
                            enlarged || e->options.separate ? PITH_COUNT_buffers_made
                                                            : PITH_COUNT_buffers_reused,
                            1);
    return PITH_OK;
}

/* ---- targets ---- */

static pith_str output_name(const pith__executor *e, size_t output) {
    return e->plan->graph->outputs[output]->name;
}

static bool is_wanted(const pith__executor *e, size_t output) {
    return !e->wanted || e->wanted[output];
}

static bool has_target(const pith__executor *e, size_t output) {
    return e->targets && e->targets[output].data && is_wanted(e, output);
}

/* What is known before the run, so that nothing is computed in vain. */
static pith_status check_targets(const pith__executor *e, const pith__binding *b, pith_error *err) {
    for (size_t i = 0; i < e->plan->graph->output_count; i++) {
        const pith_tensor *t = &b->tensors[e->plan->outputs[i]->id];
        if (has_target(e, i) && b->outputs[i].known)
            PITH_TRY(pith__target_check(&e->targets[i], t, output_name(e, i), err));
    }
    return PITH_OK;
}

/* The caller's memory for an output, if the run can compute in it; else NULL, and the output is
 * copied there at the end. It must be aligned, large enough for all values of the output's slot,
 * and apart from every input: the run would overwrite an input that later steps still read. */
static void *direct_target(const pith__executor *e, const pith__binding *b, size_t output) {
    const pith__bound_output *o = &b->outputs[output];
    if (!has_target(e, output) || !o->movable || e->options.separate) return NULL;
    if (e->devices && !pith__run_devices_used->takes(e, output, o->memory)) return NULL;
    const pith_tensor *target = &e->targets[output];
    if (target->bytes < o->bytes) return NULL;
    if ((uintptr_t)target->data % pith__dtype_alignment(target->dtype)) return NULL;
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++)
        if (pith__target_touches(target, &e->ports[p])) return NULL;
    return target->data;
}

/* Notes where each output lies in this run. Returns whether that changed. */
static bool choose_targets(const pith__executor *e, pith__binding *b) {
    bool moved = false;
    for (size_t i = 0; i < e->plan->graph->output_count; i++) {
        void *data = direct_target(e, b, i);
        moved = moved || b->outputs[i].data != data;
        b->outputs[i].data = data;
    }
    return moved;
}

/* The addresses of all values for this run. Ports and their aliases change with every call. Places
 * change only if a buffer has moved or an output has another target, so a repeated run skips them.
 */
static void set_addresses(pith__executor *e, pith__binding *b) {
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++) {
        const pith__value *value = pith__plan_port(e->plan, p);
        if (!value->type.data && e->ports[p].dtype) b->tensors[value->id] = e->ports[p];
    }
    if (e->devices) pith__run_devices_used->set_addresses(e, b);
    for (size_t i = 0; i < b->alias_count; i++)
        b->aliases[i].tensor->data = b->aliases[i].port->data;
    if (e->options.separate) return;
    bool moved = choose_targets(e, b);
    for (size_t m = 0; m < e->plan->devices->memory_count; m++) {
        moved = moved || b->memories[m].base != e->level->buffers[m].data;
        b->memories[m].base = e->level->buffers[m].data;
    }
    if (!moved) return;
    for (size_t i = 0; i < b->placed_count; i++) {
        const pith__placed *p = &b->placed[i];
        void *elsewhere = p->output ? b->outputs[p->output - 1].data : NULL;
        p->tensor->data =
            elsewhere ? elsewhere : (char *)e->level->buffers[p->memory].data + p->offset;
    }
}

/* ---- steps ---- */

static void *run_alloc(pith__exec *exec, size_t bytes) {
    const pith__running *r = (const pith__running *)exec;
    return pith__late_alloc_in(r->executor, r->executor->plan->steps[r->step].memory, bytes);
}

static void *executor_arena_memory(void *arena, size_t bytes) {
    return pith__arena_alloc64(arena, bytes);
}

static pith_status check_late(const pith__step *step, const pith__run *run) {
    for (int i = 0; i < step->out_count; i++) {
        if (!run->out[i]) continue;
        int loaded = step->out[i]->type.dtype, now = run->out[i]->dtype;
        if (now == PITH_UNDEFINED)
            return pith__fail(run->err, PITH_ERR_RUN, "output %d has no shape", i);
        if (loaded && loaded != PITH_NONE && now != loaded) {
            return pith__fail(run->err, PITH_ERR_RUN, "output %d is %s instead of %s", i,
                              pith__dtype_name(now), pith__dtype_name(loaded));
        }
    }
    return PITH_OK;
}

/* Infers the shapes of a late step from what its inputs are by now, and takes memory from the late
 * arena for its outputs and its scratch. Outputs whose shapes depend on contents get none here: the
 * operator allocates them itself (PITH_OP_LATE). *view: there is nothing to run. */
static pith_status prepare_late(pith__executor *e, const pith__step *step, pith__run *run,
                                bool *view) {
    const pith__op *op = step->node->op;
    pith__infer c = pith__invoke_infer(step->node, e->in, e->out, &e->late, run->err);
    memset(e->in, 0, pith__node_in_room(step->node) * sizeof *e->in);
    for (int i = 0; i < step->in_count; i++) {
        const pith_tensor *t = run->in[i];
        if (!t) continue;
        pith__type_of_tensor(&e->types[i], t);
        if (e->plan->memory_of[step->in[i]->id]) e->types[i].data = NULL;
        if (t->dtype == PITH_SEQUENCE || t->dtype == PITH_NONE)
            e->types[i].item_dtype = step->in[i]->type.item_dtype;
        e->in[i] = &e->types[i];
    }
    PITH_TRY(pith__step_infer(step, &c));
    *view = op->flags & PITH_OP_VIEW;
    for (int i = 0; i < step->out_count; i++) {
        pith_tensor *t = run->out[i];
        if (!t) continue;
        bool settled = pith__type_is_plain(&e->out[i]) && !(op->flags & PITH_OP_LATE);
        *t = (pith_tensor){ .dtype = PITH_UNDEFINED };
        if (*view && i == 0 && run->in[0]->dtype >= PITH_DTYPE_COUNT) {
            *t = *run->in[0];
            continue;
        }
        if (!settled) {
            if (op->flags & PITH_OP_LATE || step->subplan_count) continue;
            char place[256];
            return pith__fail(run->err, PITH_ERR_RUN,
                              "%s: the shape of output %d does not follow from the inputs",
                              pith__node_place(step->node, place, sizeof place), i);
        }
        PITH_TRY(pith__tensor_shape(t, &e->out[i], step, run->err));
        bool shown = *view && i == 0 && run->in[0]->bytes >= t->bytes;
        t->data = shown ? run->in[0]->data : pith__late_alloc_in(e, step->memory, t->bytes);
        if (!t->data) return pith__fail_memory(run->err, t->bytes);
    }
    size_t scratch = 0;
    char place[256];
    if (*view) return PITH_OK;
    pith_status status = pith__step_scratch(step, &c, run->exec->threads, &scratch);
    if (status)
        return pith__fail_at(run->err, status,
                             "%s: ", pith__node_place(step->node, place, sizeof place));
    run->scratch = scratch ? pith__late_alloc_in(e, step->memory, scratch) : NULL;
    return run->scratch || !scratch ? PITH_OK : pith__fail_memory(run->err, scratch);
}

static void trace_step(pith__running *r, const pith__step *step, const pith__run *run,
                       uint64_t begin) {
    pith__trace_event event = {
        .step = step, .index = r->step, .begin_ns = begin, .end_ns = pith__clock_ns(), .run = run
    };
    if (r->beside) {
        event.branch = r->branch + 1;
        pith__beside_lock(r->beside);
    }
    trace(r->executor, event);
    if (r->beside) pith__beside_unlock(r->beside);
}

static bool skips(const pith__executor *e, size_t step) { return e->skips && e->skips[step]; }

/* Runs one step, its tail included. A late step is inferred first, from what its inputs have
 * become, and its results are checked against what the graph said at load. The device of the first
 * step that fails is kept, so that the caller can go on without that device; steps side by side do
 * not write it. */
pith_status pith__running_step(pith__running *r, pith_error *err) {
    pith__executor *e = r->executor;
    const pith__step *step = &e->plan->steps[r->step];
    const pith__bound_step *bound = &r->binding->steps[r->step];
    if (bound->mode == PITH_BOUND_SKIP || skips(e, r->step)) return PITH_OK;
    pith__run run = pith__invoke_run(step->node, step->state, bound->in, bound->out, &r->exec, err);
    if (bound->scratch_bytes && e->options.separate)
        run.scratch = r->binding->separate.slots[bound->scratch].data;
    else if (bound->scratch_bytes)
        run.scratch = (char *)e->level->buffers[step->memory].data + bound->scratch;
    run.upcoming = step->upcoming;
    run.plan = step;
    pith__tail tail;
    pith__run tail_runs[PITH_TAIL_MAX];
    if (bound->tail_count) e->tails->make(&tail, tail_runs, r, bound);
    run.tail = bound->tail_count ? &tail : NULL;
    bool view = false;
    uint64_t begin = e->tree->trace ? pith__clock_ns() : 0;
    if (bound->mode == PITH_BOUND_LATE) PITH_TRY(prepare_late(e, step, &run, &view));
    if (!view) {
        pith_status status = step->run(step->context, &run);
        /* Whatever the step says: it may have met what it left unfinished. */
        PITH_TRY(pith__stop_check(r->exec.stop, err));
        if (!status && bound->mode == PITH_BOUND_LATE) status = check_late(step, &run);
        char place[256];
        if (pith__status_stops(status)) return status;
        if (status && !r->beside && !e->tree->failed) e->tree->failed = step->device;
        if (status)
            return pith__fail_at(err, status,
                                 "%s: ", pith__node_place(step->node, place, sizeof place));
    }
    if (e->tree->trace) trace_step(r, step, &run, begin);
    return PITH_OK;
}

/* Overwrites what step was the last to need. */
static void poison_dead(pith__running *r, size_t step) {
    const pith__binding *b = r->binding;
    for (; r->dead < b->dying_count && b->dying[r->dead].end <= step; r->dead++)
        pith__poison((char *)r->executor->level->buffers[0].data + b->dying[r->dead].offset,
                     b->dying[r->dead].bytes);
}

/* Runs the step, or the region that begins with it. Sets *end to the step after. Two loops call it.
 */
__attribute__((noinline)) static pith_status run_next(pith__running *r, const pith__region *region,
                                                      size_t *end, pith_error *err) {
    *end = region && region->begin == r->step ? region->end : r->step + 1;
    if (r->executor->options.separate)
        PITH_TRY(pith__separate_begin(r->executor, r->binding, r->step, err));
    PITH_TRY(*end > r->step + 1 ? r->executor->beside->run(r, region, err)
                                : pith__running_step(r, err));
    if (r->executor->options.separate) pith__separate_end(r->executor, r->binding, *end - 1);
    if (PITH_POISONS && !r->executor->options.separate) poison_dead(r, *end - 1);
    return PITH_OK;
}

static pith_status run_steps(pith__running *r, pith_error *err) {
    const pith__binding *b = r->binding;
    for (size_t end = 0, region = 0; r->step < r->executor->plan->step_count; r->step = end) {
        const pith__region *next = region < b->region_count ? &b->regions[region] : NULL;
        PITH_TRY(run_next(r, next, &end, err));
        region += next && next->end == end;
    }
    return PITH_OK;
}

/* Which steps the wanted outputs do not need. */
static pith_status find_skips(pith__executor *e, pith_error *err) {
    e->skips = NULL;
    if (!e->wanted) return PITH_OK;
    const pith__subsets_part *part = pith__part_find("subsets");
    return part ? part->find(&e->skips, e, err) : PITH_OK;
}

/* A run: late memory of the run before goes, the binding for these shapes is found or made,
 * addresses are set, and the steps follow in order. Nothing is allocated if the shapes have been
 * seen before and no step is late. Whether to stop is looked at after each step, and between the
 * parts of one. */
pith_status pith__executor_run_ports(pith__executor *e, pith_tensor *outputs,
                                     const pith_tensor *ports, int threads, pith__stop *stop,
                                     pith_error *err) {
    pith__binding *b = NULL;
    PITH_TRY(pith__late_reset(e, err));
    PITH_TRY(set_ports(e, ports, stop, err));
    PITH_TRY(find_skips(e, err));
    PITH_TRY(make_ready(e, threads, stop, &b, err));
    if (e->targets) PITH_TRY(check_targets(e, b, err));
    set_addresses(e, b);
    pith__running r = { .exec = { .threads = threads,
                                  .isa = e->plan->isa,
                                  .stop = stop,
                                  .loop_limit = e->options.loop_limit,
                                  .alloc = run_alloc,
                                  .subgraph = e->subgraphs ? e->subgraphs->run : NULL },
                        .executor = e,
                        .binding = b };
    pith__poison(e->level->buffers[0].data, e->level->buffers[0].bytes);
    PITH_TRY(pith__stop_check(stop, err));
    PITH_TRY(e->devices ? pith__run_devices_used->run(&r, run_next, err) : run_steps(&r, err));
    pith__late_count(e);
    for (size_t i = 0; i < e->plan->graph->output_count; i++)
        outputs[i] = is_wanted(e, i) ? b->tensors[e->plan->outputs[i]->id]
                                     : (pith_tensor){ .dtype = PITH_UNDEFINED };
    return e->devices ? pith__run_devices_used->finish(e, b, outputs, err) : PITH_OK;
}

static int order_of_addresses(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (const void *const *)a, y = (uintptr_t) * (const void *const *)b;
    return (x > y) - (x < y);
}

/* Whether an output shows memory that is another one's target. */
static bool lies_in_target(const pith__executor *e, const pith_tensor *output, size_t index) {
    if (!e->targets) return false;
    for (size_t i = 0; i < e->plan->graph->output_count; i++)
        if ((i != index || e->targets[i].data != output->data) && has_target(e, i) &&
            pith__target_touches(&e->targets[i], output))
            return true;
    return false;
}

static pith_status fill_targets(const pith__executor *e, pith_tensor *outputs, pith__stop *stop,
                                pith_error *err) {
    for (size_t i = 0; i < e->plan->graph->output_count; i++) {
        if (!has_target(e, i)) continue;
        if (outputs[i].device) continue;
        bool there = outputs[i].data == e->targets[i].data;
        PITH_TRY(pith__target_fill(&outputs[i], &e->targets[i], output_name(e, i), stop, err));
        pith__executor_note(e, there ? PITH_COUNT_tensors_bound : PITH_COUNT_tensors_copied, 1);
    }
    return PITH_OK;
}

/* Makes every output last until the next run. An output without a target belongs to the executor,
 * so one that shows an input, or items of one, is copied; so is one that lies in another output's
 * target. Targets are filled after these copies, since filling one could overwrite what such an
 * output shows. Inputs are found by address in a sorted list: there may be many outputs and inputs.
 */
static pith_status settle_outputs(pith__executor *e, pith_tensor *outputs, pith__stop *stop,
                                  pith_error *err) {
    size_t count = 0;
    bool sequences = false;
    for (size_t p = 0; p < pith__plan_port_count(e->plan); p++) {
        sequences = sequences || e->ports[p].dtype == PITH_SEQUENCE;
        if (e->ports[p].dtype && e->ports[p].bytes) e->lent[count++] = e->ports[p].data;
    }
    if (count) qsort(e->lent, count, sizeof *e->lent, order_of_addresses);
    for (size_t i = 0; i < e->plan->graph->output_count; i++) {
        pith_tensor *t = &outputs[i];
        if (!is_wanted(e, i) || t->device) continue;
        bool borrowed = (t->dtype == PITH_SEQUENCE && sequences) || lies_in_target(e, t, i);
        if (count && t->data && !borrowed && !has_target(e, i))
            borrowed = bsearch(&t->data, e->lent, count, sizeof *e->lent, order_of_addresses);
        if (!has_target(e, i))
            pith__executor_note(e, borrowed ? PITH_COUNT_tensors_copied : PITH_COUNT_tensors_bound,
                                1);
        if (borrowed) PITH_TRY(pith__tensor_copy(t, t, executor_arena_memory, &e->late, stop, err));
    }
    pith__late_count(e);
    return fill_targets(e, outputs, stop, err);
}

pith_status pith__executor_run(pith__executor *executor, pith_tensor *outputs,
                               const pith_tensor *inputs, int threads, pith__stop *stop,
                               pith_error *err) {
    executor->tree->failed = NULL;
    PITH_TRY(
        pith__executor_run_ports(executor, outputs, inputs, threads < 1 ? 1 : threads, stop, err));
    return settle_outputs(executor, outputs, stop, err);
}

pith_status pith__executor_plan_bytes(pith__executor *executor, size_t *bytes,
                                      const pith_tensor *inputs, int threads, pith_error *err) {
    pith__binding *b = NULL;
    PITH_TRY(pith__late_reset(executor, err));
    PITH_TRY(set_ports(executor, inputs, NULL, err));
    PITH_TRY(get_binding(executor, threads, NULL, &b, NULL, err));
    *bytes = 0;
    for (size_t m = 0; m < executor->plan->devices->memory_count; m++)
        *bytes += b->memories[m].bytes;
    return PITH_OK;
}

const pith__device *pith__executor_failed_device(const pith__executor *executor) {
    return executor->tree->failed;
}

size_t pith__executor_bytes(const pith__executor *executor) { return executor->tree->held; }

size_t pith__executor_peak_bytes(const pith__executor *executor) { return executor->tree->peak; }
