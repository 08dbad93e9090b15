/* runtime_builtin.c - Pith's own engine: a program is a plan, a runner is an executor.
 *
 * A plan runs on the devices of graph->devices. If that list falls back and a device fails, in the
 * making of the plan or in a run, the program goes on with a plan for the other devices: the first
 * runner that meets the failure makes it and runs its inputs again, and the others follow at their
 * next run. A run that fails there too fails for reasons of its own, so the device is kept. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "base/error.h"
#include "engine/exec/device_runs.h"
#include "engine/plan/plan.h"
#include "engine/runtime/runtime.h"

typedef struct builtin_program {
    const pith__graph *graph;
    const pith__files *files;
    pith__device_list devices;
    pith__plan *plan;
    pith__arena arena;                    /* of a program that took the place of another; of the
                                             first it is empty */
    atomic_bool lost;                     /* a device failed: runners go on with next */
    pthread_mutex_t lock;                 /* held while next is made */
    struct builtin_program *_Atomic next; /* without that device; NULL: not made */
} builtin_program;

typedef struct builtin_runner {
    builtin_program *program;
    pith__executor *executor;
    pith_allocator allocator;
    pith__executor_options options;
    pith__trace_fn *trace;
    void *trace_context;
    const pith_tensor *targets;
    const bool *wanted;
} builtin_runner;

/* ---- programs ---- */

/* Makes the plan; a device that fails is left out, if the list allows that. */
static pith_status program_plan(builtin_program *p, pith__arena *arena, pith_error *err) {
    for (;;) {
        const pith__device_choice *failed;
        const pith__device_list *list = p->devices.count ? &p->devices : NULL;
        pith_error fault = PITH_ERROR_INIT;
        pith_status status =
            pith__plan_build_on(&p->plan, p->graph, p->files, list, arena, &failed, &fault);
        if (!status) return PITH_OK;
        pith__device_list rest;
        if (!pith__backends_differ || !failed || !p->devices.falls_back ||
            pith__device_list_without(&rest, &p->devices, failed, arena, NULL))
            return pith__fail(err, status, "%s", fault.message);
        pith__log_write(p->graph->log, PITH_LOG_WARNING, "backend '%s' is not used: %s",
                        failed->name, fault.message);
        pith__count(p->devices.counters, PITH_COUNT_device_fallbacks, 1);
        p->devices = rest;
    }
}

static pith_status program_init(builtin_program *p, pith__arena *arena, pith_error *err) {
    PITH_TRY(program_plan(p, arena, err));
    if (!pthread_mutex_init(&p->lock, NULL)) return PITH_OK;
    pith__plan_close(p->plan);
    return pith__fail_memory(err, sizeof p->lock);
}

static pith_status builtin_open(void **state, const pith__program_source *source,
                                pith__arena *arena, pith_error *err) {
    builtin_program *p = pith__arena_array(arena, 1, sizeof *p);
    if (!p) return pith__fail_memory(err, sizeof *p);
    p->graph = source->graph;
    p->files = source->files;
    if (p->graph->devices) p->devices = *p->graph->devices;
    pith__arena_init(&p->arena, arena->allocator);
    PITH_TRY(program_init(p, arena, err));
    *state = p;
    return PITH_OK;
}

static void builtin_close(void *state) {
    for (builtin_program *p = state, *next; p; p = next) {
        next = atomic_load_explicit(&p->next, memory_order_acquire);
        pith__plan_close(p->plan);
        pthread_mutex_destroy(&p->lock);
        pith__arena arena = p->arena;
        pith__arena_free(&arena);
    }
}

static pith_status program_make_next(builtin_program **next, const builtin_program *p,
                                     const pith__device_choice *without, pith_error *err) {
    pith__arena arena;
    pith__arena_init(&arena, p->arena.allocator);
    builtin_program *made = pith__arena_array(&arena, 1, sizeof *made);
    pith_status status = made ? PITH_OK : pith__fail_memory(err, sizeof *made);
    if (!status) {
        made->graph = p->graph;
        made->files = p->files;
        status = pith__device_list_without(&made->devices, &p->devices, without, &arena, err);
    }
    if (!status) status = program_init(made, &arena, err);
    if (status) {
        pith__arena_free(&arena);
        return status;
    }
    made->arena = arena;
    *next = made;
    return PITH_OK;
}

/* The program that goes on where this one's device failed. It is made once: a second device that
 * fails in this program is no device of that one, or fails there again. */
