/* lrn.h - numbers divided by a power of the sum of squares over neighbouring channels. */
#ifndef PITH_ENGINE_KERNELS_LRN_H
#define PITH_ENGINE_KERNELS_LRN_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

enum { PITH_LRN_QUARTERS = 16 }; /* the most */

/* y[c, i] = x[c, i] / (bias + alpha * the sum of x[k, i]^2 over the `before` channels before c, c,
 * and the `behind` ones behind it, as far as there are some)^(quarters / 4). Sums are multiply-adds
 * in ascending k. Powers are products of square roots and of the number itself; quarters is 1 to
 * PITH_LRN_QUARTERS. */
typedef struct pith__lrn {
    const float *x; /* [channels, inner] */
    float *y;       /* another array of this shape */
    int64_t channels, inner, before, behind;
    float alpha, bias;
    int quarters;
} pith__lrn;
/* Channels [first, end). */
typedef void pith__lrn_fn(const pith__lrn *a, int64_t first, int64_t end);
PITH_KERNEL_DECLARE(lrn_f32, pith__lrn_fn)

#endif
