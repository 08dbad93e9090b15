/* conv_bytes.h - the steps of a convolution of 8-bit numbers around its int8 GEMM. Pictures are bytes without sign,
 * with channels last; sums are exact integers (they wrap), so all levels give the same bits. */
#ifndef PITH_KERNELS_CONV_BYTES_H
#define PITH_KERNELS_CONV_BYTES_H

#include <stdint.h>

#include "kernels/kernel.h"

/* to[i * to_row + j] = from[j * from_row + i] ^ flip, i < n, j < m. Family "turn_bytes". */
typedef void pith_turn_bytes_fn(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t n,
                                int64_t m, uint8_t flip);
PITH_KERNEL_DECLARE(turn_bytes_u8, pith_turn_bytes_fn)

/* sums[c] = the sum over t < taps of x[offsets[t] + c] * w(t, c), c < n. Weights are pairs of 16 bits: w(t, c) and
 * w(t + 1, c), t even, are the lower and the upper half of weights[t / 2 * n + c]; the half of a missing last tap is 0.
 * Family "taps_bytes". */
typedef void pith_taps_bytes_fn(int32_t *sums, const uint8_t *x, const int64_t *offsets, const int32_t *weights,
                                int64_t taps, int64_t n);
PITH_KERNEL_DECLARE(taps_bytes_u8, pith_taps_bytes_fn)

/* Sums of windows [windows][maps] as numbers: with
 *     v = sums[i * row + j] + add[j] - row_sums[i] * zeros[j]
 * y[j * plane + i * step] = min(max(round(v * scale[j]), low), high) + zero, ties to even, a NaN becomes low; or v
 * itself, in wide, if scale is NULL. step is 1, or plane is 1 and scale is not NULL. Family "requantize". */
typedef struct pith_requantize {
    const int32_t *sums, *add, *row_sums, *zeros; /* zeros NULL: 0 */
    const float *scale;
    uint8_t *y;
    int32_t *wide;
    int64_t windows, maps, row, plane, step;
    float low, high;
    int32_t zero;
} pith_requantize;
typedef void pith_requantize_fn(const pith_requantize *a);
PITH_KERNEL_DECLARE(requantize_i32, pith_requantize_fn)

#endif
