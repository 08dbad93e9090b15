/* k_gemm.c - c = epilogue(a b) by register tiles, and the packing of b.
 *
 * A strip of b is as wide as the register tile. All rows of a block of a, which stays in L2, are
 * multiplied by the strip. Meanwhile each tile prefetches a share of the next strip into L2, so
 * that b is read at the speed of memory, whatever the number of rows. If even a few rows do not fit
 * beside two strips, k is cut too, and unfinished sums wait in c. The epilogue works on the
 * finished tile while it is in the L1 cache. GELU of large tiles is computed during the steps of
 * the next tile. */
#include "engine/kernels/gemm.h"

#include <stdbool.h>

#include "base/os/cpu.h"
#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/unary.h"
#include "engine/kernels/vec.h"

/* The fewest rows of a block of a, if there are that many. With fewer, b is read more often, and
 * the tiles wait for it; with more, the block needs more of the L2 cache, and k would have to be
 * cut for longer rows. */
enum { ROWS_MIN = 128 };
/* If a strip of b is too large for the L1 cache, the rows of a tile go through GROUP strips while
 * they stay there. A larger group reads a less often and needs more of L2 for b; groups of 1 to 6
 * differ little. */
enum { GROUP = 4, TILE_COLUMNS = PITH_TILE_PANELS * PITH_GEMM_PANEL };
/* Tiles, one below the other, in one call. The code around a small tile takes a noticeable share of
 * its time, so four of them share it. With large tiles, the results that wait for an activation
 * would fill the L1 cache. */
enum { TILES_AT_ONCE = PITH_TILE_SMALL ? 4 : 1 };
/* With at least this many small tiles per strip, each prefetches the next strip one line at a time.
 * Fewer tiles must prefetch several lines at a time. */
enum { STEADY_SHARES = 12 };

/* Panels that a single row is multiplied by at once. Each is a sum of its own, and a multiply-add
 * takes four cycles, so fewer would wait. More are slower from the L2 and L3 caches, but not from
 * memory, where each is a stream to fetch. */
#if defined(PITH_LEVEL_avx512)
enum { ROW_PANELS = 4, ROW_PANELS_FAR = 8 };
#elif defined(PITH_LEVEL_avx2) || defined(PITH_LEVEL_neon)
enum { ROW_PANELS = 4, ROW_PANELS_FAR = 4 };
#else
enum { ROW_PANELS = 2, ROW_PANELS_FAR = 2 };
#endif

void PITH_K(gemm_move)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows,
                       int64_t width) {
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        int64_t p = 0;
        for (; width - p >= 16; p += 16) vf_store(to + p, vf_load(from + p));
        if (p < width)
            vf_store_n(to + p, vf_load_n(from + p, (size_t)(width - p)), (size_t)(width - p));
    }
}

void PITH_K(gemm_activate)(pith__gemm_activation activation, float *to, int64_t to_row, float *from,
                           int64_t from_row, int64_t rows, int64_t width) {
    static pith__unary_f32_fn *const activations[] = {
        [PITH_ACT_GELU_ERF] = PITH_K(gelu_f32),
        [PITH_ACT_GELU_TANH] = PITH_K(gelu_tanh_f32),
        [PITH_ACT_RELU] = PITH_K(relu_f32),
        [PITH_ACT_TANH] = PITH_K(tanh_f32),
        [PITH_ACT_SIGMOID] = PITH_K(sigmoid_f32),
        [PITH_ACT_SILU] = PITH_K(silu_f32),
        [PITH_ACT_QUICK_GELU] = PITH_K(quick_gelu_f32),
    };
    if (activation == PITH_ACT_NONE) {
        PITH_K(gemm_move)(to, to_row, from, from_row, rows, width);
        return;
    }
    pith__unary_f32_fn *const function = activations[activation];
    if (from_row == width) { /* side by side: long runs are faster */
        function(from, from, (size_t)(rows * width));
        PITH_K(gemm_move)(to, to_row, from, from_row, rows, width);
        return;
    }
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row)
        function(from, to, (size_t)width);
}

PITH_INLINE void gemm_add_bias(float *t, const float *bias, int64_t rows, int64_t stride,
                               int64_t width) {
    for (int64_t j = 0; j < width; j += 16) {
        vf b = width - j >= 16 ? vf_load(bias + j) : vf_load_n(bias + j, (size_t)(width - j));
        for (int64_t i = 0; i < rows; i++)
            vf_store(t + i * stride + j, vf_add(vf_load(t + i * stride + j), b));
    }
}

