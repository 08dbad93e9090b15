/* plan.h - a graph that is ready to run: order of steps, kernels, packed weights, life times. It
 * does not change, and threads share it. */
#ifndef PITH_ENGINE_PLAN_PLAN_H
#define PITH_ENGINE_PLAN_PLAN_H

#include "base/os/file.h"
#include "engine/backend/backend.h"
#include "engine/ops/shared/packed_constants.h"

typedef struct pith__plan pith__plan;

/* The plan of a graph attribute of a step's node. */
typedef struct pith__subplan {
    pith_str attribute;
    pith__plan *plan;
} pith__subplan;

/* A node, or a copy between two memories. */
typedef struct pith__step {
    const pith__node *node; /* of a copy: one that stands in no graph, with pith__copy_to_device or
                  pith__copy_to_host */
    const pith__device *device; /* that runs it; of a copy: the one whose memory is not the
                                   host's */
    pith_status (*run)(void *context, pith__run *r); /* NULL: a view */
    void *context;
    const void *state;            /* what prepare made */
    pith__packed_bytes upcoming;  /* as of pith__run */
    const pith__value *const *in; /* as the node's, but copies where the node's lie in another
                                     memory */
    const pith__value *const *out;
    int32_t in_count, out_count;
    int32_t memory; /* that outputs and scratch lie in; 0: the host's */
    bool is_copy;
    struct pith__claim *claim; /* the nodes that this one stands for (engine/backend/claim.h); NULL:
                                  none */
    pith__subplan *subplans;   /* one per graph attribute of the node */
    size_t subplan_count;
} pith__step;

/* A constant in the memory of a device. */
typedef struct pith__resident {
    const pith__value *value;  /* the plan's own */
    const pith__value *source; /* the graph's */
    void *data;                /* NULL: no step reads it */
} pith__resident;

struct pith__plan {
    const pith__graph *graph;
    pith__devices *devices; /* opened for the plan of the main graph, and closed with it */
    pith__step *steps;
    size_t step_count;
    const pith__value *const *values; /* by id: the values of the graph, then those that copies
                                         make */
    size_t value_count;
    const uint8_t *memory_of;          /* by value id: the memory it lies in */
    const pith__value *const *outputs; /* of the graph, or their copies in host memory */
    size_t widest_in, widest_out;      /* the largest size of a step's arrays of inputs and outputs
                                     (pith__node_in_room) */
    /* By value id: contents known at load, aligned for their type, or NULL. A PITH_VALUE_PACKED has
     * a tensor without data. */
    const pith_tensor *const *constants;
    pith__resident *residents;
    size_t resident_count;
    /* Values whose contents depend only on the sizes of the inputs (type.elems). No step computes
     * them. */
    const pith__value *const *symbolic;
    size_t symbolic_count;
    const pith__packed_step *packed; /* in the order of the steps */
    size_t packed_count;
    /* By value id: index of the last step that reads it; step_count for outputs; UINT32_MAX never.
     */
    const uint32_t *last_use;
    pith__arena *arena;
    pith__isa isa;
    size_t packed_bytes; /* of the arena: packed weights and states */
};

/* What plans for devices with programs and passes need (engine/plan/claimed_nodes.h), if the
 * backends differ, else NULL; defined by select/tables.c. */
typedef struct pith__plan_devices pith__plan_devices;
extern const pith__plan_devices pith__plan_devices_all;
extern const pith__plan_devices *const pith__plan_devices_used;

/* Makes the plan of a graph, which must be bound and inferred. All memory comes from arena. Nodes
 * are left out if no output needs them, or if their outputs are constants or depend only on the
 * inputs' sizes. files hold the constants: pages that are read only for packing are released. NULL:
 * no pages are released. It runs on graph->devices. */
pith_status pith__plan_build(pith__plan **plan, const pith__graph *graph, const pith__files *files,
                             pith__arena *arena, pith_error *err);
/* Checks that every input is made before a step reads it, that each step has a kernel and
 * last_use is right, and that constants, plain and packed, have their bytes; subplans included.
 * Builds with assertions check every plan. Fails with PITH_ERR_FORMAT, or if memory is out. */
pith_status pith__plan_check(const pith__plan *plan, pith_error *err);
/* Closes the devices, whose memory the arena does not hold; the arena frees the rest. NULL is fine.
 */
void pith__plan_close(pith__plan *plan);
/* The same on the devices of a list, whatever graph->devices says. *failed, if the plan cannot be
 * made because of one device, is set to that, else to NULL. */
pith_status pith__plan_build_on(pith__plan **plan, const pith__graph *graph,
                                const pith__files *files, const pith__device_list *list,
                                pith__arena *arena, const pith__device_choice **failed,
                                pith_error *err);

#endif
