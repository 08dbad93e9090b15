/* conv_bytes.h - the steps of a convolution of 8-bit numbers around its int8 GEMM. Pictures are
 * bytes without sign, with channels last; sums are exact integers (they wrap), so all levels give
 * the same bits. */
#ifndef PITH_ENGINE_KERNELS_CONV_BYTES_H
#define PITH_ENGINE_KERNELS_CONV_BYTES_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* to[i * to_row + j] = from[j * from_row + i] ^ flip, i < n, j < m. Family "turn_bytes". */
typedef void pith__turn_bytes_fn(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row,
                                 int64_t n, int64_t m, uint8_t flip);
PITH_KERNEL_DECLARE(turn_bytes_u8, pith__turn_bytes_fn)

/* The sum of window i and map j as a number: with v = sum + add[j] - row_sums[i] * zeros[j], y[i *
 * step + j] = min(max(round(v * scale[j]), low), high) + zero, ties to even, a NaN becomes low; or,
 * if scale is NULL, wide[j * plane + i] = v. */
typedef struct pith__requantize {
    const int32_t *add, *row_sums, *zeros; /* zeros NULL: 0 */
    const float *scale;
    uint8_t *y;
    int32_t *wide;
    int64_t plane, step;
    float low, high;
    int32_t zero;
} pith__requantize;
/* Windows [i0, i1) and maps [j0, j1); the first of the sums is that of i0 and j0, rows are `row`
 * apart. Family "requantize". */
typedef void pith__requantize_fn(const pith__requantize *a, const int32_t *sums, int64_t row,
                                 int64_t i0, int64_t i1, int64_t j0, int64_t j1);
PITH_KERNEL_DECLARE(requantize_i32, pith__requantize_fn)

/* Windows over one channel each: the sums of window (i, j), i < rows, j < columns, over taps t are
 * those of
 *     x[i * row_step + j * step + offsets[t] + c] * weight(t, c)
 * They go through *out as rows of sums do, whose window is i * columns + j, without row_sums; or,
 * if out->scale is NULL, to sums[window][channels] as they are.
 *
 * Weights are 8 bits. Those of PITH_DEPTHWISE_BLOCK channels lie together, in groups of four taps,
 * filled up with zeros: byte t % 4 of element pith__depthwise_place(t, c, taps) is weight(t, c).
 * Families "depthwise" and, for processors with AVX512_VNNI or AVX_VNNI on their level,
 * "depthwise_vnni". */
#define PITH_DEPTHWISE_BLOCK 64
typedef struct pith__depthwise_bytes {
    const uint8_t *x;
    const int64_t *offsets;
    const int32_t *weights;
    int64_t taps, channels, rows, columns, row_step, step;
    const pith__requantize *out;
    int32_t *sums;
} pith__depthwise_bytes;
typedef void pith__depthwise_bytes_fn(const pith__depthwise_bytes *a);
PITH_KERNEL_DECLARE(depthwise_u8, pith__depthwise_bytes_fn)
PITH_KERNEL_DECLARE(depthwise_vnni_u8, pith__depthwise_bytes_fn)

/* In the order in which bytes of four places, interleaved within 16 bytes, give sums. */
static inline int64_t pith__depthwise_place(int64_t t, int64_t c, int64_t taps) {
    const int64_t block = c / PITH_DEPTHWISE_BLOCK, group = c % PITH_DEPTHWISE_BLOCK / 16,
                  quad = c % 16 / 4;
    return ((block * ((taps + 3) / 4) + t / 4) * 4 + quad) * 16 + group * 4 + c % 4;
}

#endif
