/* view.h - which element of a root tensor stands where in a view of it.
 *
 * Reshape, Transpose, Squeeze, Unsqueeze, Flatten, Expand, Slice, Split and Gather by one index only move elements.
 * A view is the list of its axes, each made of atoms: a root axis (or a part of it) with a size and a stride in
 * elements of that axis. [B, S, 32] seen as [B, 2, S, 16] is (B) (axis 2, size 2, stride 16) (S) (axis 2, size 16,
 * stride 1). So every spelling of "split into heads", 3-D or 4-D, with or without shape arithmetic, reads the same. */
#ifndef PITH_OPT_VIEW_H
#define PITH_OPT_VIEW_H

#include "graph/graph.h"

#define PITH_VIEW_ATOMS 24

typedef struct pith_view_atom {
    pith_dim size;
    int64_t stride; /* in elements of the root axis */
    int axis;       /* of the root; -1: repeated, not part of the root */
    int of;         /* the axis of the view it belongs to */
} pith_view_atom;

typedef struct pith_view {
    int rank, count;
    pith_view_atom atoms[PITH_VIEW_ATOMS]; /* in order; axes of size 1 have none */
    int64_t offset[PITH_MAX_RANK];         /* where the view begins along each root axis */
} pith_view;

/* The identity view of a root of this shape. */
void pith_view_init(pith_view *view, const pith_type *root);
/* Follows one node of the kinds above, from its input 0 to the output of this type; false if it is not one, or its
 * parameters are unknown before the run. */
bool pith_view_apply(pith_view *view, const pith_node *node, const pith_value *output);
/* Is the node of a kind pith_view_apply can follow? */
bool pith_view_moves(const pith_node *node);

#endif
