/* binding.h - a binding: the shape and the place in memory of every value of a plan, for one set of
 * input sizes. */
#ifndef PITH_ENGINE_EXEC_BINDING_H
#define PITH_ENGINE_EXEC_BINDING_H

#include "engine/exec/value_places.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/plan/plan.h"

struct pith__child;
struct pith__region;

typedef enum pith__bound_mode {
    PITH_BOUND_RUN,  /* shapes and places are known */
    PITH_BOUND_SKIP, /* a view, computed at bind, or in the tail of another step: the run skips
                        it */
    PITH_BOUND_LATE  /* shapes are inferred when the step runs */
} pith__bound_mode;

typedef struct pith__bound_step {
    pith__bound_mode mode;
    const pith_tensor **in;       /* [pith__node_in_room], into the binding's tensors; NULL:
                                     absent */
    pith_tensor **out;            /* [pith__node_out_room]; NULL: absent or unused */
    uint32_t tail[PITH_TAIL_MAX]; /* steps that run with this one, on its output 0, and are
                                     skipped */
    int tail_count;
    size_t scratch, scratch_bytes; /* offset in the buffer of the step's memory; with separate
                                      slots, its slot */
    struct pith__child **children; /* one per subplan, made when first needed */
} pith__bound_step;

typedef struct pith__placed { /* a tensor in a buffer */
    pith_tensor *tensor;
    size_t offset;
    int memory;
    size_t output; /* 1 + index of the output of the graph that has this memory to itself; 0:
                      none */
    size_t next;   /* with separate slots: 1 + index of another tensor in the same slot; 0: none */
} pith__placed;

/* Memory of its own for tensors that share it, from the step where it is first written to the one
 * that reads it last. Numbers of slots count from 1; 0 is none. */
typedef struct pith__separate_slot {
    size_t bytes;
    int memory;
    void *data;                  /* NULL unless it is allocated now */
    size_t first;                /* 1 + index in placed */
    size_t next_begin, next_end; /* slots that begin, and that end, at the same step */
} pith__separate_slot;

typedef struct pith__separate {
    pith__separate_slot *slots; /* [0] is not used; NULL: values lie in one buffer per memory */
    size_t count;
    size_t *begins, *ends; /* [step_count + 1], by step: the first slot */
} pith__separate;

/* What a binding needs of one memory. */
typedef struct pith__bound_memory {
    size_t bytes;     /* of the buffer */
    const char *base; /* of the buffer, when the tensors' addresses were last set */
} pith__bound_memory;

/* An output of the graph. Its memory can be elsewhere than in the buffer, where that memory is its
 * own to the end. */
typedef struct pith__bound_output {
    bool known;   /* its shape is known before the run */
    bool movable; /* the tensors with its number in pith__placed are all that share its memory */
    int memory;   /* of these tensors */
    size_t bytes; /* of the largest of them */
    void *data;   /* where it was when the tensors' addresses were last set; NULL: in the buffer */
} pith__bound_output;

typedef struct pith__alias { /* a tensor that is a view of a port */
    pith_tensor *tensor;
    const pith_tensor *port;
} pith__alias;

typedef struct pith__device_alias { /* a tensor that is a port in the memory of a device */
    pith_tensor *tensor;
    size_t port;
} pith__device_alias;

/* A binding belongs to one executor. Ports are the graph's inputs, then its captures. */
typedef struct pith__binding {
    pith__arena arena;
    pith_tensor *ports; /* dtypes and shapes that the binding was made for */
    int threads;
    uint64_t last_used;
    pith_tensor *tensors; /* by value id */
    pith__bound_step *steps;
    const pith__dim *symbols;
    pith__bound_memory *memories; /* by memory of the plan's devices */
    pith__placed *placed;
    size_t placed_count;
    pith__bound_output *outputs; /* [output_count] */
    pith__alias *aliases;        /* views of ports */
    size_t alias_count;
    const uint8_t *ends; /* [ports + outputs]: the memory that each lies in; NULL: the host's */
    pith__device_alias *device_aliases;
    size_t device_alias_count;
    pith__separate separate;
    struct pith__region *regions; /* steps that run side by side (engine/exec/branches.h), in their
                                     order */
    size_t region_count;
    pith__slot *dying; /* slots of host memory by the step that they end at; only in a build with
                          PITH_POISON */
    size_t dying_count;
} pith__binding;

typedef struct pith__bind {
    const pith__plan *plan;
    const pith_tensor *ports;
    const pith__dim *outer_symbols; /* of the executor that runs this one as a subgraph; NULL */
    int threads;
    int branches;                             /* of a graph that may run at the same time; up to 1:
                                                 none do */
    const struct pith__branches_part *beside; /* NULL: none do */
    const struct pith__tails_part *tails; /* elementwise steps run with the step whose output they
                                             change; NULL: none */
    bool separate;                        /* give each value memory of its own instead of a place in
                                             one buffer */
    const uint8_t *ends;                  /* as in the binding (engine/exec/device_runs.h) */
    pith__stop *stop;                     /* may be NULL */
    pith__arena *scratch;                 /* reset by the caller */
    pith_error *err;
} pith__bind;

size_t pith__plan_port_count(const pith__plan *plan);
const pith__value *pith__plan_port(const pith__plan *plan, size_t port);

/* binding->arena must be initialised and empty. After a failure the binding must not be used. */
pith_status pith__binding_make(pith__binding *binding, const pith__bind *how);
/* Checks that values and scratch lie inside of their buffers, that no two lie in the same memory
 * while both are needed, and that views stay inside of what they show. Builds with assertions check
 * every binding. Fails with PITH_ERR_FORMAT, or if memory is out. */
pith_status pith__binding_check(const pith__binding *binding, const pith__plan *plan,
                                pith_error *err);

/* True if the tensor has a valid shape and enough bytes for it; of a sequence, every item. *needed,
 * if needed is not NULL, is set to the bytes that the shape needs. */
bool pith__tensor_is_sound(const pith_tensor *tensor, size_t *needed);
/* True for a tensor of known shape and size: not a sequence, not an absent optional. */
bool pith__type_is_plain(const pith__type *type);
/* Sets a tensor's shape and bytes from a plain type. */
pith_status pith__tensor_shape(pith_tensor *tensor, const pith__type *type, const pith__step *step,
                               pith_error *err);
/* Runs an operator's infer on actual sizes. Fails if a type that was known at load has changed. out
 * has step->out_count elements. */
pith_status pith__step_infer(const pith__step *step, pith__infer *c);
/* The bytes of scratch its backend asks for. */
pith_status pith__step_scratch(const pith__step *step, const pith__infer *c, int threads,
                               size_t *bytes);

#endif
