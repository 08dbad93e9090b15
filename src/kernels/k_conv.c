/* k_conv.c - see conv.h. Register tiles of maps times positions, as those of the GEMM; but the rows of b are read where
 * they lie, at an offset for each step of the chain, so that nothing is packed.
 *
 * A group of positions, whose elements of x fit the L2 cache, meets all maps. */
#include "kernels/conv.h"

#include <stdbool.h>

#include "kernels/gemm_tile.h"
#include "kernels/vec.h"

enum { WIDTH = 16 * PITH_TILE_PANELS, GROUP = 128 / WIDTH };

/* `rows` maps from weights on, times 16 * panels positions from x on; n < 16 of the only panel if it is the tail. */
PITH_INLINE void conv_tile(const pith_conv *c, const int rows, const int panels, size_t n, const float *weights,
                           const float *x, const float *bias, float *to, int64_t to_row) {
    vf sum[PITH_TILE_ROWS][PITH_TILE_PANELS];
    const float *a[(PITH_TILE_ROWS + 2) / 3]; /* every third row */
    const int64_t *offset = c->offsets, *end = offset + c->k;
    int64_t row = c->k, two_rows = 2 * c->k;
    PITH_FORGET(row); /* see k_gemm_tile.c */
    PITH_FORGET(two_rows);
    PITH_UNROLL
    for (int i = 0; i < rows; i += 3) a[i / 3] = weights + i * c->k;
    PITH_UNROLL
    for (int i = 0; i < rows; i++) {
        PITH_UNROLL
        for (int p = 0; p < panels; p++) sum[i][p] = vf_clear();
    }
    for (; offset < end; offset++) {
        vf column[PITH_TILE_PANELS];
        const float *from = x + *offset;
        PITH_UNROLL
        for (int p = 0; p < panels; p++) column[p] = n ? vf_load_n(from, n) : vf_load(from + 16 * p);
        PITH_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *element = a[i / 3] + (i % 3 == 2 ? two_rows : i % 3 * row);
            if (i == 0 || i == 6) {
                PITH_UNROLL
                for (int p = 0; p < panels; p++) sum[i][p] = vf_fma_at(element, column[p], sum[i][p]);
            } else {
                vf w = vf_set1(*element);
                PITH_UNROLL
                for (int p = 0; p < panels; p++) sum[i][p] = vf_fma_onto(w, column[p], sum[i][p]);
            }
        }
        PITH_UNROLL
        for (int i = 0; i < rows; i += 3) a[i / 3]++;
    }
    PITH_UNROLL
    for (int i = 0; i < rows; i++, to += to_row) {
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

typedef void tile_fn(const pith_conv *c, size_t n, const float *weights, const float *x, const float *bias, float *to,
                     int64_t to_row);
#define CONV_TILE(rows)                                                                                                \
    static void whole_##rows(const pith_conv *c, size_t n, const float *weights, const float *x, const float *bias,    \
                             float *to, int64_t to_row) {                                                              \
        (void)n;                                                                                                       \
        conv_tile(c, rows, PITH_TILE_PANELS, 0, weights, x, bias, to, to_row);                                         \
    }                                                                                                                  \
    static void tail_##rows(const pith_conv *c, size_t n, const float *weights, const float *x, const float *bias,     \
                            float *to, int64_t to_row) {                                                               \
        conv_tile(c, rows, 1, n, weights, x, bias, to, to_row);                                                        \
    }
#define CONV_ROWS_5(X) X(1) X(2) X(3) X(4) X(5)
#if defined(PITH_LEVEL_avx512)
#define CONV_ROWS(X) CONV_ROWS_5(X) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif defined(PITH_LEVEL_avx2)
#define CONV_ROWS(X) CONV_ROWS_5(X) X(6)
#else
#define CONV_ROWS(X) CONV_ROWS_5(X)
#endif
#define WHOLE_ENTRY(rows) [rows] = whole_##rows,
#define TAIL_ENTRY(rows) [rows] = tail_##rows,

CONV_ROWS(CONV_TILE)

/* By the number of maps. */
static tile_fn *const whole[PITH_TILE_ROWS + 1] = { CONV_ROWS(WHOLE_ENTRY) };
static tile_fn *const tail[PITH_TILE_ROWS + 1] = { CONV_ROWS(TAIL_ENTRY) };

/* Positions [n, n + width), which begin at this row and column of y; inside: no other row has a part of them. */
typedef struct span {
    int64_t n, width, row, column;
    bool inside;
} span;

/* The spans of positions [n, end); returns their number. */
static int conv_spans(span *spans, const pith_conv *c, int64_t n, int64_t end) {
    int count = 0;
    for (int64_t row = n / c->step, column = n % c->step; n < end; count++) {
        const int64_t width = end - n >= WIDTH ? WIDTH : end - n < 16 ? end - n : 16;
        spans[count] = (span){ n, width, row, column, column + width <= c->columns };
        n += width;
        for (column += width; column >= c->step; column -= c->step) row++;
    }
    return count;
}

/* Rows of results, without those that lie between the rows of y. */
static void conv_store(const pith_conv *c, int64_t m, int64_t rows, const float *t, const span *s) {
    int64_t row = s->row, column = s->column;
    for (int64_t n = 0; n < s->width;) {
        int64_t count = c->columns - column;
        if (count > s->width - n) count = s->width - n;
        if (count > 0)
            PITH_K(gemm_move)(c->y + m * c->y_map + row * c->columns + column, c->y_map, t + n, WIDTH, rows, count);
        n += c->step - column;
        column = 0;
        row++;
    }
}

void PITH_K(conv_f32)(const pith_conv *c, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    _Alignas(64) float t[PITH_TILE_ROWS * WIDTH];
    for (int64_t g0 = n0, g1; g0 < n1; g0 = g1) {
        span spans[GROUP + PITH_TILE_PANELS];
        g1 = n1 - g0 > GROUP * WIDTH ? g0 + GROUP * WIDTH : n1;
        const int count = conv_spans(spans, c, g0, g1);
        int64_t m = m0;
        /* Equal tiles rather than full ones and a small one: the first ones are a row higher. */
        for (int64_t left = (m1 - m0 + PITH_TILE_ROWS - 1) / PITH_TILE_ROWS, rows; left > 0; left--, m += rows) {
            rows = (m1 - m + left - 1) / left;
            const float *weights = c->weights + m * c->k, *bias = c->bias ? c->bias + m : NULL;
            for (const span *s = spans; s < spans + count; s++) {
                float *to = s->inside ? c->y + m * c->y_map + s->row * c->columns + s->column : t;
                (s->width == WIDTH ? whole : tail)[rows](c, (size_t)s->width, weights, c->x + s->n, bias, to,
                                                         s->inside ? c->y_map : WIDTH);
                if (!s->inside) conv_store(c, m, rows, t, s);
            }
        }
    }
}
