/* plan.h - a graph made ready: order, kernels, packed weights, life times. Immutable, shared by threads. */
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
    const pith_backend *backend; /* whose memory activations lie in */
    pith_step *steps;
    size_t step_count;
    size_t widest_in, widest_out; /* most entries a step's arrays of inputs and outputs have (pith_node_in_room) */
    /* By value id: contents known at load, aligned for their type, or NULL. Of PITH_VALUE_PACKED: without data. */
    const pith_tensor *const *constants;
    /* Values whose contents follow from the sizes of the inputs alone (type.elems); no step makes them. */
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

/* The graph must be bound and inferred. Everything is allocated from arena. Nodes that no output needs, and those whose
 * outputs are constants or follow from the inputs' sizes, are left out. files: where constants lie; pages that were
 * only read to pack them are given back. NULL: none are. */
pith_status pith_plan_build(pith_plan **plan, const pith_graph *graph, const pith_files *files, pith_arena *arena,
                            pith_error *err);

#endif
