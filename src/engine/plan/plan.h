/* plan.h - a graph that is ready to run: order of steps, kernels, packed weights, life times. It does not change, and
 * threads share it. */
#ifndef PITH_ENGINE_PLAN_PLAN_H
#define PITH_ENGINE_PLAN_PLAN_H

#include "engine/backend/backend.h"
#include "base/os/file.h"
#include "engine/ops/shared/packed_constants.h"

typedef struct pith_plan pith_plan;

/* The plan of a graph attribute of a step's node. */
typedef struct pith_subplan {
    pith_str attribute;
    pith_plan *plan;
} pith_subplan;

/* A node, or a copy between two memories. */
typedef struct pith_step {
    const pith_node *node; /* of a copy: one that stands in no graph, with pith_copy_to_device or pith_copy_to_host */
    const pith_device *device; /* that runs it; of a copy: the one whose memory is not the host's */
    pith_status (*run)(void *context, pith_run *r); /* NULL: a view */
    void *context;
    const void *state;           /* what prepare made */
    pith_packed_bytes upcoming;  /* as of pith_run */
    const pith_value *const *in; /* as the node's, but copies where the node's lie in another memory */
    const pith_value *const *out;
    int32_t in_count, out_count;
    int32_t memory; /* that outputs and scratch lie in; 0: the host's */
    bool is_copy;
    pith_subplan *subplans; /* one per graph attribute of the node */
    size_t subplan_count;
} pith_step;

/* A constant in the memory of a device. */
typedef struct pith_resident {
    const pith_value *value;  /* the plan's own */
    const pith_value *source; /* the graph's */
    void *data;               /* NULL: no step reads it */
} pith_resident;

struct pith_plan {
    const pith_graph *graph;
    pith_devices *devices; /* opened for the plan of the main graph, and closed with it */
    pith_step *steps;
    size_t step_count;
    const pith_value *const *values; /* by id: the values of the graph, then those that copies make */
    size_t value_count;
    const uint8_t *memory_of;         /* by value id: the memory it lies in */
    const pith_value *const *outputs; /* of the graph, or their copies in host memory */
    size_t widest_in, widest_out; /* the largest size of a step's arrays of inputs and outputs (pith_node_in_room) */
    /* By value id: contents known at load, aligned for their type, or NULL. A PITH_VALUE_PACKED has a tensor without
     * data. */
    const pith_tensor *const *constants;
    pith_resident *residents;
    size_t resident_count;
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
 * pages that are read only for packing are released. NULL: no pages are released. It runs on graph->devices. */
pith_status pith_plan_build(pith_plan **plan, const pith_graph *graph, const pith_files *files, pith_arena *arena,
                            pith_error *err);
/* Closes the devices, whose memory the arena does not hold; the arena frees the rest. NULL is fine. */
void pith_plan_close(pith_plan *plan);
/* The same on the devices of a list, whatever graph->devices says. *failed, if the plan cannot be made because of one
 * device, is set to its backend, else to NULL. */
pith_status pith_plan_build_on(pith_plan **plan, const pith_graph *graph, const pith_files *files,
                               const pith_device_list *list, pith_arena *arena, const pith_backend **failed,
                               pith_error *err);

#endif
