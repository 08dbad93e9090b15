/* stack_tensors.h - stacking tensors of one shape along a new axis, as loops do. */
#ifndef PITH_ENGINE_OPS_SHARED_STACK_TENSORS_H
#define PITH_ENGINE_OPS_SHARED_STACK_TENSORS_H

#include "engine/ops/op.h"

/* Grows in memory of the run. A zeroed struct is an empty stack. */
typedef struct pith__stack {
    pith_tensor item; /* the shape of all items; data is not used */
    char *data;       /* the items, contiguous */
    int64_t count, capacity;
} pith__stack;

/* Appends a copy of an item. Fails if its shape is not that of the first item. */
pith_status pith__stack_push(pith__run *r, pith__stack *stack, const pith_tensor *item);
/* Makes the output: the items along the axis (negative: counted from the end of the output's rank),
 * in reverse order if reverse is set. If there are no items, their shape is `shape`, with 0 for
 * unknown sizes. */
pith_status pith__stack_finish(pith__run *r, int output, pith__stack *stack, int64_t axis,
                               bool reverse, const pith__type *shape);
/* Sets *item to slice i of x along the axis. Its data is in x itself if the slice is contiguous;
 * else in *buffer, which is allocated if it is NULL. */
pith_status pith__stack_slice(pith__run *r, pith_tensor *item, const pith_tensor *x, int axis,
                              int64_t i, void **buffer);

#endif
