/* stack.h - tensors of one shape laid side by side along a new axis, as loops make them. */
#ifndef PITH_OPS_STACK_H
#define PITH_OPS_STACK_H

#include "ops/op.h"

/* Grows in memory of the run; zeroed is empty. */
typedef struct pith_stack {
    pith_tensor item; /* the shape all have; data is not used */
    char *data;       /* items end to end */
    int64_t count, capacity;
} pith_stack;

/* Appends a copy, contents included. An error if the shape is another than that of the first. */
pith_status pith_stack_push(pith_run *r, pith_stack *stack, const pith_tensor *item);
/* The output: count items along the axis (negative: from the end of the output's rank). reverse: the last item first.
 * If there was none, shape gives what is known of an item's shape; unknown sizes are taken as 0. */
pith_status pith_stack_finish(pith_run *r, int output, pith_stack *stack, int64_t axis, bool reverse,
                              const pith_type *shape);
/* Item i of count along the axis; data lies in x itself if the axis allows, else in *buffer, which is made if NULL. */
pith_status pith_stack_slice(pith_run *r, pith_tensor *item, const pith_tensor *x, int axis, int64_t i, void **buffer);

#endif
