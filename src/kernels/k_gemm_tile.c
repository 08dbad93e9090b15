/* k_gemm_tile.c - the register tile: every accumulator stays in a register over the whole of k.
 *
 * Each step loads one row of b (16 * panels floats) and broadcasts one element of each row of a. One function per
 * tile size, made by inlining `tile` with constant bounds. Row addresses are formed from a pointer for every third
 * row, which fits the addressing modes (base, base + stride, base + 2 * stride) and keeps the pointers in
 * registers. */
#include "kernels/gemm_tile.h"

#include "kernels/vec.h"

/* Rows of b that are brought into the first level cache ahead of their use. */
enum { NEAR = 8 };

PITH_INLINE void tile(const int rows, const int panels, const float *a, int64_t a_row, const float *b, int64_t b_row,
                      int64_t b_panel, int64_t k, float *t, int64_t t_row, int accumulate, uintptr_t ahead,
                      int64_t ahead_step) {
    vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS];
    const float *group[(PITH_TILE_ROWS + 2) / 3] = { NULL };
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = accumulate ? vf_load(t + i * t_row + 16 * p) : vf_zero();
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) group[i / 3] = a + i * a_row;
    for (; k > 0; k--) {
        vf column[PITH_TILE_PANELS];
        PITH_UNROLL
        for (int p = 0; p < panels; p++) {
            column[p] = vf_load(b + p * b_panel);
            __builtin_prefetch((const void *)((uintptr_t)(b + p * b_panel) + (uintptr_t)b_row * NEAR * sizeof *b));
            __builtin_prefetch((const void *)(ahead + (uintptr_t)(p * b_panel) * sizeof *b), 0, 2);
        }
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            vf x = vf_set1(group[i / 3][i % 3 * a_row]);
            PITH_UNROLL
            for (int p = 0; p < panels; p++) sum[i][p] = vf_fma(x, column[p], sum[i][p]);
        }
        PITH_UNROLL
        for (int i = 0; i < rows; i += 3) group[i / 3]++;
        b += b_row;
        ahead += (uintptr_t)ahead_step;
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) vf_store(t + i * t_row + 16 * p, sum[i][p]);
    }
}

typedef void tile_fn(const float *a, int64_t a_row, const float *b, int64_t b_row, int64_t b_panel, int64_t k, float *t,
                     int64_t t_row, int accumulate, uintptr_t ahead, int64_t ahead_step);

#define TILE(rows, panels)                                                                                             \
    static void tile_##rows##x##panels(const float *a, int64_t a_row, const float *b, int64_t b_row, int64_t b_panel,  \
                                       int64_t k, float *t, int64_t t_row, int accumulate, uintptr_t ahead,            \
                                       int64_t ahead_step) {                                                           \
        tile(rows, panels, a, a_row, b, b_row, b_panel, k, t, t_row, accumulate, ahead, ahead_step);                   \
    }
#define TILES_5(X, panels) X(1, panels) X(2, panels) X(3, panels) X(4, panels) X(5, panels)
#define TILES_14(X, panels)                                                                                            \
    TILES_5(X, panels)                                                                                                 \
    X(6, panels) X(7, panels) X(8, panels) X(9, panels) X(10, panels) X(11, panels) X(12, panels) X(13, panels)        \
        X(14, panels)
#if defined(PITH_LEVEL_avx512)
#define TILES(X) TILES_14(X, 1) TILES_14(X, 2)
#elif defined(PITH_LEVEL_avx2)
#define TILES(X) TILES_5(X, 1) X(6, 1)
#else
#define TILES(X) TILES_5(X, 1)
#endif
#define TILE_ENTRY(rows, panels) [panels - 1][rows - 1] = tile_##rows##x##panels,

TILES(TILE)

void PITH_K(gemm_tile_f32)(int rows, int panels, const float *a, int64_t a_row, const float *b, int64_t b_row,
                           int64_t b_panel, int64_t k, float *t, int64_t t_row, int accumulate, uintptr_t ahead,
                           int64_t ahead_step) {
    static tile_fn *const tiles[PITH_TILE_PANELS][PITH_TILE_ROWS] = { TILES(TILE_ENTRY) };
    tiles[panels - 1][rows - 1](a, a_row, b, b_row, b_panel, k, t, t_row, accumulate, ahead, ahead_step);
}
