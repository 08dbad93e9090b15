/* gemm_tile.h - shared by the GEMMs of one instruction set: the f32 register tile, and activations.
 */
#ifndef PITH_ENGINE_KERNELS_GEMM_TILE_H
#define PITH_ENGINE_KERNELS_GEMM_TILE_H

#include <stdint.h>

#include "engine/kernels/gemm_half.h"
#include "engine/kernels/gemm_int8.h"

/* The largest tile of a level: rows of a, and panels of 16 columns of b. A larger tile reuses each
 * loaded number more often, but the accumulators, one row of b and the broadcast elements of a must
 * fit the registers: 14 * 2 + 2 + 1 of 32 (avx512), 6 * 1 * 2 + 2 + 1 of 16 (avx2), 5 * 1 * 4 + 4 +
 * 5 of 32 (others). */
#if defined(PITH_LEVEL_avx512)
enum { PITH_TILE_ROWS = 14, PITH_TILE_PANELS = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { PITH_TILE_ROWS = 6, PITH_TILE_PANELS = 1 };
#else
enum { PITH_TILE_ROWS = 5, PITH_TILE_PANELS = 1 };
#endif
/* PITH_TILE_SMALL is 1 for tiles of one panel, whose overhead per tile weighs more.
 * PITH_TILE_STEADY is the number of steps of k between two prefetches if ahead_every is 0, see
 * below. */
enum { PITH_TILE_SMALL = PITH_TILE_PANELS == 1, PITH_TILE_STEADY = 8 };

/* GELU interleaved with the matmul. Alone, GELU is a chain of dependent operations that leaves the
 * multiply-add ports idle half of the time. Interleaved, it costs little more than its own
 * multiply-adds. The sums of a tile, with the bias, are kept in `busy`. Each iteration of the next
 * tile (4 steps of k) also computes GELU of one vector of them and stores it to the result. The
 * sums of that next tile go to `spare`, and the two change places. The caller computes GELU of the
 * sums that are left after the last tile. */
typedef struct pith__gemm_gelu {
    float *spare, *busy; /* [PITH_TILE_ROWS][16 * PITH_TILE_PANELS] each; rows of a tile lie side by
                            side */
    const float *from;   /* the next vector in busy */
    float *to;           /* where to store its GELU */
    int64_t left;        /* vectors left in busy */
} pith__gemm_gelu;
/* Rows of the smallest tile that is built with interleaved GELU. Small tiles (PITH_TILE_SMALL) are
 * never built with it. */
enum { PITH_TILE_GELU_ROWS = PITH_TILE_SMALL ? PITH_TILE_ROWS + 1 : 8 };

/* Computes t[i][j] = start + the chain over ascending k of fma(a[i][k], b[k][j]), + bias[j], for i
 * < rows and j < 16 * panels. It does so for `groups` groups of columns, one after the other, and
 * for `tiles` blocks of rows below each other. start is t itself if accumulate is set, else +0. b
 * is packed: element (k, j) is b[k * 16 + j / 16 * b_panel + j % 16].
 *
 * Prefetch into L2. Every `ahead_every` iterations (an iteration is 4 steps of k) the tile
 * prefetches 4 cache lines per panel. Line i of a panel is at `ahead + i * ahead_stream + panel *
 * ahead_panel`; `ahead` then advances by 64 bytes, and by the size of the panels from group to
 * group. Each tile goes on where the one above it ended. Several streams in different pages are
 * faster than one. The addresses need not be valid. If ahead_every is 0, the tile prefetches one
 * line at `ahead` every PITH_TILE_STEADY steps of k, and `ahead` advances by ahead_step bytes; this
 * saves small tiles a branch. If ahead is 0, nothing is prefetched.
 *
 * Prefetch of the result. Stores to lines that are not in L1 hold up the loads that follow. Tiles
 * that are not small prefetch one row of `target` in each of the first iterations; all at once they
 * would wait for each other.
 *
 * With gelu, the sums go to gelu->spare instead of t. This is allowed for tiles of at least
 * PITH_TILE_GELU_ROWS rows and of PITH_TILE_PANELS panels that do not accumulate. target and
 * target_row are then the place of their GELU; target_row must be the same in all calls. */
typedef struct pith__gemm_tile {
    const float *a, *b, *bias; /* bias may be NULL */
    float *t;
    int64_t a_row, b_panel, t_row, k; /* strides in floats */
    int64_t groups, tiles;
    int accumulate;
    uintptr_t ahead;
    int64_t ahead_stream, ahead_panel, ahead_every, ahead_step;
    const float *target; /* final place of the first group's sums, the other groups to its right; or
                            NULL */
    int64_t target_row, target_width; /* stride and length of a group's rows, in floats */
    pith__gemm_gelu *gelu;            /* or NULL */
} pith__gemm_tile;

/* rows is 1 to PITH_TILE_ROWS, panels is 1 to PITH_TILE_PANELS. In bf16, each float of a and b
 * holds two elements along k, and k counts such pairs; the rounding of sums is the processor's.
 * bf16 needs AVX512_BF16 and exists on level avx512 only. */
typedef void pith__gemm_tile_fn(int rows, int panels, const pith__gemm_tile *tile);
PITH_KERNEL_DECLARE(gemm_tile_f32, pith__gemm_tile_fn)
PITH_KERNEL_DECLARE(gemm_tile_bf16, pith__gemm_tile_fn)

/* The whole GEMM of gemm.h with one kind of tile. In bf16, lda and k of g count pairs, as above. */
typedef void pith__gemm_by_tiles_fn(const pith__gemm *g, pith__gemm_tile_fn *tile, int64_t m0,
                                    int64_t m1, int64_t n0, int64_t n1);
PITH_KERNEL_DECLARE(gemm_by_tiles, pith__gemm_by_tiles_fn)

/* Prefetches a tile of the result into L1 while the tile is computed: rows of up to 32 elements of
 * 4 bytes, ldc elements apart. Stores to lines that are not in L1 would hold up the loads of the
 * next tile. It must be inlined, because GCC drops calls of functions that only prefetch. */
static inline __attribute__((always_inline)) void pith__gemm_expect(const void *c, int64_t ldc,
                                                                    int64_t rows, int64_t width) {
    const float *row = c;
    for (int64_t i = 0; i < rows; i++, row += ldc) {
        __builtin_prefetch(row, 1);
        __builtin_prefetch(row + width - 1, 1);
    }
}

/* Copies rows of `width` floats. from_row and to_row are the row strides in floats. */
typedef void pith__gemm_move_fn(float *to, int64_t to_row, const float *from, int64_t from_row,
                                int64_t rows, int64_t width);
PITH_KERNEL_DECLARE(gemm_move, pith__gemm_move_fn)

/* The same with the activation of each element; from may be overwritten. */
typedef void pith__gemm_activate_fn(pith__gemm_activation activation, float *to, int64_t to_row,
                                    float *from, int64_t from_row, int64_t rows, int64_t width);
PITH_KERNEL_DECLARE(gemm_activate, pith__gemm_activate_fn)

/* The epilogue of the int8 GEMM: turns the sums t (row stride `stride`) into rows [i, i + rows) and
 * columns [j, j + width) of the result. j must be a multiple of 16, and rows * stride at most
 * PITH_I8_SUMS. shift is the number that was added to every element of a. vnni: the processor has
 * VNNI. */
enum { PITH_I8_SUMS = 32 * 32 };
typedef void pith__gemm_i8_finish_fn(const pith__gemm_int8 *g, const int32_t *t, int64_t stride,
                                     int32_t shift, int64_t i, int64_t rows, int64_t j,
                                     int64_t width, bool vnni);
PITH_KERNEL_DECLARE(gemm_i8_finish, pith__gemm_i8_finish_fn)

/* The epilogue of the bf16 GEMM, whose sums are floats. */
enum { PITH_HALF_SUMS = PITH_I8_SUMS };
typedef void pith__gemm_half_finish_fn(const pith__gemm_half *g, const float *t, int64_t stride,
                                       int64_t i, int64_t rows, int64_t j, int64_t width);
PITH_KERNEL_DECLARE(gemm_half_finish, pith__gemm_half_finish_fn)

#endif
