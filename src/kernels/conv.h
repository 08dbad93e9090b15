/* conv.h - convolutions in f32, as chains of multiply-adds over shifted rows of a padded plane (taps.h) or of the input
 * itself. */
#ifndef PITH_KERNELS_CONV_H
#define PITH_KERNELS_CONV_H

#include <stdint.h>

#include "kernels/kernel.h"

/* y[m][n] = the sum over ascending k of fma(weights[m][k], x[offsets[k] + n], …), from +0, and + bias[m].
 * Position n is column n % step of output row n / step; columns from `columns` on lie between two rows and are not
 * stored. Rows of y are dense. */
typedef struct pith_conv {
    const float *x;
    const int64_t *offsets; /* [k] */
    const float *weights;   /* [maps, k] */
    const float *bias;      /* [maps]; NULL: none */
    float *y;               /* map m begins at y + m * y_map */
    int64_t k, y_map, step, columns;
} pith_conv;

/* Computes maps [m0, m1) at positions [n0, n1). x is readable at every offset up to n1. Ranges may be computed in any
 * order and in parallel. Family "conv". */
typedef void pith_conv_fn(const pith_conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(conv_f32, pith_conv_fn)
/* The same bits, faster for PITH_CONV_FEW positions or less and many maps. Family "conv_few". */
enum { PITH_CONV_FEW = 8 };
PITH_KERNEL_DECLARE(conv_few_f32, pith_conv_fn)

#endif
