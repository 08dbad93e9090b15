/* plan.h - a graph made ready: order, kernels, packed weights, life times. Immutable, shared by threads. */
#ifndef PITH_PLAN_PLAN_H
#define PITH_PLAN_PLAN_H

#include "backend/backend.h"

typedef struct pith_plan pith_plan;

/* The plan of a graph attribute of a step's node. */
typedef struct pith_subplan {
    pith_str attribute;
    pith_plan *plan;
} pith_subplan;

typedef struct pith_step {
    const pith_node *node;
    const pith_backend *backend;
    const void *state; /* what prepare made */
    pith_subplan *subplans;
    size_t subplan_count;
} pith_step;

/* A constant that was packed and that no step reads any more. */
typedef struct pith_consumed {
    const void *data;
    size_t bytes;
} pith_consumed;

#define PITH_NEVER_USED UINT32_MAX

struct pith_plan {
    const pith_graph *graph;
    const pith_backend *backend; /* whose memory activations live in */
    pith_step *steps;
    size_t step_count;
    /* By value id: the last step that reads it; step_count for graph outputs; PITH_NEVER_USED. */
    uint32_t *last_use;
    /* By value id: its contents follow from the input shapes alone (type.elems can be evaluated at bind); the nodes that
     * would compute nothing else are no steps. */
    bool *from_shapes;
    pith_consumed *consumed;
    size_t consumed_count;
    size_t packed_bytes; /* of states and packed weights */
    pith_isa isa;
};

/* The graph must be bound and inferred, and must not change afterwards. Everything is allocated from arena. */
pith_status pith_plan_build(pith_plan **plan, const pith_graph *graph, pith_arena *arena, pith_error *err);

/* Integer contents of this dtype can be made from pith_dim elements. */
bool pith_dtype_holds_elems(int dtype);

#endif
