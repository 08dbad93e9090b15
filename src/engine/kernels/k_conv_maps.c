/* k_conv_maps.c - see conv.h: lanes are maps. Vectors of weights are loaded as they lie, and each
 * position's element of x meets all of them, so that a row of any length wastes nothing and few
 * positions read the weights once. The sums of a tile are turned when they are stored, because maps
 * lie apart in y. */
#include "engine/kernels/conv.h"

#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/vec.h"

/* Maps of a tile: as many vectors as the GEMM's tile has panels, so that as many positions fit the
 * registers as it has rows. */
enum { WIDTH = 16 * PITH_TILE_PANELS };
/* Steps of k in one turn of the loop: fewer instructions besides the multiply-adds, and more code.
 */
#if defined(PITH_LEVEL_avx512) || defined(PITH_LEVEL_avx2)
enum { STEPS = 2 };
#else
enum { STEPS = 1 };
#endif

/* One step of the chains. */
PITH_INLINE void conv_maps_step(const int rows, const int panels, const float *weights,
                                int64_t next, const float *x,
                                vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS]) {
    vf w[PITH_TILE_PANELS];
    PITH_UNROLL
    for (int p = 0; p < panels; p++) w[p] = vf_load(weights + p * next);
    PITH_UNROLL
    for (int i = 0; i < rows; i++) { /* half of the elements straight from memory: fewer
                                        instructions than loads */
        if (i % 2 == 0) {
            PITH_UNROLL
            for (int p = 0; p < panels; p++) sum[i][p] = vf_fma_at(x + i, w[p], sum[i][p]);
        } else {
            const vf element = vf_set1(x[i]);
            PITH_UNROLL
            for (int p = 0; p < panels; p++) sum[i][p] = vf_fma_onto(element, w[p], sum[i][p]);
        }
    }
}

/* t[i][16 * panels] = the maps of `panels` panels at position i of `rows`, of which x has the
 * first. */
PITH_INLINE void conv_maps_tile(const pith__conv *c, const int rows, const int panels,
                                const float *weights, const float *x, float *t) {
    vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS];
    const int64_t next = PITH_GEMM_PANEL * c->k;
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = vf_clear();
    }
    const int64_t *offset = c->offsets;
    int64_t left = c->k;
    if (STEPS > 1) {
        for (; left >= STEPS; left -= STEPS, offset += STEPS) {
            const float *w = weights;
            PITH_UNROLL
            for (int s = 0; s < STEPS; s++, w += PITH_GEMM_PANEL)
                conv_maps_step(rows, panels, w, next, x + offset[s], sum);
            weights += STEPS * PITH_GEMM_PANEL;
        }
    }
    for (; left > 0; left--, offset++, weights += PITH_GEMM_PANEL)
        conv_maps_step(rows, panels, weights, next, x + *offset, sum);
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) vf_store(t + i * WIDTH + 16 * p, sum[i][p]);
    }
}

typedef void maps_fn(const pith__conv *c, const float *weights, const float *x, float *t);
#define CONV_ROWS_5(X, name) X(1, name) X(2, name) X(3, name) X(4, name) X(5, name)
#if defined(PITH_LEVEL_avx512)
#define CONV_ROWS(X, name)                                                                         \
    CONV_ROWS_5(X, name)                                                                           \
    X(6, name)                                                                                     \
    X(7, name) X(8, name) X(9, name) X(10, name) X(11, name) X(12, name) X(13, name) X(14, name)
#elif defined(PITH_LEVEL_avx2)
#define CONV_ROWS(X, name) CONV_ROWS_5(X, name) X(6, name)
#else
#define CONV_ROWS(X, name) CONV_ROWS_5(X, name)
#endif
#define MAPS_TILE(rows, panels)                                                                    \
    static void maps_##rows##x##panels(const pith__conv *c, const float *weights, const float *x,  \
                                       float *t) {                                                 \
        conv_maps_tile(c, rows, panels, weights, x, t);                                            \
    }
