/* pooling.h - many token rows to one vector. */
#ifndef PITH_HEADS_POOLING_H
#define PITH_HEADS_POOLING_H

#include "hf/modules.h"

/* x: rows of width floats, contiguous, rows >= 1. vector receives width floats for each bit of pooling (PITH_POOL_*),
 * in the order of the bits. Sums run over ascending rows, one accumulator a component, in f32. */
void pith_pool_rows(float *vector, uint32_t pooling, const float *x, int64_t rows, int64_t width);

/* How many bits of pooling are set: the vector is that many widths long. */
int pith_pool_parts(uint32_t pooling);

#endif
