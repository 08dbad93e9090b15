/* pooling.h - many token rows to one vector. */
#ifndef PITH_MODELS_HEADS_POOLING_H
#define PITH_MODELS_HEADS_POOLING_H

#include "models/modules/modules.h"

/* x: rows of width floats, contiguous, rows >= 1; if they are weighted, each has its weight behind
 * it, and means and weighted means divide by the sum of all weights, or by 1e-9 if that is less.
 * The first `skip` rows are left out, as those of a prompt; the weights of the weighted mean still
 * count them. vector receives width floats for each mode of pooling (pith__modules.pooling), in
 * order. Sums run over ascending rows, one accumulator a component, in f32. If all rows are left
 * out, cls takes the first, max is minus infinity and the others are 0, as in
 * sentence-transformers. */
void pith__pool_rows(float *vector, uint32_t pooling, const float *x, int64_t rows, int64_t width,
                     int64_t skip, bool weighted);

/* How many modes pooling has: the vector is that many widths long. */
int pith__pool_parts(uint32_t pooling);

#endif
