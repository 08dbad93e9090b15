/* session.h - running a plan.
 *
 * bind: shapes of the inputs → shape of every value (the operators' own infer, now with numbers), small values that
 * depend on shapes alone are computed, and every other value gets an offset in one buffer by life time. A few
 * bindings are remembered. run: steps in order; nothing is allocated except for late values (shape known only from
 * contents), which come from an arena that is reset by the next run. One thread at a time. */
#ifndef PITH_EXEC_EXECUTOR_H
#define PITH_EXEC_EXECUTOR_H

#include "plan/plan.h"

typedef struct pith_executor pith_executor;

/* One record per step of a run, and one per binding made for it, for profiles. */
typedef struct pith_trace_event {
    const pith_step *step; /* NULL: shapes were bound */
    size_t index;          /* of the step in its plan */
    int depth;             /* 0: the main graph; a subgraph's steps lie inside their owner's time */
    uint64_t begin_ns, end_ns;
    const pith_run *run; /* shapes; valid during the call */
} pith_trace_event;

typedef void pith_trace_fn(void *context, const pith_trace_event *event);

typedef struct pith_executor_options {
    const pith_allocator *allocator;
    const pith_log *log;
    bool tight; /* hold no larger buffer than the run at hand wants: memory has a limit */
    int64_t loop_limit;
} pith_executor_options;

pith_status pith_executor_create(pith_executor **executor, const pith_plan *plan, const pith_executor_options *options,
                                 pith_error *err);
void pith_executor_destroy(pith_executor *executor);

/* Who hears of each step from the next run on, subgraphs' included, on the thread that runs; NULL: nobody, which costs
 * nothing. */
void pith_executor_trace(pith_executor *executor, pith_trace_fn *trace, void *context);
/* The clock of trace events: nanoseconds, monotonic. */
uint64_t pith_trace_now(void);

/* inputs in the order of the plan's graph inputs (those with a default may be missing: dtype PITH_UNDEFINED). outputs
 * in graph order; valid until the next run. An input whose shape contradicts another's through a shared symbol is an
 * error naming both. */
pith_status pith_executor_run(pith_executor *executor, pith_tensor *outputs, const pith_tensor *inputs, int threads,
                              const volatile int *cancel, pith_error *err);

/* Bytes the activation buffer has for inputs like these; nothing is run. Values whose shape follows from contents come
 * on top. */
pith_status pith_executor_plan_bytes(pith_executor *executor, size_t *bytes, const pith_tensor *inputs, int threads,
                                     pith_error *err);

/* Bytes of the activation buffer and the late arena now, and the most so far. */
size_t pith_executor_bytes(const pith_executor *executor);
size_t pith_executor_peak_bytes(const pith_executor *executor);

#endif