/* From c to the tile, width columns of each row; zeros up to a whole panel. */
PITH_INLINE void load_tile(const pith__gemm *g, float *t, int64_t stride, int64_t i, int64_t rows,
                           int64_t j, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < width; p += 16) {
            const float *c = g->c + (i + r) * g->ldc + j + p;
            vf_store(t + r * stride + p,
                     width - p >= 16 ? vf_load(c) : vf_load_n(c, (size_t)(width - p)));
        }
    }
}
/* What tiles fetch: the next strips of b, by address since they may lie after the last; each tile
 * of a strip takes one share of `shares`. */
typedef struct strip {
    uintptr_t address;
    int64_t share, shares;
} strip;

/* Tiles of `rows` rows each from row i on, times columns [j, j + width), at most GROUP tiles, over
 * k in [k0, k1). Whole panels without an activation go from the registers to c, those that gelu is
 * given for wait there, the rest goes by way of t. */
static void run_tiles(const pith__gemm *g, pith__gemm_tile_fn *multiply, int64_t i, int64_t rows,
                      int64_t tiles, int64_t j, int64_t width, int64_t k0, int64_t k1,
                      const strip *next, pith__gemm_gelu *gelu) {
    _Alignas(64) float t[TILES_AT_ONCE * PITH_TILE_ROWS * TILE_COLUMNS * GROUP];
    const int64_t whole = width / TILE_COLUMNS * TILE_COLUMNS, panels = (width - whole + 15) / 16;
    const int64_t stride = whole + 16 * panels, depth = k1 - k0, turns = depth / 4;
    const bool last = k1 == g->k;
    const pith__gemm_activation activation = last ? g->activation : PITH_ACT_NONE;
    const bool direct = width == stride && activation == PITH_ACT_NONE;
    const bool meanwhile = gelu && panels == 0 && rows >= PITH_TILE_GELU_ROWS;
    const bool steady = PITH_TILE_SMALL && next->shares >= STEADY_SHARES;
    const int64_t step = (PITH_TILE_STEADY * 64 + next->shares - 1) / next->shares;
    const int64_t taken = /* bytes: what the tiles above have fetched */
        steady ? next->share * (depth / PITH_TILE_STEADY) * step
               : next->share * turns / next->shares * 64;
    pith__gemm_tile tile = { .a = g->a + i * g->lda + k0,
                             .b = g->b + j * g->k + 16 * k0,
                             .t = direct ? g->c + i * g->ldc + j : t,
                             .a_row = g->lda,
                             .b_panel = 16 * g->k,
                             .t_row = direct ? g->ldc : stride,
                             .k = depth,
                             .groups = whole / TILE_COLUMNS,
                             .tiles = tiles,
                             .accumulate = k0 > 0,
                             .ahead = next->address + (uintptr_t)taken,
                             .ahead_stream = turns * 64,
                             .ahead_panel = 64 * g->k,
                             .ahead_every = steady ? 0 : next->shares,
                             .ahead_step = step,
                             .target = g->c + i * g->ldc + j,
                             .target_row = g->ldc,
                             .target_width = whole ? TILE_COLUMNS : width,
                             .gelu = meanwhile ? gelu : NULL };
    if (last && g->bias && width == stride) tile.bias = g->bias + j;
    if (k0 > 0 && !direct) load_tile(g, t, stride, i, tiles * rows, j, width);
    if (whole) multiply((int)rows, PITH_TILE_PANELS, &tile);
    if (panels) {
        tile.b += whole * g->k;
        tile.t += whole;
        if (tile.bias) tile.bias += whole;
        tile.ahead += (uintptr_t)(whole * g->k) * sizeof(float);
        tile.target += whole;
        tile.target_width = width - whole;
        tile.groups = 1;
        multiply((int)rows, (int)panels, &tile);
    }
    if (direct || meanwhile) return;
    if (last && g->bias && width < stride)
        gemm_add_bias(t, g->bias + j, tiles * rows, stride, width);
    PITH_K(gemm_activate)
    (activation, g->c + i * g->ldc + j, g->ldc, t, stride, tiles * rows, width);
}

/* Rows [m0, m1) and k in [k0, k1). The rows meet one group of strips of b after the other; next:
 * what is read then. */