static pith_status program_next(builtin_program **next, builtin_program *p,
                                const pith__device_choice *without, pith_error *err) {
    pith_status status = PITH_OK;
    pthread_mutex_lock(&p->lock);
    *next = atomic_load_explicit(&p->next, memory_order_relaxed);
    if (!*next) {
        status = program_make_next(next, p, without, err);
        if (!status) atomic_store_explicit(&p->next, *next, memory_order_release);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- runners ---- */

static pith_status builtin_create(void **state, const void *program,
                                  const pith__executor_options *options, pith_error *err) {
    const pith_allocator *allocator =
        options->allocator ? options->allocator : &pith__allocator_default;
    builtin_runner *r = pith__memory_alloc(allocator, sizeof *r, 64);
    if (!r) return pith__fail_memory(err, sizeof *r);
    /* its lazily made part has a lock */
    *r = (builtin_runner){ .program = (builtin_program *)(uintptr_t)program,
                           .allocator = *allocator,
                           .options = *options };
    r->options.allocator = &r->allocator;
    pith_status status = pith__executor_create(&r->executor, r->program->plan, &r->options, err);
    if (status)
        pith__memory_free(allocator, r);
    else
        *state = r;
    return status;
}

static void builtin_destroy(void *state) {
    builtin_runner *r = state;
    pith_allocator allocator = r->allocator;
    pith__executor_destroy(r->executor);
    pith__memory_free(&allocator, r);
}

/* Goes on with the programs that took the place of the runner's. */
static pith_status runner_follow(builtin_runner *r, pith_error *err) {
    builtin_program *p = r->program;
    while (pith__backends_differ && atomic_load_explicit(&p->lost, memory_order_acquire))
        p = atomic_load_explicit(&p->next, memory_order_acquire);
    if (p == r->program) return PITH_OK;
    pith__executor *executor;
    PITH_TRY(pith__executor_create(&executor, p->plan, &r->options, err));
    pith__executor_destroy(r->executor);
    r->executor = executor;
    r->program = p;
    return PITH_OK;
}

typedef struct builtin_call {
    pith_tensor *outputs;
    const pith_tensor *inputs;
    int threads;
    pith__stop *stop;
} builtin_call;

static pith_status runner_attempt(builtin_runner *r, const builtin_call *c, pith_error *err);

/* Runs again without the device. Returns whether *status and *err are what came of it. */
static bool runner_go_on(builtin_runner *r, const builtin_call *c,
                         const pith__device_choice *without, pith_status *status, pith_error *err) {
    builtin_runner other = *r;
    pith_error fault = PITH_ERROR_INIT;
    if (pith__run_devices_used &&
        pith__run_devices_used->is_bound(r->executor, c->inputs, r->targets, without, err))
        return true;
    if (program_next(&other.program, r->program, without, NULL)) return false;
    if (pith__executor_create(&other.executor, other.program->plan, &r->options, NULL))
        return false;
    *status = runner_attempt(&other, c, &fault);
    if (*status) {
        pith__executor_destroy(other.executor);
        *err = fault;
        return true;
    }
    pith__log_write(r->program->graph->log, PITH_LOG_WARNING, "backend '%s' is no longer used: %s",
                    without->name, err->message);
    pith__count(r->program->devices.counters, PITH_COUNT_device_fallbacks, 1);
    atomic_store_explicit(&r->program->lost, true, memory_order_release);
    pith__executor_destroy(r->executor);
    r->executor = other.executor;
    r->program = other.program;
    return true;
}

static pith_status runner_attempt(builtin_runner *r, const builtin_call *c, pith_error *err) {
    pith__executor_trace(r->executor, r->trace, r->trace_context);
    pith__executor_set_targets(r->executor, r->targets);
    pith__executor_set_wanted(r->executor, r->wanted);
    pith_status status =
        pith__executor_run(r->executor, c->outputs, c->inputs, c->threads, c->stop, err);
    const pith__device *failed = status ? pith__executor_failed_device(r->executor) : NULL;
    bool stopped = pith__status_stops(status) || pith__stop_asked(c->stop);
    if (!pith__backends_differ || !failed || stopped || !r->program->devices.falls_back)
        return status;
    runner_go_on(r, c, failed->choice, &status, err);
    return status;
}

static pith_status builtin_run(void *state, pith_tensor *outputs, const pith_tensor *inputs,
                               int threads, pith__stop *stop, pith_error *err) {
    builtin_runner *r = state;
    const builtin_call call = { outputs, inputs, threads, stop };
    pith_error fault = PITH_ERROR_INIT;
    PITH_TRY(runner_follow(r, err));
    builtin_program *placed = r->program;
    pith_status status = runner_attempt(r, &call, &fault);
    if (status && err) *err = fault;
    if (!status && r->program == placed)
        pith__count(placed->devices.counters, PITH_COUNT_device_successes, 1);
    return status;
}

static pith_status builtin_plan_bytes(void *state, size_t *bytes, const pith_tensor *inputs,
                                      int threads, pith_error *err) {
    builtin_runner *r = state;
    PITH_TRY(runner_follow(r, err));
    return pith__executor_plan_bytes(r->executor, bytes, inputs, threads, err);
}

static void builtin_trace(void *state, pith__trace_fn *trace, void *context) {
    builtin_runner *r = state;
    r->trace = trace;
    r->trace_context = context;
}

static size_t builtin_bytes(const void *state) {
    return pith__executor_bytes(((const builtin_runner *)state)->executor);
}

static void builtin_set_targets(void *state, const pith_tensor *targets) {
    ((builtin_runner *)state)->targets = targets;
}

static void builtin_set_wanted(void *state, const bool *wanted) {
    ((builtin_runner *)state)->wanted = wanted;
}

const pith__plan *pith__program_plan(const pith__program *program) {
    return program->runtime == &pith__runtime_builtin
               ? ((const builtin_program *)program->state)->plan
               : NULL;
}

const pith__runtime pith__runtime_builtin = {
    .name = "builtin",
    .devices = true,
    .open = builtin_open,
    .close = builtin_close,
    .create = builtin_create,
    .destroy = builtin_destroy,
    .run = builtin_run,
    .plan_bytes = builtin_plan_bytes,
    .trace = builtin_trace,
    .bytes = builtin_bytes,
    .set_targets = builtin_set_targets,
    .set_wanted = builtin_set_wanted,
};
