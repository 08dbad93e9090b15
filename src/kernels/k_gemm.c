/* k_gemm.c - c = epilogue(a b) by register tiles, and the packing of b.
 *
 * A block of b that stays in the second level cache is met by one tile of rows of a after the other; those rows,
 * over the k of the block, stay in the first level cache while the block streams by. Sums of unfinished k wait in
 * c. The epilogue works on the finished tile while it is in the first level cache. A product of few rows reads b
 * once, straight through. */
#include "kernels/gemm.h"

#include "base/cpu.h"
#include "kernels/gemm_tile.h"
#include "kernels/unary.h"
#include "kernels/vec.h"

/* Depth of a block: 14 rows of a (or 6) and a strip of b share a first level cache of 32 KiB or more. Smaller
 * costs more passes over c, larger more misses in a. */
enum { BLOCK_K = 384, TILE_COLUMNS = PITH_TILE_PANELS * PITH_GEMM_PANEL };

void PITH_K(gemm_activation)(pith_activation activation, float *x, size_t n) {
    static pith_unary_f32_fn *const activations[] = {
        [PITH_ACT_NONE] = NULL,
        [PITH_ACT_GELU_ERF] = PITH_K(gelu_f32),
        [PITH_ACT_GELU_TANH] = PITH_K(gelu_tanh_f32),
        [PITH_ACT_RELU] = PITH_K(relu_f32),
        [PITH_ACT_TANH] = PITH_K(tanh_f32),
        [PITH_ACT_SIGMOID] = PITH_K(sigmoid_f32),
        [PITH_ACT_SILU] = PITH_K(silu_f32),
    };
    if (activations[activation]) activations[activation](x, x, n);
}

PITH_INLINE void add_bias(float *t, const float *bias, int64_t rows, int64_t stride, int64_t width) {
    for (int64_t j = 0; j < width; j += 16) {
        vf b = width - j >= 16 ? vf_load(bias + j) : vf_load_n(bias + j, (size_t)(width - j));
        for (int64_t i = 0; i < rows; i++) vf_store(t + i * stride + j, vf_add(vf_load(t + i * stride + j), b));
    }
}

/* Between c and the tile, width columns of each row. */
PITH_INLINE void load_tile(const pith_gemm *g, float *t, int64_t stride, int64_t i, int64_t rows, int64_t j,
                           int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < width; p += 16) {
            const float *c = g->c + (i + r) * g->ldc + j + p;
            vf_store(t + r * stride + p, width - p >= 16 ? vf_load(c) : vf_load_n(c, (size_t)(width - p)));
        }
    }
}
PITH_INLINE void store_tile(const pith_gemm *g, const float *t, int64_t stride, int64_t i, int64_t rows, int64_t j,
                            int64_t width, const float *residual) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < width; p += 16) {
            float *c = g->c + (i + r) * g->ldc + j + p;
            const float *add = residual ? residual + (i + r) * g->ldr + j + p : NULL;
            vf v = vf_load(t + r * stride + p);
            if (width - p >= 16) {
                vf_store(c, add ? vf_add(v, vf_load(add)) : v);
            } else {
                size_t n = (size_t)(width - p);
                vf_store_n(c, add ? vf_add(v, vf_load_n(add, n)) : v, n);
            }
        }
    }
}

/* Rows [i, i + rows) times columns [j, j + width), over k in [k0, k1). */
static void run_tile(const pith_gemm *g, int64_t i, int64_t rows, int64_t j, int64_t width, int64_t k0, int64_t k1) {
    _Alignas(64) float t[PITH_TILE_ROWS * TILE_COLUMNS];
    const int64_t panels = (width + 15) / 16, stride = 16 * panels;
    if (k0 > 0) load_tile(g, t, stride, i, rows, j, width);
    PITH_K(gemm_tile_f32)((int)rows, (int)panels, g->a + i * g->lda + k0, g->lda, g->b + j * g->k + 16 * k0, 16,
                          16 * g->k, k1 - k0, t, stride, k0 > 0);
    if (k1 < g->k) {
        store_tile(g, t, stride, i, rows, j, width, NULL);
        return;
    }
    if (g->bias) add_bias(t, g->bias + j, rows, stride, width);
    PITH_K(gemm_activation)(g->activation, t, (size_t)(rows * stride));
    store_tile(g, t, stride, i, rows, j, width, g->residual);
}

