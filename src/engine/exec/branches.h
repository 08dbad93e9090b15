/* branches.h - steps of a binding that may run at the same time.
 *
 * A region is a row of consecutive steps that falls into branches: no step of one reads what a step
 * of another writes, or writes where it reads or writes. Each branch keeps the order of its steps,
 * so every result has the same bits as in a run of one step at a time. Memory that a region touches
 * is kept from its first step to its last. */
#ifndef PITH_ENGINE_EXEC_BRANCHES_H
#define PITH_ENGINE_EXEC_BRANCHES_H

#include "engine/exec/binding.h"

typedef struct pith__region {
    uint32_t begin, end; /* steps, without end */
    uint32_t branches;
    const uint32_t *first; /* [branches + 1], into steps: where each branch begins, the costliest
                              first */
    const uint32_t *steps; /* [end - begin], by branch */
} pith__region;

typedef struct pith__branch_search {
    const pith__plan *plan;
    const pith__binding *binding; /* its steps are bound */
    const uint32_t *slot_of;      /* by value id: the slot in host memory; UINT32_MAX: none */
    size_t slot_count;
    int threads;          /* of a run */
    int at_once;          /* the most branches to run at a time */
    pith__arena *scratch; /* used during the call only */
    pith__arena *arena;   /* takes the regions */
} pith__branch_search;

/* Sets *regions and *count to the regions that are worth running side by side, by an estimate of
 * the time of their steps, in their order. Fails only if memory is out. */
pith_status pith__branches_find(pith__region **regions, size_t *count,
                                const pith__branch_search *search);

/* Makes slots that are used in a region last through it. They stay sorted by begin. */
void pith__branches_widen(pith__slot *slots, size_t count, const pith__region *regions,
                          size_t region_count);

#endif
