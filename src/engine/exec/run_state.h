/* run_state.h - one run of an executor's plan, shared by the files that run its steps: executor.c, and the parts that a
 * selective build may be without (base/optional_part.h): branches side by side (branches_run.c), subgraphs (subgraph.c) and tails
 * (elementwise_tails.c). */
#ifndef PITH_ENGINE_EXEC_RUN_STATE_H
#define PITH_ENGINE_EXEC_RUN_STATE_H

#include <stdatomic.h>

#include "base/optional_part.h"
#include "engine/exec/binding_maker.h"
#include "engine/exec/branches.h"
#include "engine/exec/executor_memory.h"

/* Branches of a region that run at the same time. */
typedef struct pith_beside {
    const struct pith_running *run;
    const pith_region *region;
    atomic_flag lock;   /* of the listener, and of what follows; there may be no other kind of lock */
    pith_status status; /* of the first step, in the order of the plan, that failed */
    size_t step;
    pith_error *err;
} pith_beside;

static inline void pith_beside_lock(pith_beside *b) {
    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire)) {}
}

static inline void pith_beside_unlock(pith_beside *b) { atomic_flag_clear_explicit(&b->lock, memory_order_release); }

/* What operators see; step is the one that runs. */
typedef struct pith_running {
    pith_exec exec;
    pith_executor *executor;
    pith_binding *binding;
    size_t step;
    pith_beside *beside; /* NULL: the step runs alone */
    uint32_t branch;
} pith_running;

/* Runs the step that r->step says. */
pith_status pith_running_step(pith_running *r, pith_error *err);
/* Runs the plan. ports: the graph's inputs, then its captures. */
pith_status pith_executor_run_ports(pith_executor *e, pith_tensor *outputs, const pith_tensor *ports, int threads,
                                    const volatile int *cancel, pith_error *err);
/* parent: of the step that owns the plan, which is that of a subgraph; NULL: none. */
pith_status pith_executor_make(pith_executor **executor, const pith_plan *plan, const pith_executor_options *options,
                               const pith_executor *parent, const pith_dim *symbols, pith_error *err);

/* The part "branches". Without it steps run one after the other, with the same bits. */
typedef struct pith_branches_part {
    pith_status (*find)(pith_region **regions, size_t *count, const pith_branch_search *search);
    void (*widen)(pith_slot *slots, size_t count, const pith_region *regions, size_t region_count);
    pith_status (*run)(const pith_running *r, const pith_region *region, pith_error *err);
} pith_branches_part;

/* The part "subgraphs", which plans with steps that own graphs need. */
typedef struct pith_subgraphs_part {
    pith_status (*run)(pith_exec *exec, const pith_run *run, const char *attribute, const pith_tensor *inputs,
                       size_t input_count, pith_tensor *outputs, size_t output_count);
    void (*end_binding)(pith_executor *e, pith_binding *b); /* the executors of subgraphs that it has */
    void (*end_results)(pith_executor *e);
} pith_subgraphs_part;

/* The part "tails". Without it each elementwise step runs by itself, with the same bits. */
typedef struct pith_tails_part {
    /* Puts an elementwise step into the tail of the step whose output it changes, if there is one. */
    bool (*join)(pith_binder *k, const pith_step *step, const pith_bound_step *bound, uint32_t index);
    /* Makes the tail of the step that runs. runs: [PITH_TAIL_MAX], which the tail refers to. */
    void (*make)(pith_tail *tail, pith_run *runs, pith_running *r, const pith_bound_step *bound);
} pith_tails_part;

#endif
