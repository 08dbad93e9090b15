/* plan.h - a graph made ready: order, kernels, packed weights, life times. Immutable, shared by threads. */
#ifndef PITH_PLAN_PLAN_H
#define PITH_PLAN_PLAN_H

#include "backend/backend.h"

typedef struct pith_plan pith_plan;

typedef struct pith_step {
    const pith_node *node;
    const pith_backend *backend;
    void *state;
    const pith_value *const *in;
    const pith_value *const *out;
    int32_t in_count, out_count;
    struct { pith_str attribute; pith_plan *plan; } *subplans; /* one per graph attribute of the node */
    size_t subplan_count;
} pith_step;

struct pith_plan {
    const pith_graph *graph;
    pith_step *steps;
    size_t step_count;
    const uint32_t *last_use; /* by value id: index of the last step that reads it; step_count for outputs; UINT32_MAX never */
    pith_arena *arena;
    pith_isa isa;
    size_t packed_bytes;
};

/* The graph must be bound and inferred. Everything is allocated from arena. */
pith_status pith_plan_build(pith_plan **plan, const pith_graph *graph, pith_arena *arena, pith_error *err);

#endif
