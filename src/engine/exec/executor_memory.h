/* executor_memory.h - what an executor holds: its state, the buffers of its plan, separate slots, and the late arena
 * with the values of dynamic shape. Shared by executor.c, which runs steps, and executor_memory.c only. */
#ifndef PITH_ENGINE_EXEC_EXECUTOR_MEMORY_H
#define PITH_ENGINE_EXEC_EXECUTOR_MEMORY_H

#include "engine/exec/binding.h"
#include "engine/exec/executor.h"
#include "engine/exec/subgraph_results.h"

/* Sets of input sizes that an executor remembers. More help a caller whose sizes alternate; each one keeps memory for
 * every step. */
enum { MAX_BINDINGS = 8 };

typedef struct pith_tree {
    size_t held, peak;
    pith_arena *arena;    /* of the root */
    pith_trace_fn *trace; /* NULL: no listener */
    void *trace_context;
    const pith_device *failed; /* in the last run; NULL: none */
} pith_tree;

/* Memory of a device that a late value of this run lies in. */
typedef struct pith_late_block {
    struct pith_late_block *next;
    void *data;
    size_t bytes;
} pith_late_block;

typedef struct pith_store {
    const pith_device *device; /* NULL: the host's */
    pith_late_block *late;     /* in the late arena; the host's late values are in that arena themselves */
} pith_store;

typedef struct pith_buffer {
    void *data;
    size_t bytes;
} pith_buffer;

/* What all executors of one depth share. In the root's arena. */
typedef struct pith_level {
    struct pith_level *below; /* of their subgraphs; NULL: none has run yet */
    pith_buffer *buffers;     /* by memory of the plan's devices */
} pith_level;

/* Results of one subgraph of a step, whatever the binding: the next run of the step overwrites them. */
typedef struct pith_child_results {
    pith_kept kept;
    size_t counted; /* of kept, in the pith_tree */
} pith_child_results;

/* The executor of a subgraph, and what it gave. */
typedef struct pith_child {
    struct pith_executor *executor;
    pith_child_results *results;
} pith_child;

struct pith_executor {
    const pith_plan *plan;
    pith_executor_options options;
    pith_allocator allocator;
    const pith_dim *outer_symbols;
    const struct pith_branches_part *beside;     /* NULL: steps run one after the other */
    const struct pith_subgraphs_part *subgraphs; /* NULL: no step owns a graph */
    const struct pith_tails_part *tails;         /* NULL: each step runs by itself */
    pith_tree own, *tree;                        /* tree: of the root */
    int depth;                                   /* 0: the root */
    pith_level *level;
    pith_child_results **results; /* by step: one per subplan, made when first needed */
    pith_arena arena, scratch, late;
    size_t late_counted;  /* of late, in the pith_tree */
    pith_store *memories; /* by memory of the plan's devices */
    pith_binding *bindings[MAX_BINDINGS];
    size_t binding_count;
    pith_binding *allocated; /* the binding whose separate slots may be allocated; NULL: none */
    uint64_t clock;
    const pith_tensor *targets; /* [outputs], of the caller; NULL: none */
    pith_tensor *given;         /* ports of a subgraph, put together by its owner's executor */
    pith_tensor *ports;         /* of this run, aligned */
    const void **lent;          /* [ports], of the root: addresses of the inputs of this run, sorted */
    const pith_type **in;       /* for late steps: in points into types */
    pith_type *types, *out;
};

/* `more` bytes are held now, and `fewer` are no longer. */
void pith_tree_count(pith_tree *t, size_t more, size_t fewer);
/* Adds n to a counter of the options; of the root only: a run of a subgraph is a part of its owner's run. */
void pith_executor_note(const pith_executor *e, pith_counter which, uint64_t n);

/* Makes what values of dynamic shape need ready for a run, and frees what the last one left. */
pith_status pith_late_reset(pith_executor *e, pith_error *err);
/* Return memory that lives until the next run, aligned to 64 bytes; NULL if it is out. memory: of the plan's devices.
 */
void *pith_late_alloc(pith_executor *e, size_t bytes);
void *pith_late_alloc_in(pith_executor *e, int memory, size_t bytes);
/* Counts what was allocated in e->late itself. */
void pith_late_count(pith_executor *e);
/* Frees the late values in the memory of a device. */
void pith_late_free(pith_executor *e, pith_store *m);

/* Separate slots: allocates those that begin at the step, frees those that end at it, frees all that are allocated. */
pith_status pith_separate_begin(pith_executor *e, pith_binding *b, size_t step, pith_error *err);
void pith_separate_end(pith_executor *e, pith_binding *b, size_t step);
void pith_separate_end_all(pith_executor *e);

/* Makes the buffer of a memory at least so large; for a tight executor, just so large. */
pith_status pith_buffer_reserve(pith_executor *e, size_t memory, size_t bytes, pith_error *err);
void pith_buffer_free(pith_executor *e, const pith_store *m, pith_buffer *b);
/* *made: a level without buffers, unless there is one. */
pith_status pith_level_make(pith_level **made, pith_arena *arena, size_t memories, pith_error *err);

#endif
