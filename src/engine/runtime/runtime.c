/* runtime.c - finds runtimes by name, and calls them.
 *
 * A runtime is a row of functions in select/runtimes.def, and what it cannot do is NULL there. The
 * calls here fill in what it lacks: outputs of a runtime without targets are copied to them. */
#include "engine/runtime/runtime.h"

#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/text_out.h"
#include "engine/exec/output_target.h"

pith_status pith__runtime_find(const pith__runtime **runtime, const char *name, pith_error *err) {
    char list[200];
    pith__text_out out = pith__text_begin(list, sizeof list);
    for (size_t i = 0; i < pith__runtime_table_count; i++) {
        if (!name || !strcmp(pith__runtime_table[i]->name, name)) {
            *runtime = pith__runtime_table[i];
            pith__piece_used(*runtime);
            return PITH_OK;
        }
        pith__text_put(&out, "%s%s", i ? ", " : "", pith__runtime_table[i]->name);
    }
    PITH_TRY(pith__piece_check("runtimes", pith__str_of(name ? name : "builtin"), err));
    if (name && !strcmp(name, "ort"))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "this build is without 'ort'; build with PITH_WITH_RUNTIME_ORT");
    return pith__fail(err, PITH_ERR_ARGUMENT, "there is no runtime '%s'; this build has %s",
                      name ? name : "", list);
}

pith_status pith__program_open(pith__program *program, const pith__runtime *runtime,
                               const pith__program_source *source, pith__arena *arena,
                               pith_error *err) {
    void *state;
    PITH_TRY(runtime->open(&state, source, arena, err));
    *program = (pith__program){ runtime, source->graph, state };
    return PITH_OK;
}

void pith__program_close(pith__program *program) {
    if (program->runtime) program->runtime->close(program->state);
    program->runtime = NULL;
}

pith_status pith__runner_create(pith__runner *runner, const pith__program *program,
                                const pith__executor_options *options, pith_error *err) {
    void *state;
    PITH_TRY(program->runtime->create(&state, program->state, options, err));
    *runner = (pith__runner){ program->runtime, state };
    return PITH_OK;
}

void pith__runner_destroy(pith__runner *runner) {
    if (runner->runtime) runner->runtime->destroy(runner->state);
    runner->runtime = NULL;
}

pith_status pith__runner_run(const pith__runner *runner, pith_tensor *outputs,
                             const pith_tensor *inputs, int threads, pith__stop *stop,
                             pith_error *err) {
    return runner->runtime->run(runner->state, outputs, inputs, threads, stop, err);
}

pith_status pith__runner_plan_bytes(const pith__runner *runner, size_t *bytes,
                                    const pith_tensor *inputs, int threads, pith_error *err) {
    *bytes = 0;
    if (!runner->runtime->plan_bytes) return PITH_OK;
    return runner->runtime->plan_bytes(runner->state, bytes, inputs, threads, err);
}

void pith__runner_trace(const pith__runner *runner, pith__trace_fn *trace, void *context) {
    if (runner->runtime->trace) runner->runtime->trace(runner->state, trace, context);
}

size_t pith__runner_bytes(const pith__runner *runner) {
    return runner->runtime->bytes(runner->state);
}

pith_status pith__runner_run_into(const pith__runner *runner, pith_tensor *outputs,
                                  const pith_tensor *targets, const bool *wanted,
                                  const pith__graph *graph, const pith_tensor *inputs, int threads,
                                  pith__stop *stop, pith_error *err) {
    const pith__runtime *runtime = runner->runtime;
    if (runtime->set_targets) runtime->set_targets(runner->state, targets);
    runtime->set_wanted(runner->state, wanted);
    pith_status status = runtime->run(runner->state, outputs, inputs, threads, stop, err);
    if (runtime->set_targets) runtime->set_targets(runner->state, NULL);
    runtime->set_wanted(runner->state, NULL);
    if (!targets) return status;
    for (size_t i = 0; !status && i < graph->output_count; i++)
        if (targets[i].data && (!wanted || wanted[i]))
            status =
                pith__target_fill(&outputs[i], &targets[i], graph->outputs[i]->name, stop, err);
    return status;
}