static void run_block(const pith__gemm *g, pith__gemm_tile_fn *multiply, int64_t m0, int64_t m1,
                      int64_t n0, int64_t n1, int64_t k0, int64_t k1, const float *next,
                      pith__gemm_gelu *gelu) {
    const size_t depth = (size_t)(k1 - k0) * sizeof(float), l1 = pith__cpu_get()->l1d;
    const int64_t tiles = (m1 - m0 + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS;
    bool rows_stay =
        tiles > 4 && depth * TILE_COLUMNS > l1 / 4 * 3 && depth * PITH_TILE_ROWS <= l1 / 4 * 3;
    const int64_t columns = rows_stay ? GROUP * TILE_COLUMNS : TILE_COLUMNS;
    /* Equal tiles rather than full ones and a small one: the last ones are a row less high. */
    const int64_t high = tiles ? (m1 - m0 + tiles - 1) / tiles : 0,
                  lower = tiles * high - (m1 - m0);
    for (int64_t j0 = n0, j1; j0 < n1; j0 = j1) {
        int64_t i = m0;
        j1 = n1 - j0 > columns ? j0 + columns : n1;
        const float *ahead = j1 < n1 ? g->b + j1 * g->k + 16 * k0 : next;
        for (int64_t tile = 0, count; tile < tiles; tile += count) {
            const int64_t rows = tile < tiles - lower ? high : high - 1;
            count = (tile < tiles - lower ? tiles - lower : tiles) - tile;
            if (count > TILES_AT_ONCE) count = TILES_AT_ONCE;
            run_tiles(g, multiply, i, rows, count, j0, j1 - j0, k0, k1,
                      &(strip){ (uintptr_t)ahead, tile, tiles }, gelu);
            i += count * rows;
        }
    }
}

/* Blocks the matmul for the L2 cache: rows into blocks of `height`, and k into parts of `depth`
 * where even ROWS_MIN rows of it would be too long. All rows of a block meet all strips of one part
 * of k before the next part begins; c holds the unfinished sums in between, which is why an element
 * is still one chain in ascending k, whatever the blocks. b is read once for each block of rows. */
void PITH_K(gemm_by_tiles)(const pith__gemm *g, pith__gemm_tile_fn *tile, int64_t m0, int64_t m1,
                           int64_t n0, int64_t n1) {
    /* Three quarters of the second level cache are for rows of a and two strips: the one that is
     * read and the next. */
    enum { STRIPS = 2 * TILE_COLUMNS };
    const int64_t floats = (int64_t)(pith__cpu_get()->l2 / 4 * 3 / sizeof(float)), rows = m1 - m0;
    if (rows <= 0) return;
    const int64_t least = rows < ROWS_MIN ? rows : ROWS_MIN;
    const int64_t parts = ((least + STRIPS) * g->k + floats - 1) / floats;
    const int64_t depth = parts > 1 ? (g->k + parts - 1) / parts : g->k;
    const int64_t fitting = depth > 0 ? floats / depth - STRIPS : rows,
                  most = fitting > least ? fitting : least;
    const int64_t blocks = (rows + most - 1) / most;
    int64_t height = rows;
    if (blocks > 1)
        height =
            ((rows + blocks - 1) / blocks + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS * PITH_TILE_ROWS;
    /* small tiles take no GELU meanwhile */
    enum { TILE = PITH_TILE_SMALL ? 1 : PITH_TILE_ROWS * TILE_COLUMNS };
    _Alignas(64) float sums[2][TILE];
    pith__gemm_gelu gelu = { .spare = sums[0], .busy = sums[1] };
    const bool meanwhile = g->activation == PITH_ACT_GELU_ERF && depth == g->k;
    for (int64_t i = m0; i < m1; i += height) {
        int64_t k0 = 0, k1, end = m1 - i < height ? m1 : i + height;
        do { /* once for k = 0 too */
            k1 = g->k - k0 < depth ? g->k : k0 + depth;
            const float *next = g->b + (end < m1 ? n0 : n1) * g->k;
            if (k1 < g->k)
                next = g->b + n0 * g->k + 16 * k1;
            else if (g->next && end == m1)
                next = g->next;
            run_block(g, tile, i, end, n0, n1, k0, k1, next, meanwhile ? &gelu : NULL);
            k0 = k1;
        } while (k1 < g->k);
    }
    const int64_t waiting = gelu.left / PITH_TILE_PANELS; /* rows of the last tile */
    if (waiting) PITH_K(gemm_activate)
    (PITH_ACT_GELU_ERF, gelu.to, g->ldc, gelu.busy, TILE_COLUMNS, waiting, TILE_COLUMNS);
}

/* Sums of one row times `panels` panels from column j on, into t. Each panel is read from its
 * beginning to its end, a cache line in each step of k. ahead: what is fetched in addition; 0:
 * nothing. */
PITH_INLINE void row_sums(const int panels, const pith__gemm *g, const float *a, int64_t j,
                          uintptr_t ahead, float *t) {
    const float *b[ROW_PANELS_FAR];
    vf sum[ROW_PANELS_FAR];
    const int64_t k = g->k;
    PITH_UNROLL
    for (int p = 0; p < panels; p++) {
        b[p] = g->b + (j + 16 * p) * k;
        sum[p] = vf_clear();
    }
    for (int64_t i = 0; i < k; i++) {
        const vf x = vf_set1(a[i]);
        PITH_UNROLL
        for (int p = 0; p < panels; p++) {
            const int64_t line = 16 * (p * k + i);
            if (ahead)
                __builtin_prefetch((const void *)(ahead + (uintptr_t)line * sizeof(float)), 0, 2);
        }
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[p] = vf_fma(x, vf_load(b[p] + 16 * i), sum[p]);
    }
    PITH_UNROLL
    for (int p = 0; p < panels; p++) vf_store(t + 16 * p, sum[p]);
}

/* Row i, columns [n0, n1). A single row uses every weight once, so the time is that of reading b.
 * If b is larger than half of the last level cache it comes from memory, and more panels at once
 * keep more reads under way. */
static void gemm_row(const pith__gemm *g, int64_t i, int64_t n0, int64_t n1) {
    _Alignas(64) float t[16 * ROW_PANELS_FAR];
    const float *a = g->a + i * g->lda;
    const bool far = (size_t)((n1 - n0) * g->k) * sizeof(float) > pith__cpu_get()->l3 / 2;
    const int most = far ? ROW_PANELS_FAR : ROW_PANELS;
    for (int64_t j = n0, width; j < n1; j += width) {
        const int64_t left = n1 - j;
        const int few = left > 16 ? 2 : 1;
        const int panels = left > 16 * (most - 1) ? most : few;
        width = left < 16 * panels ? left : 16 * panels;
        const float *next = width == left && g->next ? g->next : g->b + (j + 16 * panels) * g->k;
        if (panels == 1)
            row_sums(1, g, a, j, 0, t);
        else if (panels == 2)
            row_sums(2, g, a, j, 0, t);
        else if (far)
            row_sums(ROW_PANELS_FAR, g, a, j, (uintptr_t)next, t);
        else
            row_sums(ROW_PANELS, g, a, j, 0, t);
        if (g->bias) gemm_add_bias(t, g->bias + j, 1, 16 * panels, width);
        PITH_K(gemm_activate)
        (g->activation, g->c + i * g->ldc + j, g->ldc, t, 16 * panels, 1, width);
    }
}

void PITH_K(gemm_f32)(const pith__gemm *g, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (m1 - m0 == 1) {
        gemm_row(g, m0, n0, n1);
        return;
    }
    PITH_K(gemm_by_tiles)(g, PITH_K(gemm_tile_f32), m0, m1, n0, n1);
}

/* One panel of columns [j, j + width): k rows of 16, zeros beyond width. Rows of b that are
 * contiguous are copied; columns that are contiguous (a transposed weight) are turned in squares of
 * 16; anything else goes element by element. */
static void gemm_pack_panel(float *packed, const float *b, int64_t row_stride,
                            int64_t column_stride, int64_t k, int64_t width) {
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
            for (int64_t j = 0; j < 16; j++)
                rows[j] = j < width ? vf_load(b + j * column_stride + i) : vf_zero();
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

void PITH_K(gemm_pack_f32)(float *packed, const float *b, int64_t row_stride, int64_t column_stride,
                           int64_t k, int64_t n, int64_t n0, int64_t n1) {
    for (int64_t j = n0; j < n1; j += 16) {
        gemm_pack_panel(packed + j * k, b + j * column_stride, row_stride, column_stride, k,
                        n - j < 16 ? n - j : 16);
    }
}
