/* tensor_view.h - which element of a root tensor is at which place of a view of it.
 *
 * Reshape, Transpose, Squeeze, Unsqueeze, Flatten, Expand, Slice, Split and Gather by one index
 * only move elements. A view is the list of its axes, each made of atoms: a root axis (or a part of
 * it) with a size and a stride in elements of that axis. [B, S, 32] seen as [B, 2, S, 16] is (B)
 * (axis 2, size 2, stride 16) (S) (axis 2, size 16, stride 1). So all ways of writing "split into
 * heads", 3-D or 4-D, with or without shape arithmetic, give the same view. */
#ifndef PITH_ENGINE_OPT_TENSOR_VIEW_H
#define PITH_ENGINE_OPT_TENSOR_VIEW_H

#include "engine/graph/graph.h"

#define PITH_VIEW_ATOMS 24

typedef struct pith__view_atom {
    pith__dim size;
    int64_t stride; /* in elements of the root axis */
    int axis;       /* of the root; -1: repeated, not part of the root */
    int of;         /* the axis of the view it belongs to */
} pith__view_atom;

typedef struct pith__view {
    int rank, count;
    pith__view_atom atoms[PITH_VIEW_ATOMS]; /* in order; axes of size 1 have none */
    int64_t offset[PITH_MAX_RANK];          /* where the view begins along each root axis */
} pith__view;

/* The identity view of a root of this shape. */
void pith__view_init(pith__view *view, const pith__type *root);
/* Extends the view by one node of the kinds above, from its input 0 to `output`. Returns false for
 * any other node, and if its parameters are not known before the run. */
bool pith__view_apply(pith__view *view, const pith__node *node, const pith__value *output);
/* True if the node is of a kind that pith__view_apply can follow. */
bool pith__view_moves(const pith__node *node);

#endif
