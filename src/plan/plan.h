/* plan.h - a graph that is ready to run: order of steps, kernels, packed weights, life times. It does not change, and
 * threads share it. */
#ifndef PITH_PLAN_PLAN_H
#define PITH_PLAN_PLAN_H

#include "backend/backend.h"
#include "base/file.h"
#include "ops/pack.h"

typedef struct pith_plan pith_plan;

/* The plan of a graph attribute of a step's node. */
typedef struct pith_subplan {
    pith_str attribute;
    pith_plan *plan;
} pith_subplan;

typedef struct pith_step {
    const pith_node *node;
    const pith_backend *backend;
    const void *state;          /* what prepare made */
    pith_packed_bytes upcoming; /* as of pith_run */
    const pith_value *const *in;
    const pith_value *const *out;
    int32_t in_count, out_count;
    pith_subplan *subplans; /* one per graph attribute of the node */
    size_t subplan_count;
} pith_step;

struct pith_plan {
    const pith_graph *graph;
    const pith_backend *backend; /* the backend whose memory holds activations */
    pith_step *steps;
    size_t step_count;
    size_t widest_in, widest_out; /* the largest size of a step's arrays of inputs and outputs (pith_node_in_room) */
    /* By value id: contents known at load, aligned for their type, or NULL. A PITH_VALUE_PACKED has a tensor without
     * data. */
    const pith_tensor *const *constants;
    /* Values whose contents depend only on the sizes of the inputs (type.elems). No step computes them. */
    const pith_value *const *symbolic;
    size_t symbolic_count;
    const pith_packed_step *packed; /* in the order of the steps */
    size_t packed_count;
    /* By value id: index of the last step that reads it; step_count for outputs; UINT32_MAX never. */
    const uint32_t *last_use;
    pith_arena *arena;
    pith_isa isa;
    size_t packed_bytes; /* of the arena: packed weights and states */
};

/* Makes the plan of a graph, which must be bound and inferred. All memory comes from arena. Nodes are left out if no
 * output needs them, or if their outputs are constants or depend only on the inputs' sizes. files hold the constants:
 * pages that are read only for packing are released. NULL: no pages are released. */
pith_status pith_plan_build(pith_plan **plan, const pith_graph *graph, const pith_files *files, pith_arena *arena,
                            pith_error *err);

#endif
