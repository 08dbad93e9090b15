/* k_conv.c - see conv.h. Register tiles of maps times positions, as those of the GEMM; but the rows
 * of b are read where they lie, at an offset for each step of the chain, so that no columns are
 * packed.
 *
 * A group of positions, whose elements of x fit the L2 cache, meets all maps. */
#include "engine/kernels/conv.h"

#include <stdbool.h>

#include "engine/kernels/gemm_tile.h"
#include "engine/kernels/vec.h"

/* The largest tile: MAPS maps, and PANELS times 16 positions. A step loads each vector of positions
 * and each weight once. The accumulators, the positions and a weight fit the registers. STEPS:
 * steps of k in one turn of the loop of whole tiles; where another thread shares the core, the
 * number of instructions decides the speed. */
#if defined(PITH_LEVEL_avx512)
enum { MAPS = 8, PANELS = 3, STEPS = 4 };
#elif defined(PITH_LEVEL_avx2)
enum { MAPS = 6, PANELS = 1, STEPS = 2 };
#else
enum { MAPS = 5, PANELS = 1, STEPS = 1 };
#endif
/* GROUP: positions that meet all maps before the next ones do; a multiple of WIDTH. More read the
 * weights less often, but their elements of x must stay in the L2 cache. */
enum { WIDTH = 16 * PANELS, GROUP = 288 };
/* Steps of a chain that storing a turned vector of maps costs (k_conv_maps.c). */
enum { TURN = 16 };

/* One step of the chains. */
PITH_INLINE void conv_step(const int maps, const int panels, size_t n, const float *weights,
                           const float *x, vf sum[MAPS][PANELS]) {
    vf column[PANELS];
    PITH_UNROLL
    for (int p = 0; p < panels; p++) column[p] = n ? vf_load_n(x, n) : vf_load(x + 16 * p);
    PITH_UNROLL
    for (int i = 0; i < maps; i++) {
        const vf w = vf_set1(weights[i]);
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = vf_fma_onto(w, column[p], sum[i][p]);
    }
}

/* `maps` maps whose weights begin there, times 16 * panels positions from x on; n < 16 of the only
 * panel if it is the tail. */
PITH_INLINE void conv_tile(const pith__conv *c, const int maps, const int panels, size_t n,
                           const float *weights, const float *x, const float *bias, float *to,
                           int64_t to_row) {
    vf sum[MAPS][PANELS];
    PITH_UNROLL
    for (int i = 0; i < maps; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = vf_clear();
    }
    const int64_t *offset = c->offsets;
    int64_t left = c->k;
    while (STEPS > 1 && panels == PANELS && n == 0 && left >= STEPS) {
        PITH_UNROLL
        for (int s = 0; s < STEPS; s++)
            conv_step(maps, panels, n, weights + s * PITH_GEMM_PANEL, x + offset[s], sum);
        weights += STEPS * PITH_GEMM_PANEL;
        left -= STEPS;
        offset += STEPS;
    }
    for (; left > 0; left--, offset++, weights += PITH_GEMM_PANEL)
        conv_step(maps, panels, n, weights, x + *offset, sum);
    PITH_UNROLL
    for (int i = 0; i < maps; i++, to += to_row) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) {
            vf v = bias ? vf_add(sum[i][p], vf_set1(bias[i])) : sum[i][p];
            if (n)
                vf_store_n(to, v, n);
            else
                vf_store(to + 16 * p, v);
        }
    }
}

typedef void tile_fn(const pith__conv *c, size_t n, const float *weights, const float *x,
                     const float *bias, float *to, int64_t to_row);
#define CONV_TILE(name, maps, panels, tail)                                                        \
    static void name##_##maps(const pith__conv *c, size_t n, const float *weights, const float *x, \
                              const float *bias, float *to, int64_t to_row) {                      \
        conv_tile(c, maps, panels, tail ? n : 0, weights, x, bias, to, to_row);                    \
    }
#define TAIL(maps) CONV_TILE(tail, maps, 1, true)
#define ONE(maps) CONV_TILE(one, maps, 1, false)
#define TWO(maps) CONV_TILE(two, maps, 2, false)
#define THREE(maps) CONV_TILE(three, maps, 3, false)
#define TAIL_ENTRY(maps) [maps] = tail_##maps,
#define ONE_ENTRY(maps) [maps] = one_##maps,
#define TWO_ENTRY(maps) [maps] = two_##maps,
#define THREE_ENTRY(maps) [maps] = three_##maps,

#define CONV_MAPS_5(X) X(1) X(2) X(3) X(4) X(5)
#if defined(PITH_LEVEL_avx512)
#define CONV_MAPS(X) CONV_MAPS_5(X) X(6) X(7) X(8)
#elif defined(PITH_LEVEL_avx2)
#define CONV_MAPS(X) CONV_MAPS_5(X) X(6)
#else
#define CONV_MAPS(X) CONV_MAPS_5(X)
#endif

