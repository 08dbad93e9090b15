/* branches_run.c - runs the branches of a region at the same time: the part "branches".
 *
 * A branch is one part of a run on threads, with a copy of the run's state. A branch stops at its
 * first failure while the others go on; of all failures the one of the earliest step is told, which
 * is the one that a run of one step at a time would have met. */
#include "base/stop.h"
#include "base/os/threads.h"
#include "engine/exec/run_state.h"

static pith_status run_branch_steps(pith__running *r, const pith__region *region, pith_error *err) {
    for (uint32_t i = region->first[r->branch]; i < region->first[r->branch + 1]; i++) {
        r->step = region->steps[i];
        PITH_TRY(pith__running_step(r, err));
    }
    return PITH_OK;
}

/* One branch of a region, from its first step to its last. Of the failures of several branches the
 * one of the earliest step is kept, so that a thread that was fast does not decide what is told. */
static void run_branch(void *context, size_t part, int worker) {
    (void)worker;
    pith__beside *all = context;
    pith__running r = *all->run;
    pith_error err = { 0 };
    r.beside = all;
    r.branch = (uint32_t)part;
    pith_status status = run_branch_steps(&r, all->region, &err);
    if (!status) return;
    pith__beside_lock(all);
    if (!all->status || r.step < all->step) {
        all->status = status;
        all->step = r.step;
        if (all->err) *all->err = err;
    }
    pith__beside_unlock(all);
}

/* Idle threads help with the steps of the branches that are left, so each step may use all threads
 * of the run. */
static pith_status run_region(const pith__running *r, const pith__region *region, pith_error *err) {
    const pith__executor *e = r->executor;
    pith__beside all = { .run = r, .region = region, .err = err, .lock = ATOMIC_FLAG_INIT };
    const int at_once =
        e->options.branches < r->exec.threads ? e->options.branches : r->exec.threads;
    pith__threads_run_until(r->exec.stop, run_branch, &all, region->branches, at_once);
    if (all.status && !pith__status_stops(all.status) && !e->tree->failed)
        e->tree->failed = e->plan->steps[all.step].device;
    pith__executor_note(e, PITH_COUNT_branches, region->branches);
    return all.status ? all.status : pith__stop_check(r->exec.stop, err);
}

const pith__part pith__part_branches = { "branches", &(const pith__branches_part){
                                                         pith__branches_find, pith__branches_widen,
                                                         run_region } };
