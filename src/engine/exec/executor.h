/* executor.h - running a plan.
 *
 * Binding turns the shapes of the inputs into the shape of every value, by the operators' own infer
 * with numbers. It computes small values that depend on shapes only, and gives every other value an
 * offset in one buffer by its life time. A few bindings are remembered. A run executes the steps in
 * order. It allocates memory only for values of dynamic shape, which is known only at run time,
 * from an arena that the next run resets. One thread at a time may use an executor. */
#ifndef PITH_ENGINE_EXEC_EXECUTOR_H
#define PITH_ENGINE_EXEC_EXECUTOR_H

#include "base/counters.h"
#include "base/stop.h"
#include "engine/plan/plan.h"

typedef struct pith__executor pith__executor;

/* One record per step of a run, and one per binding made for it, for profiles. */
typedef struct pith__trace_event {
    const pith__step *step;     /* NULL: a binding was made */
    size_t index;               /* index of the step in its plan */
    uint32_t branch;            /* 0: alone; else 1 + number of the branch, beside others of its
                               region */
    const pith__device *device; /* that did it, beside other steps; NULL: it was done when the next
                                   step began */
    int depth;                  /* 0: the main graph; a subgraph's steps lie inside their owner's
                               time */
    uint64_t begin_ns, end_ns;
    const pith__run *run; /* valid during the call; contents may be read if step->memory is 0 */
} pith__trace_event;

typedef void pith__trace_fn(void *context, const pith__trace_event *event);

typedef struct pith__executor_options {
    const pith_allocator *allocator;
    const pith_log *log;
    bool tight; /* memory is limited: keep no larger buffer than the current run needs */
    int64_t loop_limit;
    bool separate; /* allocate each value when its step begins and free it after its last use,
                      instead of one buffer */
    bool tails;    /* elementwise steps run on each part of the result of the step before, while it
                      is in the cache; listeners do not hear of them */
    bool fresh_plans; /* make the binding anew in each run */
    int branches;     /* independent branches of the graph that may run at the same time; up to 1:
                         one step at a time */
    /* Runs, bindings made and reused, buffers, inputs and outputs used in place or copied; of the
     * main graph, not of subgraphs. NULL: nothing is counted. */
    pith__counters *counters;
} pith__executor_options;

pith_status pith__executor_create(pith__executor **executor, const pith__plan *plan,
                                  const pith__executor_options *options, pith_error *err);
void pith__executor_destroy(pith__executor *executor);

/* From the next run on, `trace` is called for each step, including those of subgraphs, by one
 * thread at a time: the one that runs, or where branches run side by side any of those. NULL ends
 * that and costs nothing. */
void pith__executor_trace(pith__executor *executor, pith__trace_fn *trace, void *context);

/* Runs the plan once. inputs and outputs are in the order of the graph. An input with a default may
 * be left out (dtype PITH_UNDEFINED). Outputs are valid until the next run. If the shapes of two
 * inputs contradict each other through a shared symbol, the error names both. */
pith_status pith__executor_run(pith__executor *executor, pith_tensor *outputs,
                               const pith_tensor *inputs, int threads, pith__stop *stop,
                               pith_error *err);

/* From the next run on, outputs go to memory of the caller (engine/exec/output_target.h): targets
 * is [outputs], and stays the caller's. An output is written there directly if its shape is known
 * before the run, nothing else keeps its memory to the end, and no input has bytes there; any other
 * is copied at the end. NULL ends that. */
void pith__executor_set_targets(pith__executor *executor, const pith_tensor *targets);

/* From the next run on, only these outputs are computed: wanted is [outputs], and stays the
 * caller's. The others have no type (PITH_UNDEFINED) then, and their targets are not touched. Needs
 * the part "subsets" (engine/exec/output_subsets.h). NULL: all. */
void pith__executor_set_wanted(pith__executor *executor, const bool *wanted);

/* The device whose step, copy or memory made the last run fail; NULL: none did, or it did not fail.
 */
const pith__device *pith__executor_failed_device(const pith__executor *executor);

/* Sets *bytes to the size of the activation buffer for inputs of these shapes, without a run.
 * Values of dynamic shape are not included. */
pith_status pith__executor_plan_bytes(pith__executor *executor, size_t *bytes,
                                      const pith_tensor *inputs, int threads, pith_error *err);

/* What runs of plans with several memories need (engine/exec/device_runs.h), if the backends
 * differ, else NULL; defined by select/tables.c. */
typedef struct pith__run_devices pith__run_devices;
extern const pith__run_devices pith__run_devices_all;
extern const pith__run_devices *const pith__run_devices_used;

/* Return the bytes of the activation buffer and of values of dynamic shape: now, and the most so
 * far. */
size_t pith__executor_bytes(const pith__executor *executor);
size_t pith__executor_peak_bytes(const pith__executor *executor);

#endif
