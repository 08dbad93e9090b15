/* branches_run.c - runs the branches of a region at the same time: the part "branches". */
#include "base/cancel.h"
#include "base/os/threads.h"
#include "engine/exec/run_state.h"

static pith_status run_branch_steps(pith_running *r, const pith_region *region, pith_error *err) {
    for (uint32_t i = region->first[r->branch]; i < region->first[r->branch + 1]; i++) {
        r->step = region->steps[i];
        if (pith_is_cancelled(r->exec.cancel)) return pith_fail(err, PITH_ERR_CANCELLED, "cancelled");
        PITH_TRY(pith_running_step(r, err));
    }
    return PITH_OK;
}

static void run_branch(void *context, size_t part, int worker) {
    (void)worker;
    pith_beside *all = context;
    pith_running r = *all->run;
    pith_error err = { 0 };
    r.beside = all;
    r.branch = (uint32_t)part;
    pith_status status = run_branch_steps(&r, all->region, &err);
    if (!status) return;
    pith_beside_lock(all);
    if (!all->status || r.step < all->step) {
        all->status = status;
        all->step = r.step;
        if (all->err) *all->err = err;
    }
    pith_beside_unlock(all);
}

/* Idle threads help with the steps of the branches that are left, so each step may use all threads of the run. */
static pith_status run_region(const pith_running *r, const pith_region *region, pith_error *err) {
    const pith_executor *e = r->executor;
    pith_beside all = { .run = r, .region = region, .err = err, .lock = ATOMIC_FLAG_INIT };
    const int at_once = e->options.branches < r->exec.threads ? e->options.branches : r->exec.threads;
    pith_threads_run(run_branch, &all, region->branches, at_once);
    if (all.status && all.status != PITH_ERR_CANCELLED && !e->tree->failed)
        e->tree->failed = e->plan->steps[all.step].device;
    pith_executor_note(e, PITH_COUNT_branches, region->branches);
    return all.status;
}

const pith_part pith_part_branches = { "branches", &(const pith_branches_part){ pith_branches_find, pith_branches_widen,
                                                                                run_region } };
