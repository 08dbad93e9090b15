/* move.h - copying elements between layouts, for Transpose, Slice, Expand, Tile, Pad and Concat.
 *
 * Elements are opaque: 1, 2, 4, 8 or 16 bytes. Strides count elements and may be negative or 0. */
#ifndef PITH_ENGINE_KERNELS_MOVE_H
#define PITH_ENGINE_KERNELS_MOVE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/kernels/kernel.h"
#include "pith/types.h"

/* to[i * to_row + j] = from[i + j * from_column] for i < rows and j < columns: elements of 4 bytes,
 * whatever they are. Family "turn". */
typedef void pith__turn_fn(void *to, int64_t to_row, const void *from, int64_t from_column,
                           int64_t rows, int64_t columns);
PITH_KERNEL_DECLARE(turn_f32, pith__turn_fn)

/* to[…] = from[…] over the index space dims[rank]; both pointers are at index 0. Rank 0 moves one
 * element. turn is used where rows become columns; NULL: a slower loop. */
void pith__move(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides,
                const int64_t *dims, int rank, size_t size, pith__turn_fn *turn);

/* to[0, n) = the one element at value. */
void pith__fill(void *to, const void *value, int64_t n, size_t size);

/* perm[rank] of a transposition that moves axis `from` to place `to`, both in [0, rank). */
void pith__move_axis_perm(int *perm, int rank, int from, int to);
/* Sets the row-major strides of dims. */
void pith__strides(int64_t *strides, const int64_t *dims, int rank);

#endif
