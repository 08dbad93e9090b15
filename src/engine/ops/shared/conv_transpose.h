/* conv_transpose.h - transposed convolutions in f32 with one or two spatial axes.
 *
 * Output places that leave the same rest by the stride (a phase) meet the same kernel places, so
 * that each phase is a convolution of stride 1 over the input. Its sums go in the order channel,
 * kernel row, column, and the bias comes last. The phases of a row are then woven together. */
#ifndef PITH_ENGINE_OPS_SHARED_CONV_TRANSPOSE_H
#define PITH_ENGINE_OPS_SHARED_CONV_TRANSPOSE_H

#include "engine/ops/shared/conv_f32.h"

/* All functions take the window that walks the output, once per input place: w->in is the output,
 * w->out the input.
 *
 * Whether this file computes it: channels, one or two axes, not many phases, a kernel that is not
 * huge, and padding that does not outweigh the tensors. */
bool pith__conv_transpose_fits(const pith__conv_sizes *z, const pith__window *w);
/* Adds the scratch of windows w that fit; false on overflow. */
bool pith__conv_transpose_scratch(const pith__conv_sizes *z, const pith__window *w, int threads,
                                  size_t *bytes);
/* x [batch, groups * channels, …], weights [groups * channels, maps, …], bias [groups * maps] or
 * NULL. */
void pith__conv_transpose_run(pith__run *r, const pith__conv_f32 *s, const pith__conv_sizes *z,
                              const pith__window *w, const float *x, const float *weights,
                              const float *bias, float *y);

#endif
