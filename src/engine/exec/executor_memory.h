/* executor_memory.h - what an executor holds: its state, the buffers of its plan, separate slots,
 * and the late arena with the values of dynamic shape. Shared by executor.c, which runs steps, and
 * executor_memory.c only. */
#ifndef PITH_ENGINE_EXEC_EXECUTOR_MEMORY_H
#define PITH_ENGINE_EXEC_EXECUTOR_MEMORY_H

#include "engine/exec/binding.h"
#include "engine/exec/executor.h"
#include "engine/exec/subgraph_results.h"

/* Sets of input sizes that an executor remembers. More help a caller whose sizes alternate; each
 * one keeps memory for every step. */
enum { MAX_BINDINGS = 8 };

typedef struct pith__tree {
    size_t held, peak;
    pith__arena *arena;    /* of the root */
    pith__trace_fn *trace; /* NULL: no listener */
    void *trace_context;
    const pith__device *failed; /* in the last run; NULL: none */
} pith__tree;

/* Memory of a device that a late value of this run lies in. */
typedef struct pith__late_block {
    struct pith__late_block *next;
    void *data;
    size_t bytes;
} pith__late_block;

typedef struct pith__store {
    const pith__device *device; /* NULL: the host's */
    pith__late_block *late;     /* in the late arena; the host's late values are in that arena
                                   themselves */
} pith__store;

typedef struct pith__buffer {
    void *data;
    size_t bytes;
} pith__buffer;

/* What all executors of one depth share. In the root's arena. */
typedef struct pith__level {
    struct pith__level *below; /* of their subgraphs; NULL: none has run yet */
    pith__buffer *buffers;     /* by memory of the plan's devices */
} pith__level;

/* Results of one subgraph of a step, whatever the binding: the next run of the step overwrites
 * them. */
typedef struct pith__child_results {
    pith__kept kept;
    size_t counted; /* of kept, in the pith__tree */
} pith__child_results;

/* The executor of a subgraph, and what it gave. */
typedef struct pith__child {
    struct pith__executor *executor;
    pith__child_results *results;
} pith__child;

struct pith__executor {
    const pith__plan *plan;
    pith__executor_options options;
    pith_allocator allocator;
    const pith__dim *outer_symbols;
    const struct pith__branches_part *beside;     /* NULL: steps run one after the other */
    const struct pith__subgraphs_part *subgraphs; /* NULL: no step owns a graph */
    const struct pith__tails_part *tails;         /* NULL: each step runs by itself */
    pith__tree own, *tree;                        /* tree: of the root */
    int depth;                                    /* 0: the root */
    pith__level *level;
    pith__child_results **results; /* by step: one per subplan, made when first needed */
    pith__arena arena, scratch, late;
    size_t late_counted;   /* of late, in the pith__tree */
    pith__store *memories; /* by memory of the plan's devices */
    pith__binding *bindings[MAX_BINDINGS];
    size_t binding_count;
    pith__binding *allocated; /* the binding whose separate slots may be allocated; NULL: none */
    uint64_t clock;
    const pith_tensor *targets;    /* [outputs], of the caller; NULL: none */
    const bool *wanted;            /* [outputs], of the caller; NULL: all */
    const bool *skips;             /* [step_count]: steps that this run passes over; NULL: none */
    struct pith__subsets *subsets; /* NULL: none was asked for */
    struct pith__executor_devices *devices; /* NULL: there is only host memory */
    pith_tensor *given;    /* ports of a subgraph, put together by its owner's executor */
    pith_tensor *ports;    /* of this run, aligned */
    const void **lent;     /* [ports], of the root: addresses of the inputs of this run,
                                   sorted */
    const pith__type **in; /* for late steps: in points into types */
    pith__type *types, *out;
};

/* `more` bytes are held now, and `fewer` are no longer. */
void pith__tree_count(pith__tree *t, size_t more, size_t fewer);
/* Adds n to a counter of the options; of the root only: a run of a subgraph is a part of its
 * owner's run. */
void pith__executor_note(const pith__executor *e, pith__counter which, uint64_t n);

/* Makes what values of dynamic shape need ready for a run, and frees what the last one left. */
pith_status pith__late_reset(pith__executor *e, pith_error *err);
/* Return memory that lives until the next run, aligned to 64 bytes; NULL if it is out. memory: of
 * the plan's devices. */
void *pith__late_alloc(pith__executor *e, size_t bytes);
void *pith__late_alloc_in(pith__executor *e, int memory, size_t bytes);
/* Counts what was allocated in e->late itself. */
void pith__late_count(pith__executor *e);
/* Frees the late values in the memory of a device. */
void pith__late_free(pith__executor *e, pith__store *m);

/* Separate slots: allocates those that begin at the step, frees those that end at it, frees all
 * that are allocated. */
pith_status pith__separate_begin(pith__executor *e, pith__binding *b, size_t step, pith_error *err);
void pith__separate_end(pith__executor *e, pith__binding *b, size_t step);
void pith__separate_end_all(pith__executor *e);

/* Makes the buffer of a memory at least so large; for a tight executor, just so large. */
pith_status pith__buffer_reserve(pith__executor *e, size_t memory, size_t bytes, pith_error *err);
void pith__buffer_free(pith__executor *e, const pith__store *m, pith__buffer *b);
/* *made: a level without buffers, unless there is one. */
pith_status pith__level_make(pith__level **made, pith__arena *arena, size_t memories,
                             pith_error *err);

#endif
