/* bind.h - a plan under concrete input shapes: what every value is and where it lies. */
#ifndef PITH_EXEC_BIND_H
#define PITH_EXEC_BIND_H

#include "plan/plan.h"

typedef enum pith_place {
    PITH_PLACE_NONE,   /* nobody reads it */
    PITH_PLACE_KNOWN,  /* constant, or computed at bind */
    PITH_PLACE_INPUT,  /* the caller's memory, or a capture */
    PITH_PLACE_BUFFER, /* offset into the activation buffer */
    PITH_PLACE_VIEW,   /* the memory of another value: a view, or a result in place */
    PITH_PLACE_LATE    /* shape known only in the run */
} pith_place;

typedef enum pith_bound_kind { PITH_BOUND_DONE, PITH_BOUND_RUN, PITH_BOUND_LATE } pith_bound_kind;

typedef struct pith_bound_step {
    pith_bound_kind kind;
    uint32_t index; /* of the plan's step */
    pith_run run;   /* in and out point into tensors; scratch is set for every run */
    size_t scratch_offset, scratch_bytes;
} pith_bound_step;

/* Everything is in the arena, which is reset when the binding is replaced. */
typedef struct pith_binding {
    pith_arena arena;
    uint64_t last_used;      /* 0: empty */
    int threads;             /* scratch is laid out for this many; part of the key */
    pith_tensor *inputs;     /* the key: dtype and dims of each graph input and capture; data NULL */
    pith_type *types;        /* by value id */
    pith_place *places;
    pith_tensor *tensors;    /* by value id; data of KNOWN values is set, of the others by the run */
    size_t *offsets;         /* of BUFFER values */
    uint32_t *aliases;       /* of VIEW values: the other value's id */
    pith_bound_step *steps;
    size_t step_count;
    size_t buffer_bytes;
} pith_binding;

/* inputs: the graph's inputs, then its captures; their data is not read. exec serves the steps that run at bind; its
 * memory must live as long as the binding. */
pith_status pith_bind(pith_binding *binding, const pith_plan *plan, const pith_tensor *inputs, pith_exec *exec,
                      size_t memory_limit, pith_error *err);

/* Prepares a late step in the run: infers its outputs from the inputs at hand and gives those whose shape is known
 * memory from exec. */
pith_status pith_bind_late(pith_binding *binding, const pith_plan *plan, pith_bound_step *step, pith_exec *exec,
                           pith_arena *arena, pith_error *err);

#endif
