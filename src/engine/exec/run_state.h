/* run_state.h - one run of an executor's plan, shared by the files that run its steps: executor.c,
 * and the parts that a selective build may be without (base/optional_part.h): branches side by side
 * (branches_run.c), subgraphs (subgraph.c) and tails (elementwise_tails.c). */
#ifndef PITH_ENGINE_EXEC_RUN_STATE_H
#define PITH_ENGINE_EXEC_RUN_STATE_H

#include <stdatomic.h>

#include "base/optional_part.h"
#include "engine/exec/binding_maker.h"
#include "engine/exec/branches.h"
#include "engine/exec/executor_memory.h"

/* Branches of a region that run at the same time. */
typedef struct pith__beside {
    const struct pith__running *run;
    const pith__region *region;
    atomic_flag lock;   /* of the listener, and of what follows; there may be no other kind of
                           lock */
    pith_status status; /* of the first step, in the order of the plan, that failed */
    size_t step;
    pith_error *err;
} pith__beside;

static inline void pith__beside_lock(pith__beside *b) {
    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire)) {}
}

static inline void pith__beside_unlock(pith__beside *b) {
    atomic_flag_clear_explicit(&b->lock, memory_order_release);
}

/* What operators see; step is the one that runs. */
typedef struct pith__running {
    pith__exec exec;
    pith__executor *executor;
    pith__binding *binding;
    size_t step;
    pith__beside *beside; /* NULL: the step runs alone */
    uint32_t branch;
    size_t dead; /* slots that were overwritten since no step needs them; only with PITH_POISON */
} pith__running;

/* Runs the step that r->step says. */
pith_status pith__running_step(pith__running *r, pith_error *err);
/* Runs the plan. ports: the graph's inputs, then its captures. */
pith_status pith__executor_run_ports(pith__executor *e, pith_tensor *outputs,
                                     const pith_tensor *ports, int threads, pith__stop *stop,
                                     pith_error *err);
/* parent: of the step that owns the plan, which is that of a subgraph; NULL: none. */
pith_status pith__executor_make(pith__executor **executor, const pith__plan *plan,
                                const pith__executor_options *options, const pith__executor *parent,
                                const pith__dim *symbols, pith_error *err);

/* The part "branches". Without it steps run one after the other, with the same bits. */
typedef struct pith__branches_part {
    pith_status (*find)(pith__region **regions, size_t *count, const pith__branch_search *search);
    void (*widen)(pith__slot *slots, size_t count, const pith__region *regions,
                  size_t region_count);
    pith_status (*run)(const pith__running *r, const pith__region *region, pith_error *err);
} pith__branches_part;

/* The part "subgraphs", which plans with steps that own graphs need. */
typedef struct pith__subgraphs_part {
    pith_status (*run)(pith__exec *exec, const pith__run *run, const char *attribute,
                       const pith_tensor *inputs, size_t input_count, pith_tensor *outputs,
                       size_t output_count);
    /* the executors of subgraphs that it has */
    void (*end_binding)(pith__executor *e, pith__binding *b);
    void (*end_results)(pith__executor *e);
} pith__subgraphs_part;

/* The part "tails". Without it each elementwise step runs by itself, with the same bits. */
typedef struct pith__tails_part {
    /* Puts an elementwise step into the tail of the step whose output it changes, if there is one.
     */
    bool (*join)(pith__binder *k, const pith__step *step, const pith__bound_step *bound,
                 uint32_t index);
    /* Makes the tail of the step that runs. runs: [PITH_TAIL_MAX], which the tail refers to. */
    void (*make)(pith__tail *tail, pith__run *runs, pith__running *r,
                 const pith__bound_step *bound);
} pith__tails_part;

#endif
