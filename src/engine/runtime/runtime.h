/* runtime.h - the engines that can run a graph. Each is one file runtime_<name>.c that ends in
 * `const pith_runtime pith_runtime_<name> = { … }`, and one line RUNTIME(<name>) in select/runtimes.def.
 *
 * A program is a graph that a runtime has made ready. It does not change, and any number of threads may use it. A
 * runner has the buffers that one run at a time needs. Sessions and the encoder know only these two; the plan and the
 * executor are the builtin runtime's own. */
#ifndef PITH_ENGINE_RUNTIME_RUNTIME_H
#define PITH_ENGINE_RUNTIME_RUNTIME_H

#include "base/counters.h"
#include "engine/exec/executor.h"
#include "pith/runtime.h"

typedef struct pith_runtime pith_runtime;

/* What a program is made from. All of it outlives the program. */
typedef struct pith_program_source {
    const pith_graph *graph; /* types are inferred; optimised, unless the runtime runs files as they are written */
    const pith_files *files;
    pith_str bytes;     /* the .onnx file that the graph was read from; data NULL: it was read from something else */
    const char *path;   /* of that file; NULL: the bytes are in memory only */
    const char *folder; /* without a path: where the model's external data is; NULL: it has none */
    const pith_runtime_options *options;
    const pith_log *log;
    pith_counters *counters; /* of the devices or providers that are tried */
} pith_program_source;

typedef struct pith_program {
    const pith_runtime *runtime; /* NULL: there is no program */
    const pith_graph *graph;     /* its inputs and outputs are those of the program, in the same order */
    void *state;                 /* the runtime's own */
} pith_program;

typedef struct pith_runner {
    const pith_runtime *runtime; /* NULL: there is no runner */
    void *state;
} pith_runner;

struct pith_runtime {
    const char *name;
    bool as_written; /* it runs the file that a graph was read from, with the inputs and outputs of the graph; the graph
                        is then not optimised, and its operators may be unknown */
    /* Whether the engine can be used at all, before a file is read. Fills in library and version of a report, unless it
     * is NULL. NULL: it always can. */
    pith_status (*ready)(pith_runtime_report *report, const pith_runtime_options *options, pith_error *err);
    /* Makes *state. It may keep pointers to the source's members and use the arena, which outlives the program. */
    pith_status (*open)(void **state, const pith_program_source *source, pith_arena *arena, pith_error *err);
    /* Fills in library, version and providers of a report. NULL: there is nothing to say. */
    void (*report)(const void *state, pith_runtime_report *report);
    void (*close)(void *state);
    /* Makes the state of a runner of a program with this state. Thread-safe. */
    pith_status (*create)(void **state, const void *program, const pith_executor_options *options, pith_error *err);
    void (*destroy)(void *state);
    /* Runs once, with `threads` threads. inputs and outputs are in the order of the graph, and inputs have the dtypes
     * of its inputs; shapes are checked here. An input with a default may be left out (dtype PITH_UNDEFINED). Outputs
     * belong to the runner until its next run. Non-zero *cancel ends the run with PITH_ERR_CANCELLED. */
    pith_status (*run)(void *state, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                       const volatile int *cancel, pith_error *err);
    /* Sets *bytes to the memory that activations take in a run on inputs of these shapes, and keeps the plan for it.
     * NULL: it cannot tell. */
    pith_status (*plan_bytes)(void *state, size_t *bytes, const pith_tensor *inputs, int threads, pith_error *err);
    /* From the next run on, reports each step to `trace`; a NULL trace ends that. NULL: it cannot report steps. */
    void (*trace)(void *state, pith_trace_fn *trace, void *context);
    /* Returns the bytes that the runner holds now. */
    size_t (*bytes)(const void *state);
    /* From the next run on, outputs go to these targets (engine/exec/output_target.h), where `run` checks them; NULL ends that. NULL:
     * it cannot do that, so its caller copies outputs. */
    void (*set_targets)(void *state, const pith_tensor *targets);
};

/* Made from select/runtimes.def by select/tables.c; the first is the default. */
extern const pith_runtime *const pith_runtime_table[];
extern const size_t pith_runtime_table_count;

/* The runtime of this name, the default if name is NULL. PITH_ERR_ARGUMENT lists the runtimes of this build. */
pith_status pith_runtime_find(const pith_runtime **runtime, const char *name, pith_error *err);

/* Call the functions above. Closing and destroying accept what was never made, and leave it so. */
pith_status pith_program_open(pith_program *program, const pith_runtime *runtime, const pith_program_source *source,
                              pith_arena *arena, pith_error *err);
void pith_program_close(pith_program *program);
pith_status pith_runner_create(pith_runner *runner, const pith_program *program, const pith_executor_options *options,
                               pith_error *err);
void pith_runner_destroy(pith_runner *runner);
pith_status pith_runner_run(const pith_runner *runner, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                            const volatile int *cancel, pith_error *err);
/* Sets *bytes to 0 if the runtime cannot tell. */
pith_status pith_runner_plan_bytes(const pith_runner *runner, size_t *bytes, const pith_tensor *inputs, int threads,
                                   pith_error *err);
void pith_runner_trace(const pith_runner *runner, pith_trace_fn *trace, void *context);
size_t pith_runner_bytes(const pith_runner *runner);
/* Runs as pith_runner_run, with outputs in the targets: [outputs]; NULL: none. */
pith_status pith_runner_run_into(const pith_runner *runner, pith_tensor *outputs, const pith_tensor *targets,
                                 const pith_graph *graph, const pith_tensor *inputs, int threads,
                                 const volatile int *cancel, pith_error *err);

extern const pith_runtime pith_runtime_builtin;
/* The plan of a program of the builtin runtime; NULL for programs of other runtimes. */
const pith_plan *pith_program_plan(const pith_program *program);

#endif
