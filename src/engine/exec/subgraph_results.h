/* subgraph_results.h - copies of a subgraph's results, for the step that owns the subgraph.
 *
 * The next run of the subgraph overwrites its results, so they are copied. Items of sequences are
 * copied once: a loop that appends to a sequence in each iteration then pays for the new item
 * only. */
#ifndef PITH_ENGINE_EXEC_SUBGRAPH_RESULTS_H
#define PITH_ENGINE_EXEC_SUBGRAPH_RESULTS_H

#include "base/memory/span_map.h"
#include "engine/ops/op.h"

typedef struct pith__kept {
    pith__arena turns[2]; /* results of this call and of the one before, which may be its inputs */
    int turn;
    pith__arena items;   /* of sequences; those that are no longer in any are dropped from time to
                            time */
    pith__arena dropped; /* the items before that, for the call that still has them as inputs */
    pith__map known;     /* addresses of items' contents that lie in `items`; in that arena too */
    bool has_items;
    pith__stop *stop; /* of the call whose results are copied */
} pith__kept;

void pith__kept_init(pith__kept *kept, const pith_allocator *allocator);
void pith__kept_free(pith__kept *kept);
size_t pith__kept_bytes(const pith__kept *kept);
/* Copies the subgraph's outputs, so that they are valid until the call after the next one. given:
 * the inputs of this call; their owner keeps their memory as long. */
pith_status pith__kept_keep(pith__kept *kept, pith_tensor *outputs, size_t count,
                            const pith_tensor *given, size_t given_count, pith__stop *stop,
                            pith_error *err);

#endif
