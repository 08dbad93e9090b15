/* runtime.c - finds runtimes by name, and calls them. */
#include "engine/runtime/runtime.h"

#include <string.h>

#include "base/left_out_pieces.h"
#include "base/error.h"
#include "base/text_out.h"
#include "base/piece_listener.h"
#include "engine/exec/output_target.h"

pith_status pith_runtime_find(const pith_runtime **runtime, const char *name, pith_error *err) {
    char list[200];
    pith_text_out out = pith_text_begin(list, sizeof list);
    for (size_t i = 0; i < pith_runtime_table_count; i++) {
        if (!name || !strcmp(pith_runtime_table[i]->name, name)) {
            *runtime = pith_runtime_table[i];
            pith_piece_used(*runtime);
            return PITH_OK;
        }
        pith_text_put(&out, "%s%s", i ? ", " : "", pith_runtime_table[i]->name);
    }
    PITH_TRY(pith_piece_check("runtimes", pith_str_of(name ? name : "builtin"), err));
    if (name && !strcmp(name, "ort"))
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "this build is without 'ort'; build with PITH_WITH_RUNTIME_ORT");
    return pith_fail(err, PITH_ERR_ARGUMENT, "there is no runtime '%s'; this build has %s", name ? name : "", list);
}

pith_status pith_program_open(pith_program *program, const pith_runtime *runtime, const pith_program_source *source,
                              pith_arena *arena, pith_error *err) {
    void *state;
    PITH_TRY(runtime->open(&state, source, arena, err));
    *program = (pith_program){ runtime, source->graph, state };
    return PITH_OK;
}

void pith_program_close(pith_program *program) {
    if (program->runtime) program->runtime->close(program->state);
    program->runtime = NULL;
}

pith_status pith_runner_create(pith_runner *runner, const pith_program *program, const pith_executor_options *options,
                               pith_error *err) {
    void *state;
    PITH_TRY(program->runtime->create(&state, program->state, options, err));
    *runner = (pith_runner){ program->runtime, state };
    return PITH_OK;
}

void pith_runner_destroy(pith_runner *runner) {
    if (runner->runtime) runner->runtime->destroy(runner->state);
    runner->runtime = NULL;
}

pith_status pith_runner_run(const pith_runner *runner, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                            const volatile int *cancel, pith_error *err) {
    return runner->runtime->run(runner->state, outputs, inputs, threads, cancel, err);
}

pith_status pith_runner_plan_bytes(const pith_runner *runner, size_t *bytes, const pith_tensor *inputs, int threads,
                                   pith_error *err) {
    *bytes = 0;
    return runner->runtime->plan_bytes ? runner->runtime->plan_bytes(runner->state, bytes, inputs, threads, err)
                                       : PITH_OK;
}

void pith_runner_trace(const pith_runner *runner, pith_trace_fn *trace, void *context) {
    if (runner->runtime->trace) runner->runtime->trace(runner->state, trace, context);
}

size_t pith_runner_bytes(const pith_runner *runner) { return runner->runtime->bytes(runner->state); }

pith_status pith_runner_run_into(const pith_runner *runner, pith_tensor *outputs, const pith_tensor *targets,
                                 const pith_graph *graph, const pith_tensor *inputs, int threads,
                                 const volatile int *cancel, pith_error *err) {
    const pith_runtime *runtime = runner->runtime;
    if (runtime->set_targets) runtime->set_targets(runner->state, targets);
    pith_status status = runtime->run(runner->state, outputs, inputs, threads, cancel, err);
    if (runtime->set_targets) runtime->set_targets(runner->state, NULL);
    for (size_t i = 0; !status && targets && i < graph->output_count; i++)
        if (targets[i].data) status = pith_target_fill(&outputs[i], &targets[i], graph->outputs[i]->name, err);
    return status;
}