void PITH_K(gemm_f32)(const pith_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    int64_t depth = g->k, columns = n1 - n0;
    if (m1 - m0 > PITH_TILE_ROWS && m1 - m0 <= 3 * PITH_TILE_ROWS) {
        columns = TILE_COLUMNS; /* few rows: each strip of b is met by all of them while it is near */
    } else if (m1 - m0 > PITH_TILE_ROWS && columns > 0) {
        /* c cannot hold sums while it is the residual too. */
        if (g->residual != g->c && depth > BLOCK_K)
            depth = (depth + (depth - 1) / BLOCK_K) / ((depth - 1) / BLOCK_K + 1);
        /* 3/8 of the second level cache for the block of b: half of it may belong to a sibling thread. */
        int64_t most =
            (int64_t)(pith_cpu_get()->l2 / 8 * 3 / sizeof(float)) / (depth + 1) / TILE_COLUMNS * TILE_COLUMNS;
        if (most < TILE_COLUMNS) most = TILE_COLUMNS;
        int64_t blocks = (columns + most - 1) / most;
        columns = ((columns + blocks - 1) / blocks + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
    }
    for (int64_t j0 = n0; j0 < n1; j0 += columns) {
        int64_t j1 = n1 - j0 < columns ? n1 : j0 + columns, k0 = 0, k1;
        do { /* once for k = 0 too */
            k1 = g->k - k0 < depth ? g->k : k0 + depth;
            for (int64_t i = m0; i < m1;) {
                /* The rest in equal tiles rather than full ones and a small one. */
                int64_t tiles = (m1 - i + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS, rows = (m1 - i + tiles - 1) / tiles;
                for (int64_t j = j0; j < j1; j += TILE_COLUMNS) {
                    run_tile(g, i, rows, j, j1 - j < TILE_COLUMNS ? j1 - j : TILE_COLUMNS, k0, k1);
                }
                i += rows;
            }
            k0 = k1;
        } while (k1 < g->k);
    }
}

/* One panel of columns [j, j + width): k rows of 16, zeros beyond width. */
static void pack_panel(float *packed, const float *b, int64_t row_stride, int64_t column_stride, int64_t k,
                       int64_t width) {
    int64_t i = 0;
    if (column_stride == 1) {
        for (; i < k; i++) {
            vf_store(packed + 16 * i, width == 16 ? vf_load(b + i * row_stride)
                                                  : vf_load_n(b + i * row_stride, (size_t)width));
        }
        return;
    }
    if (row_stride == 1) {
        for (; k - i >= 16; i += 16) {
            vf rows[16];
            for (int64_t j = 0; j < 16; j++) rows[j] = j < width ? vf_load(b + j * column_stride + i) : vf_zero();
            vf_transpose(rows);
            for (int64_t j = 0; j < 16; j++) vf_store(packed + 16 * (i + j), rows[j]);
        }
    }
    for (; i < k; i++) {
        for (int64_t j = 0; j < 16; j++) {
            packed[16 * i + j] = j < width ? b[i * row_stride + j * column_stride] : 0.0f;
        }
    }
}

void PITH_K(gemm_pack_f32)(float *packed, const float *b, int64_t row_stride, int64_t column_stride, int64_t k,
                           int64_t n, int64_t n0, int64_t n1) {
    for (int64_t j = n0; j < n1; j += 16) {
        pack_panel(packed + j * k, b + j * column_stride, row_stride, column_stride, k, n - j < 16 ? n - j : 16);
    }
}