#define MAPS_ENTRY(rows, panels) [rows] = maps_##rows##x##panels,

CONV_ROWS(MAPS_TILE, 1)
#if defined(PITH_LEVEL_avx512)
CONV_ROWS(MAPS_TILE, 2)
#endif

/* By the panels less one, then by the number of positions. */
static maps_fn *const maps_tiles[PITH_TILE_PANELS][PITH_TILE_ROWS + 1] = {
    { CONV_ROWS(MAPS_ENTRY, 1) },
#if defined(PITH_LEVEL_avx512)
    { CONV_ROWS(MAPS_ENTRY, 2) },
#endif
};

/* Maps [m, m + maps), at most 16, of t's positions; n is the first one's number. Positions between
 * rows are dropped. */
static void conv_maps_put(const pith__conv *c, int64_t m, int64_t maps, int64_t n, int64_t rows,
                          const float *t) {
    vf r[16];
    const vf bias = c->bias ? vf_load_n(c->bias + m, (size_t)maps) : vf_zero();
    int64_t column = n % c->step;
    float *y = c->y + m * c->y_map + pith__conv_place(n, c->step, c->columns);
    PITH_UNROLL
    for (int i = 0; i < 16; i++) r[i] = i >= rows ? vf_zero() : vf_load(t + i * WIDTH);
    PITH_UNROLL
    for (int i = 0; i < 16; i++) r[i] = c->bias ? vf_add(r[i], bias) : r[i];
    vf_transpose(r);
    if (column + rows <= c->columns) {
        PITH_UNROLL
        for (int i = 0; i < 16; i++)
            if (i < maps) vf_store_n(y + i * c->y_map, r[i], (size_t)rows);
        return;
    }
    float turned[16][16];
    PITH_UNROLL
    for (int i = 0; i < 16; i++) vf_store(turned[i], r[i]);
    for (int64_t done = 0; done < rows; done++, column = column + 1 == c->step ? 0 : column + 1) {
        if (column >= c->columns) continue; /* between the rows */
        for (int64_t i = 0; i < maps; i++) y[i * c->y_map] = turned[i][done];
        y++;
    }
}

/* The maps of one or more panels, at `rows` positions from n on. */
static void conv_maps_block(const pith__conv *c, int64_t m, int64_t m1, int64_t n, int64_t rows) {
    _Alignas(64) float t[16 * WIDTH];
    const int64_t panels = (m1 - m + 15) / 16;
    maps_tiles[panels - 1][rows](c, c->weights + m * c->k, c->x + n, t);
    for (int64_t p = 0; p < panels; p++)
        conv_maps_put(c, m + 16 * p, m1 - m - 16 * p < 16 ? m1 - m - 16 * p : 16, n, rows,
                      t + 16 * p);
}

/* Tiles end with a row of positions, so that nothing is computed between rows. Few positions are
 * one tile instead, together with what lies between their rows, so that they read the weights once.
 */
void PITH_K(conv_maps_f32)(const pith__conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    if (n0 >= n1) return;
    for (int64_t m = m0, next; m < m1; m = next) {
        next = m1 - m > WIDTH ? m + WIDTH : m1;
        if (n1 - n0 <= PITH_TILE_ROWS) { /* together with what lies between the rows */
            conv_maps_block(c, m, next, n0, n1 - n0);
            continue;
        }
        for (int64_t n = n0, end; n < n1; n = end) {
            const int64_t column = n % c->step;
            end = n - column + c->step < n1 ? n - column + c->step : n1;
            int64_t left = (end - n < c->columns - column ? end - n : c->columns - column);
            /* equal tiles, as far as they can be */
            for (int64_t rows; left > 0; left -= rows, n += rows) {
                const int64_t count = (left + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS;
                rows = (left + count - 1) / count;
                conv_maps_block(c, m, next, n, rows);
            }
        }
    }
}
