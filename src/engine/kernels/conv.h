/* conv.h - convolutions in f32, as chains of multiply-adds over shifted rows of a padded plane
 * (sliding_windows.h) or of the input itself. */
#ifndef PITH_ENGINE_KERNELS_CONV_H
#define PITH_ENGINE_KERNELS_CONV_H

#include <stdint.h>

#include "engine/kernels/gemm.h"

/* y[m][n] = the sum over ascending k of fma(weight (m, k), x[offsets[k] + n], …), from +0, and +
 * bias[m]. Position n is column n % step of output row n / step; columns from `columns` on lie
 * between two rows and are not stored. Rows of y are dense. Weights are packed as the GEMM's
 * matrices are (gemm.h), maps being columns: panels of 16 maps, (m, k) is weights[m / 16 * 16 * K +
 * k * 16 + m % 16] of K = k. All of the last panel is readable, and what is in the places of maps
 * that do not exist has no effect. */
typedef struct pith__conv {
    const float *x;
    const int64_t *offsets; /* [k] */
    const float *weights;   /* panels of all maps */
    const float *bias;      /* [maps]; NULL: none */
    float *y;               /* map m begins at y + m * y_map */
    int64_t k, y_map, step, columns;
} pith__conv;

/* Elements of a map before position n, where rows of positions are `step` apart and `columns` of
 * each are stored. */
static inline int64_t pith__conv_place(int64_t n, int64_t step, int64_t columns) {
    const int64_t column = n % step;
    return n / step * columns + (column < columns ? column : columns);
}

/* Computes maps [m0, m1) at positions [n0, n1); m0 is a multiple of PITH_GEMM_PANEL. x is readable
 * at every offset up to n1. Ranges may be computed in any order and in parallel. Family "conv". It
 * chooses one of the ways below, which give the same bits. */
typedef void pith__conv_fn(const pith__conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(conv_f32, pith__conv_fn)
/* Lanes are positions. */
PITH_KERNEL_DECLARE(conv_positions_f32, pith__conv_fn)
/* Lanes are maps: for planes whose rows do not fill vectors, and for few positions. */
PITH_KERNEL_DECLARE(conv_maps_f32, pith__conv_fn)

#endif
