/* claimed_nodes.h - gathers the nodes that one device takes into programs (engine/backend/claim.h).
 */
#ifndef PITH_ENGINE_PLAN_CLAIMED_NODES_H
#define PITH_ENGINE_PLAN_CLAIMED_NODES_H

#include "engine/backend/claim.h"
#include "engine/plan/placement.h"

/* What becomes a step. */
typedef struct pith__placed_node {
    const pith__node *node;
    const pith__device *device; /* NULL: the first that takes the node */
    pith__claim *claim;         /* NULL: the node stands for itself */
} pith__placed_node;

typedef pith_status pith__choose_device(const void *context, const pith__node *node,
                                        const pith__device **device);
typedef pith_status pith__take_node(void *context, const pith__placed_node *node);

/* Puts each copy behind the step that makes its input (copy_order.c). */
pith_status pith__copies_order(pith__plan *plan, pith_error *err);

/* What plans need only where a device makes programs or has passes of its own. Programs without
 * such devices do not link it. */
struct pith__plan_devices {
    /* Hands each of the `count` marked nodes, or the claims that stand for them, to `take`, in an
     * order in which each comes after those whose results it reads. The marks change, and stay
     * other than 0. */
    pith_status (*place)(const pith__plan *plan, size_t count, pith__choose_device *choose,
                         pith__take_node *take, void *context, pith_error *err);
    /* Replaces *graph by a copy in the arena that the passes of the devices have rewritten, if some
     * device has passes. */
    pith_status (*rewrite)(const pith__graph **graph, pith__devices *devices, pith__arena *arena,
                           pith_error *err);
    pith_status (*order)(pith__plan *plan, pith_error *err); /* pith__copies_order */
};

#endif
