/* kept.h - what a subgraph gave, kept for the step that owns it.
 *
 * Results lie in the subgraph's own memory, which its next run uses again, so they are copied. Items of sequences are
 * copied once: a loop that carries a sequence on and adds to it then costs what it adds, not what it carries. */
#ifndef PITH_EXEC_KEPT_H
#define PITH_EXEC_KEPT_H

#include "base/map.h"
#include "ops/op.h"

typedef struct pith_kept {
    pith_arena turns[2]; /* of the results of this call and of the one before, which may be its inputs */
    int turn;
    pith_arena items;   /* of sequences; those that are no longer in any are dropped from time to time */
    pith_arena dropped; /* the items before that, for the call that still has them as inputs */
    pith_map known;     /* addresses of items' contents that lie in `items`; in that arena too */
    bool has_items;
} pith_kept;

void pith_kept_init(pith_kept *kept, const pith_allocator *allocator);
void pith_kept_free(pith_kept *kept);
size_t pith_kept_bytes(const pith_kept *kept);
/* Makes outputs, as the subgraph left them, last until the call after the next one. given: the inputs of this call,
 * whose memory is their owner's for as long. */
pith_status pith_kept_keep(pith_kept *kept, pith_tensor *outputs, size_t count, const pith_tensor *given,
                           size_t given_count, pith_error *err);

#endif
