/* runtime_builtin.c - Pith's own engine: a program is a plan, a runner is an executor. */
#include "runtime/runtime.h"

#include "plan/plan.h"

static pith_status builtin_open(void **state, const pith_graph *graph, const pith_files *files, pith_arena *arena,
                                pith_error *err) {
    pith_plan *plan;
    pith_status status = pith_plan_build(&plan, graph, files, arena, err);
    if (!status) *state = plan;
    return status;
}

static void builtin_close(void *state) { pith_plan_close(state); }

static pith_status builtin_create(void **state, const void *program, const pith_executor_options *options,
                                  pith_error *err) {
    pith_executor *executor;
    pith_status status = pith_executor_create(&executor, program, options, err);
    if (!status) *state = executor;
    return status;
}

static void builtin_destroy(void *state) { pith_executor_destroy(state); }

static pith_status builtin_run(void *state, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                               const volatile int *cancel, pith_error *err) {
    return pith_executor_run(state, outputs, inputs, threads, cancel, err);
}

static pith_status builtin_plan_bytes(void *state, size_t *bytes, const pith_tensor *inputs, int threads,
                                      pith_error *err) {
    return pith_executor_plan_bytes(state, bytes, inputs, threads, err);
}

static void builtin_trace(void *state, pith_trace_fn *trace, void *context) {
    pith_executor_trace(state, trace, context);
}

static size_t builtin_bytes(const void *state) { return pith_executor_bytes(state); }

const pith_plan *pith_program_plan(const pith_program *program) {
    return program->runtime == &pith_runtime_builtin ? program->state : NULL;
}

const pith_runtime pith_runtime_builtin = {
    .name = "builtin",
    .open = builtin_open,
    .close = builtin_close,
    .create = builtin_create,
    .destroy = builtin_destroy,
    .run = builtin_run,
    .plan_bytes = builtin_plan_bytes,
    .trace = builtin_trace,
    .bytes = builtin_bytes,
};
