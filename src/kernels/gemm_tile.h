/* gemm_tile.h - what the products of one level share: the f32 register tile, and activations. */
#ifndef PITH_KERNELS_GEMM_TILE_H
#define PITH_KERNELS_GEMM_TILE_H

#include <stdint.h>

#include "kernels/gemm_half.h"
#include "kernels/gemm_int8.h"

/* The largest tile of a level: rows of a, panels of 16 columns of b. Chosen so that the accumulators, the row of b and
 * one broadcast fit the registers: 14 * 2 + 2 + 1 of 32, 6 * 1 * 2 + 2 + 1 of 16, 5 * 1 * 4 + 4 + 5 of 32. */
#if defined(PITH_LEVEL_avx512)
enum { PITH_TILE_ROWS = 14, PITH_TILE_PANELS = 2 };
#elif defined(PITH_LEVEL_avx2)
enum { PITH_TILE_ROWS = 6, PITH_TILE_PANELS = 1 };
#else
enum { PITH_TILE_ROWS = 5, PITH_TILE_PANELS = 1 };
#endif
/* What surrounds a small tile weighs more. And the k between two lines that it fetches steadily, see below. */
enum { PITH_TILE_SMALL = PITH_TILE_PANELS == 1, PITH_TILE_STEADY = 8 };

/* GELU on its own is a chain of operations that leaves the multiply-add ports idle half of the time; amid the steps of
 * a product it costs little more than its own multiply-adds. So the sums of a tile, bias added, wait in `busy`, and
 * each turn of four k of the next tile takes GELU of one vector of them to its place. That tile's sums go to `spare`
 * and wait in turn; what waits after the last tile is the caller's to finish. */
typedef struct pith_gemm_gelu {
    float *spare, *busy; /* [PITH_TILE_ROWS][16 * PITH_TILE_PANELS] each; rows of a tile lie side by side */
    const float *from;   /* the next vector in busy */
    float *to;           /* where its GELU goes */
    int64_t left;        /* vectors that wait */
} pith_gemm_gelu;
/* Rows of the smallest tile that is made for this; none of the small kind is. */
enum { PITH_TILE_GELU_ROWS = PITH_TILE_SMALL ? PITH_TILE_ROWS + 1 : 8 };

/* t[i][j] = start + the chain over ascending k of fma(a[i][k], b[k][j]), + bias[j], for i < rows and j < 16 * panels;
 * then the same for the columns that follow, `groups` times, and all of it for the rows below, `tiles` times. Start is
 * t itself if accumulate, else +0.
 * b is packed: element (k, j) is b[k * 16 + j / 16 * b_panel + j % 16].
 * What will be read next is fetched into the second level cache meanwhile: in every ahead_every-th turn of four k, four
 * lines of it (eight if there are two panels) that lie ahead_stream bytes (and ahead_panel bytes) apart, from `ahead`
 * on, which moves by a line then, and by the panels' bytes from group to group; each tile goes on where the one above
 * it ended. So many streams at once, in different pages, come faster than one. Nothing need be there.
 * Where many small tiles share that, a line each turn does without the branch that says when: ahead_every 0 fetches the
 * line at `ahead`, which moves by ahead_step bytes with each PITH_TILE_STEADY k. Without ahead nothing is fetched.
 * Where tiles are not small, a row of the target, from which stores take its lines if they are in the first
 * level cache and otherwise hold up the loads of what follows, is fetched in each of the first turns: all at once they
 * would wait for each other.
 * With gelu, sums go there instead of t, for tiles of PITH_TILE_GELU_ROWS rows and more and PITH_TILE_PANELS panels
 * that do not accumulate; target and target_row say where their GELU goes, target_row the same in all calls. */
typedef struct pith_gemm_tile {
    const float *a, *b, *bias; /* bias may be NULL */
    float *t;
    int64_t a_row, b_panel, t_row, k; /* strides in floats */
    int64_t groups, tiles;
    int accumulate;
    uintptr_t ahead;
    int64_t ahead_stream, ahead_panel, ahead_every, ahead_step;
    const float *target;              /* where t of the first group will end up, the others beside it; or NULL */
    int64_t target_row, target_width; /* stride and length of a group's rows, in floats */
    pith_gemm_gelu *gelu;             /* or NULL */
} pith_gemm_tile;

/* rows is 1 to PITH_TILE_ROWS; panels is 1 to PITH_TILE_PANELS. bf16: two of k lie in the place of each float of a and
 * b, and k counts such pairs; sums are the processor's own. Needs AVX512_BF16, and is there on level avx512 only. */
typedef void pith_gemm_tile_fn(int rows, int panels, const pith_gemm_tile *tile);
PITH_KERNEL_DECLARE(gemm_tile_f32, pith_gemm_tile_fn)
PITH_KERNEL_DECLARE(gemm_tile_bf16, pith_gemm_tile_fn)

/* The whole product of gemm.h by one kind of tile: of bf16, lda and k count pairs, and what was said of a and b above
 * holds for g too. */
typedef void pith_gemm_by_tiles_fn(const pith_gemm *g, pith_gemm_tile_fn *tile, int64_t m0, int64_t m1, int64_t n0,
                                   int64_t n1);
PITH_KERNEL_DECLARE(gemm_by_tiles, pith_gemm_by_tiles_fn)

/* Fetches a tile of the result, rows of up to 32 elements of 4 bytes that lie ldc apart, while the tile is computed:
 * stores to lines that are not in the first level cache would hold up the loads of the next tile. Always inlined: GCC
 * leaves out calls of functions that do nothing but fetch. */
static inline __attribute__((always_inline)) void pith_gemm_expect(const void *c, int64_t ldc, int64_t rows,
                                                                   int64_t width) {
    const float *row = c;
    for (int64_t i = 0; i < rows; i++, row += ldc) {
        __builtin_prefetch(row, 1);
        __builtin_prefetch(row + width - 1, 1);
    }
}

/* Copies rows of `width` floats; from and to lie from_row and to_row floats from row to row. */
typedef void pith_gemm_move_fn(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                               int64_t width);
PITH_KERNEL_DECLARE(gemm_move, pith_gemm_move_fn)

/* The same, of their activations; from may be overwritten. */
typedef void pith_gemm_activate_fn(pith_activation activation, float *to, int64_t to_row, float *from, int64_t from_row,
                                   int64_t rows, int64_t width);
PITH_KERNEL_DECLARE(gemm_activate, pith_gemm_activate_fn)

/* 8-bit sums t[i][j], stride apart, to rows [i, i + rows) and columns [j, j + width) of the result; j is a multiple of
 * 16, rows * stride at most PITH_I8_SUMS. shift: what a was too large by. vnni: the processor has it. */
enum { PITH_I8_SUMS = 32 * 32 };
typedef void pith_gemm_i8_finish_fn(const pith_gemm_int8 *g, const int32_t *t, int64_t stride, int32_t shift, int64_t i,
                                    int64_t rows, int64_t j, int64_t width, bool vnni);
PITH_KERNEL_DECLARE(gemm_i8_finish, pith_gemm_i8_finish_fn)

/* The same for sums of bf16 products, which are floats. */
enum { PITH_HALF_SUMS = PITH_I8_SUMS };
typedef void pith_gemm_half_finish_fn(const pith_gemm_half *g, const float *t, int64_t stride, int64_t i, int64_t rows,
                                      int64_t j, int64_t width);
PITH_KERNEL_DECLARE(gemm_half_finish, pith_gemm_half_finish_fn)

#endif
