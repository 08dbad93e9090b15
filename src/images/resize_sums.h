/* resize_sums.h - the sums of resizing in vectors: the same integers as the plain loops of
 * resize.c, several at a time.
 *
 * A weight of 22 binary places does not fit into 16 bits, which one instruction multiplies and adds
 * in pairs. So it is cut in two: weight = high * 2048 + low, low from 0 to 2047. Both halves are
 * summed apart and put together at the end; nothing is rounded in between.
 *
 * These are not kernels of src/engine/kernels: code of this folder may not include those. They are
 * built for AVX2 alone. */
#ifndef PITH_IMAGES_RESIZE_SUMS_H
#define PITH_IMAGES_RESIZE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Binary places of a weight: a byte times a weight, and a sum of them that overshoots a little, fit
 * in 32 bits. */
enum { PITH_RESIZE_PLACES = 22 };
/* Weights of an output pixel are filled up with zeros to a multiple of this. */
enum { PITH_RESIZE_BLOCK = 4 };
/* Bytes that a row must have after its last pixel. Their values do not matter. */
enum { PITH_RESIZE_OVERREAD = 32 };

/* Whether this processor has them, and may use them. Otherwise nothing else here may be called. */
bool pith__resize_sums_usable(void);

/* halves: [blocks of 4, 8] of an output pixel's weights: four lows, then four highs. */
static inline size_t pith__resize_halves(int32_t taps) {
    return ((size_t)taps + PITH_RESIZE_BLOCK - 1) / PITH_RESIZE_BLOCK * 2 * PITH_RESIZE_BLOCK;
}
void pith__resize_split(int16_t *halves, const int32_t *weights, int32_t count, int32_t taps);

/* An output row: pixel i is the sum of its counts[i] weights times the input pixels from first[i]
 * on. */
typedef struct pith__resize_row {
    const int16_t *halves; /* [width, pith__resize_halves(taps)] */
    const int32_t *first, *counts;
    int32_t width, taps;
} pith__resize_row;

/* One or two input rows and their output rows; the steps lead from the first to the second. */
typedef struct pith__resize_lines {
    uint8_t *to;
    const uint8_t *from;
    size_t to_step, from_step;
    int count;
} pith__resize_lines;

/* channels: 3, or 4 for one row. Two rows take less time than twice one row. */
void pith__resize_sum_along(const pith__resize_lines *lines, const pith__resize_row *row,
                            int channels);

/* to[i]: the sum of the weights times byte i of each of `count` rows, which follow each other in
 * steps of `bytes`. bytes is at least 32. to is none of the rows. */
void pith__resize_sum_down(uint8_t *to, const uint8_t *rows, size_t bytes, const int16_t *halves,
                           int32_t count);

#endif