CONV_MAPS(TAIL)
CONV_MAPS(ONE)
#if defined(PITH_LEVEL_avx512)
CONV_MAPS(TWO)
CONV_MAPS(THREE)
#endif

/* By whole panels of positions (none: a tail), then by the number of maps. */
static tile_fn *const tiles[PANELS + 1][MAPS + 1] = {
    { CONV_MAPS(TAIL_ENTRY) },
    { CONV_MAPS(ONE_ENTRY) },
#if defined(PITH_LEVEL_avx512)
    { CONV_MAPS(TWO_ENTRY) },
    { CONV_MAPS(THREE_ENTRY) },
#endif
};

/* Positions [n, n + width), which begin at this row and column of y; inside: no other row has a
 * part of them. */
typedef struct span {
    int64_t n, width, row, column;
    bool inside;
} span;

/* Cuts positions [n, end) into spans of the widest tile and smaller ones at the end; returns their
 * number. Positions are counted through the rows of the padded plane, so a span may cross from one
 * row to the next. It then computes some positions between rows, which conv_store drops: that is
 * cheaper than ending vectors at every row. */
static int conv_spans(span *spans, const pith__conv *c, int64_t n, int64_t end) {
    int count = 0;
    for (int64_t row = n / c->step, column = n % c->step; n < end; count++) {
        const int64_t left = end - n;
        int64_t width = WIDTH;
        if (left < WIDTH) width = left < 16 ? left : left / 16 * 16;
        spans[count] = (span){ n, width, row, column, column + width <= c->columns };
        n += width;
        for (column += width; column >= c->step; column -= c->step) row++;
    }
    return count;
}

/* Rows of results, without those that lie between the rows of y. */
static void conv_store(const pith__conv *c, int64_t m, int64_t rows, const float *t,
                       const span *s) {
    int64_t row = s->row, column = s->column;
    for (int64_t n = 0; n < s->width;) {
        int64_t count = c->columns - column;
        if (count > s->width - n) count = s->width - n;
        if (count > 0) PITH_K(gemm_move)
        (c->y + m * c->y_map + row * c->columns + column, c->y_map, t + n, WIDTH, rows, count);
        n += c->step - column;
        column = 0;
        row++;
    }
}

/* `maps` maps from m on, of one panel. */
static void conv_spans_tile(const pith__conv *c, int64_t m, int64_t maps, const span *spans,
                            int count) {
    _Alignas(64) float t[MAPS * WIDTH];
    const float *weights =
        c->weights + m / PITH_GEMM_PANEL * PITH_GEMM_PANEL * c->k + m % PITH_GEMM_PANEL;
    const float *bias = c->bias ? c->bias + m : NULL;
    for (const span *s = spans; s < spans + count; s++) {
        float *to = s->inside ? c->y + m * c->y_map + s->row * c->columns + s->column : t;
        tiles[s->width / 16][maps](c, (size_t)s->width, weights, c->x + s->n, bias, to,
                                   s->inside ? c->y_map : WIDTH);
        if (!s->inside) conv_store(c, m, maps, t, s);
    }
}

void PITH_K(conv_positions_f32)(const pith__conv *c, int64_t m0, int64_t m1, int64_t n0,
                                int64_t n1) {
    for (int64_t g0 = n0, g1; g0 < n1; g0 = g1) {
        span spans[GROUP / WIDTH + PANELS];
        g1 = n1 - g0 > GROUP ? g0 + GROUP : n1;
        const int count = conv_spans(spans, c, g0, g1);
        for (int64_t p = m0; p < m1; p += PITH_GEMM_PANEL) {
            const int64_t end = m1 - p < PITH_GEMM_PANEL ? m1 : p + PITH_GEMM_PANEL;
            int64_t m = p;
            /* Equal tiles rather than full ones and a small one: the first ones have one map more.
             */
            for (int64_t left = (end - p + MAPS - 1) / MAPS, maps; left > 0; left--, m += maps) {
                maps = (end - m + left - 1) / left;
                conv_spans_tile(c, m, maps, spans, count);
            }
        }
    }
}

/* Takes the way with fewer multiply-adds of vectors. By positions, each vector of positions meets
 * each map, and positions between rows are wasted. By maps, each position meets each vector of
 * maps, and what is wasted are lanes of the last panel and the turning of results (TURN). */
void PITH_K(conv_f32)(const pith__conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    const int64_t vectors = (n1 - n0 + 15) / 16,
                  panels = (m1 - m0 + PITH_GEMM_PANEL - 1) / PITH_GEMM_PANEL;
    const int64_t places =
        pith__conv_place(n1, c->step, c->columns) - pith__conv_place(n0, c->step, c->columns);
    const double by_positions = (double)(vectors * (m1 - m0)) * (double)c->k,
                 by_maps = (double)(places * panels) * (double)(c->k + TURN);
    (by_maps < by_positions ? PITH_K(conv_maps_f32) : PITH_K(conv_positions_f32))(c, m0, m1, n0,
                                                                                  n1);
}
