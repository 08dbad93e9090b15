/* k_gemm.c - c = epilogue(a b) by register tiles, and the packing of b.
 *
 * A block of rows of a that stays in the second level cache meets one strip of packed b after the other; within a strip
 * the tiles of the block follow each other, so the strip is read from memory once a block. The whole of k runs in one
 * tile: the sum never leaves the registers. The epilogue works on the finished tile while it is in the first level
 * cache. */
#include "kernels/gemm.h"
#include "kernels/gemm_tile.h"
#include "kernels/unary.h"
#include "kernels/vec.h"

/* Bytes of a that one block may take: more saves reading b again, but must leave room for a strip of b in a second level
 * cache of 1 MiB (512 KiB pays little with the usual k). */
enum { BLOCK_BYTES = 256 * 1024, TILE_COLUMNS = PITH_TILE_PANELS * PITH_GEMM_PANEL };

static pith_unary_f32_fn *const activations[] = {
    [PITH_ACT_NONE] = NULL,
    [PITH_ACT_GELU_ERF] = PITH_K(gelu_f32),
    [PITH_ACT_GELU_TANH] = PITH_K(gelu_tanh_f32),
    [PITH_ACT_RELU] = PITH_K(relu_f32),
    [PITH_ACT_TANH] = PITH_K(tanh_f32),
    [PITH_ACT_SIGMOID] = PITH_K(sigmoid_f32),
    [PITH_ACT_SILU] = PITH_K(silu_f32),
};

PITH_INLINE void add_bias(float *t, const float *bias, int64_t rows, int64_t stride, int64_t width) {
    for (int64_t j = 0; j < width; j += 16) {
        vf b = width - j >= 16 ? vf_load(bias + j) : vf_load_n(bias + j, (size_t)(width - j));
        for (int64_t i = 0; i < rows; i++) vf_store(t + i * stride + j, vf_add(vf_load(t + i * stride + j), b));
    }
}

/* Bias, activation and residual of the tile at row i, column j; width of its columns are real. */
static void finish(const pith_gemm *g, float *t, int64_t stride, int64_t i, int64_t rows, int64_t j, int64_t width) {
    if (g->bias) add_bias(t, g->bias + j, rows, stride, width);
    if (g->activation != PITH_ACT_NONE) activations[g->activation](t, t, (size_t)(rows * stride));
    for (int64_t r = 0; r < rows; r++) {
        float *c = g->c + (i + r) * g->ldc + j;
        const float *residual = g->residual ? g->residual + (i + r) * g->ldr + j : NULL;
        for (int64_t p = 0; p < width; p += 16) {
            vf v = vf_load(t + r * stride + p);
            if (width - p >= 16) {
                if (residual) v = vf_add(v, vf_load(residual + p));
                vf_store(c + p, v);
            } else {
                if (residual) v = vf_add(v, vf_load_n(residual + p, (size_t)(width - p)));
                vf_store_n(c + p, v, (size_t)(width - p));
            }
        }
    }
}

void PITH_K(gemm_f32)(const pith_gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    _Alignas(64) float t[PITH_TILE_ROWS * TILE_COLUMNS];
    const int64_t k = g->k, b_panel = k * PITH_GEMM_PANEL;
    int64_t block = k > 0 ? BLOCK_BYTES / (int64_t)sizeof(float) / k / PITH_TILE_ROWS * PITH_TILE_ROWS : m1 - m0;
    if (block < PITH_TILE_ROWS) block = PITH_TILE_ROWS;
    for (int64_t i0 = m0; i0 < m1; i0 += block) {
        int64_t i1 = m1 - i0 < block ? m1 : i0 + block;
        for (int64_t j = n0; j < n1; j += TILE_COLUMNS) {
            int64_t width = n1 - j < TILE_COLUMNS ? n1 - j : TILE_COLUMNS;
            int panels = (int)((width + 15) / 16);
            const float *b = g->b + j * k;
            for (int64_t i = i0; i < i1;) {
                /* The rest in equal tiles rather than full ones and a small one. */
                int64_t tiles = (i1 - i + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS, rows = (i1 - i + tiles - 1) / tiles;
                PITH_K(gemm_tile_f32)((int)rows, panels, g->a + i * g->lda, g->lda, b, PITH_GEMM_PANEL, b_panel, k, t,
                                      16 * panels, 0);
                finish(g, t, 16 * panels, i, rows, j, width);
                i += rows;
            }
        }
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
