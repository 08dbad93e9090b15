/* window_attrs.h - kernel_shape, strides, dilations, pads and auto_pad of a node, checked, as a
 * pith__window; and the output sizes that follow, symbolic or not. */
#ifndef PITH_ENGINE_OPS_SHARED_WINDOW_ATTRS_H
#define PITH_ENGINE_OPS_SHARED_WINDOW_ATTRS_H

#include "engine/kernels/window_shape.h"
#include "engine/ops/shared/infer_shapes.h"

/* Everything but in, out and automatic pads. kernel: sizes of the weights' window, or NULL: the
 * attribute kernel_shape. */
pith_status pith__windows_attributes(pith__window *w, const pith__node *node, int rank,
                                     const int64_t *kernel, pith_error *err);
/* out[rank] for in[rank]; an error if an axis has fewer windows than `least`, because they are
 * larger than the padded input. (Pools may have none, and with ceil_mode one that reaches beyond
 * the padding.) */
pith_status pith__windows_output(pith__dim *out, pith__dims *dims, const pith__window *w,
                                 const pith__node *node, const pith__dim *in, int64_t least,
                                 pith_error *err);
/* The whole window while running: in is given, out is the output's. */
void pith__windows_complete(pith__window *w, const pith__node *node, const int64_t *in,
                            const int64_t *out);

/* For operators whose windows do not fit a pith__window. Entry i of an attribute that is a list of
 * integers; fallback if it is absent or shorter. */
int64_t pith__window_entry(const pith__node *node, const char *name, int i, int64_t fallback);
/* Fails unless kernel_shape, strides, dilations and pads of these many axes are in range: sizes
 * from 1, pads from 0, all within 32 bits. */
pith_status pith__windows_check(const pith__node *node, int axes, pith_error *err);

#endif
