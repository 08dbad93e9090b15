/* runtime.h - the engines that can run a graph. Each is one file runtime_<name>.c that ends in
 * `const pith__runtime pith__runtime_<name> = { … }`, and one line RUNTIME(<name>) in
 * select/runtimes.def.
 *
 * A program is a graph that a runtime has made ready. It does not change, and any number of threads
 * may use it. A runner has the buffers that one run at a time needs. Sessions and the encoder know
 * only these two; the plan and the executor are the builtin runtime's own. */
#ifndef PITH_ENGINE_RUNTIME_RUNTIME_H
#define PITH_ENGINE_RUNTIME_RUNTIME_H

#include "base/counters.h"
#include "engine/exec/executor.h"
#include "pith/runtime.h"

typedef struct pith__runtime pith__runtime;

/* What a program is made from. All of it outlives the program. */
typedef struct pith__program_source {
    const pith__graph *graph; /* types are inferred; optimised, unless the runtime runs files as
                                 they are written */
    const pith__files *files;
    pith_str bytes;     /* the .onnx file that the graph was read from; data NULL: it was read from
                           something else */
    const char *path;   /* of that file; NULL: the bytes are in memory only */
    const char *folder; /* without a path: where the model's external data is; NULL: it has none */
    const pith_runtime_options *options;
    const pith_log *log;
    pith__counters *counters; /* of the devices or providers that are tried */
} pith__program_source;

typedef struct pith__program {
    const pith__runtime *runtime; /* NULL: there is no program */
    const pith__graph *graph;     /* its inputs and outputs are those of the program, in the same
                                     order */
    void *state;                  /* the runtime's own */
} pith__program;

typedef struct pith__runner {
    const pith__runtime *runtime; /* NULL: there is no runner */
    void *state;
} pith__runner;

struct pith__runtime {
    const char *name;
    bool devices;    /* inputs and outputs may lie in the memory of a device of its list */
    bool as_written; /* it runs the file that a graph was read from, with the inputs and outputs of
                        the graph; the graph is then not optimised, and its operators may be
                        unknown */
    /* Whether the engine can be used at all, before a file is read. Fills in library and version of
     * a report, unless it is NULL. NULL: it always can. */
    pith_status (*ready)(pith_runtime_report *report, const pith_runtime_options *options,
                         pith_error *err);
    /* Makes *state. It may keep pointers to the source's members and use the arena, which outlives
     * the program. */
    pith_status (*open)(void **state, const pith__program_source *source, pith__arena *arena,
                        pith_error *err);
    /* Fills in library, version and providers of a report. NULL: there is nothing to say. */
    void (*report)(const void *state, pith_runtime_report *report);
    void (*close)(void *state);
    /* Makes the state of a runner of a program with this state. Thread-safe. */
    pith_status (*create)(void **state, const void *program, const pith__executor_options *options,
                          pith_error *err);
    void (*destroy)(void *state);
    /* Runs once, with `threads` threads. inputs and outputs are in the order of the graph, and
     * inputs have the dtypes of its inputs; shapes are checked here. An input with a default may be
     * left out (dtype PITH_UNDEFINED). Outputs belong to the runner until its next run. Non-zero
     * stop, which may be NULL, ends the run. */
    pith_status (*run)(void *state, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                       pith__stop *stop, pith_error *err);
    /* Sets *bytes to the memory that activations take in a run on inputs of these shapes, and keeps
     * the plan for it. NULL: it cannot tell. */
    pith_status (*plan_bytes)(void *state, size_t *bytes, const pith_tensor *inputs, int threads,
                              pith_error *err);
    /* From the next run on, reports each step to `trace`; a NULL trace ends that. NULL: it cannot
     * report steps. */
    void (*trace)(void *state, pith__trace_fn *trace, void *context);
    /* Returns the bytes that the runner holds now. */
    size_t (*bytes)(const void *state);
    /* From the next run on, outputs go to these targets (engine/exec/output_target.h), where `run`
     * checks them; NULL ends that. NULL: it cannot do that, so its caller copies outputs. */
    void (*set_targets)(void *state, const pith_tensor *targets);
    /* From the next run on, only these outputs are computed: [outputs], valid until this is called
     * again; the others have no type then. NULL: all. */
    void (*set_wanted)(void *state, const bool *wanted);
};

/* Made from select/runtimes.def by select/tables.c; the first is the default. */
extern const pith__runtime *const pith__runtime_table[];
extern const size_t pith__runtime_table_count;

/* The runtime of this name, the default if name is NULL. PITH_ERR_ARGUMENT lists the runtimes of
 * this build. */
pith_status pith__runtime_find(const pith__runtime **runtime, const char *name, pith_error *err);

/* Call the functions above. Closing and destroying accept what was never made, and leave it so. */
pith_status pith__program_open(pith__program *program, const pith__runtime *runtime,
                               const pith__program_source *source, pith__arena *arena,
                               pith_error *err);
void pith__program_close(pith__program *program);
pith_status pith__runner_create(pith__runner *runner, const pith__program *program,
                                const pith__executor_options *options, pith_error *err);
void pith__runner_destroy(pith__runner *runner);
pith_status pith__runner_run(const pith__runner *runner, pith_tensor *outputs,
                             const pith_tensor *inputs, int threads, pith__stop *stop,
                             pith_error *err);
/* Sets *bytes to 0 if the runtime cannot tell. */
pith_status pith__runner_plan_bytes(const pith__runner *runner, size_t *bytes,
                                    const pith_tensor *inputs, int threads, pith_error *err);
void pith__runner_trace(const pith__runner *runner, pith__trace_fn *trace, void *context);
size_t pith__runner_bytes(const pith__runner *runner);
/* Runs as pith__runner_run, with outputs in the targets: [outputs]; NULL: none. wanted: as of
 * set_wanted. */
pith_status pith__runner_run_into(const pith__runner *runner, pith_tensor *outputs,
                                  const pith_tensor *targets, const bool *wanted,
                                  const pith__graph *graph, const pith_tensor *inputs, int threads,
                                  pith__stop *stop, pith_error *err);

extern const pith__runtime pith__runtime_builtin;
/* The plan of a program of the builtin runtime; NULL for programs of other runtimes. */
const pith__plan *pith__program_plan(const pith__program *program);

#endif
