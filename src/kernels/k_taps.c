/* k_taps.c - see taps.h. Up to eight vectors of windows share each tap, so that chains of additions overlap: vectors of
 * one row, or where rows are short, one vector each of several rows. */
#include "kernels/taps.h"

#include <math.h>
#include <string.h>

#include "kernels/vec.h"

enum { VECTORS = PITH_TAPS_BLOCK / 16, ROWS = 8 };

/* `count` vectors of windows, x_step and y_step apart; all of 16, but the last, or with all_short each, of n. */
PITH_INLINE void block(const pith_taps *a, const float *x, int64_t x_step, float *y, int64_t y_step, int count,
                       size_t n, bool all_short, int max) {
    vf sums[ROWS];
    PITH_UNROLL
    for (int i = 0; i < count; i++) sums[i] = max ? vf_set1(-INFINITY) : vf_zero();
    for (int64_t t = 0; t < a->taps; t++) {
        const float *from = x + a->offsets[t];
        vf weight = max ? vf_zero() : vf_set1(a->weights[t]);
        PITH_UNROLL
        for (int i = 0; i < count; i++) {
            vf v = vf_load(from + i * x_step);
            sums[i] = max ? vf_max_nan(v, sums[i]) : vf_fma(weight, v, sums[i]);
        }
    }
    PITH_UNROLL
    for (int i = 0; i < count; i++) {
        if (!max && a->bias) sums[i] = vf_add(sums[i], vf_set1(*a->bias));
        if (n == 16 || (!all_short && i < count - 1))
            vf_store(y + i * y_step, sums[i]);
        else
            vf_store_n(y + i * y_step, sums[i], n);
    }
}

/* Columns [j, j + n), at most 16, of all rows. */
PITH_INLINE void taps_column(const pith_taps *a, int64_t j, size_t n, int max) {
    const float *x = a->x + j;
    float *y = a->y + j;
    int64_t r = 0;
    for (; r + ROWS <= a->rows; r += ROWS)
        block(a, x + r * a->step, a->step, y + r * a->columns, a->columns, ROWS, n, true, max);
    for (; r < a->rows; r++) block(a, x + r * a->step, 0, y + r * a->columns, 0, 1, n, true, max);
}

PITH_INLINE void taps_run(const pith_taps *a, int max) {
    const int64_t whole = a->columns / PITH_TAPS_BLOCK * PITH_TAPS_BLOCK;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->step;
        float *y = a->y + r * a->columns;
        for (int64_t j = 0; j < whole; j += PITH_TAPS_BLOCK) block(a, x + j, 16, y + j, 16, VECTORS, 16, false, max);
    }
    for (int64_t j = whole; j < a->columns; j += 16)
        taps_column(a, j, a->columns - j < 16 ? (size_t)(a->columns - j) : 16, max);
}

void PITH_K(taps_sum_f32)(const pith_taps *a) { taps_run(a, 0); }
void PITH_K(taps_max_f32)(const pith_taps *a) { taps_run(a, 1); }

/* Every second element. */
static void take_second(float *restrict to, const float *restrict from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
}

/* One row in its phases; from NULL: padding. */
static void put_row(float *to, const float *from, const pith_taps_layout *p, const pith_window *w, float padding) {
    const int64_t stride = w->stride[p->last], size = w->in[p->last];
    for (int64_t phase = 0; phase < p->column_phases; phase++, to += p->rows * p->columns) {
        int64_t at = phase - w->begin[p->last]; /* of the first place */
        int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride, end = at >= size ? 0 : (size - 1 - at) / stride + 1;
        if (!from) first = end = 0;
        if (first > p->columns) first = p->columns;
        if (end > p->columns) end = p->columns;
        if (end < first) end = first;
        for (int64_t i = 0; i < first; i++) to[i] = padding;
        if (stride == 1 && end > first)
            memcpy(to + first, from + at + first, (size_t)(end - first) * sizeof *to);
        else if (stride == 2 && end > first)
            take_second(to + first, from + at + 2 * first, end - first);
        else
            for (int64_t i = first; i < end; i++) to[i] = from[at + i * stride];
        for (int64_t i = end; i < p->columns; i++) to[i] = padding;
    }
}

void PITH_K(taps_plane_f32)(float *to, const float *x, const pith_window *w, float padding) {
    pith_taps_layout p;
    if (!pith_taps_layout_of(&p, w)) return;                  /* pith_taps_floats has said so */
    const int64_t all = p.column_phases * p.rows * p.columns; /* of a phase of rows */
    for (int64_t phase = 0; phase < p.row_phases; phase++) {
        for (int64_t r = 0; r < p.rows; r++) {
            int64_t from = p.last ? r * w->stride[0] + phase - w->begin[0] : 0;
            bool inside = !p.last || (from >= 0 && from < w->in[0]);
            put_row(to + phase * all + r * p.columns, inside ? x + from * w->in[p.last] : NULL, &p, w, padding);
        }
    }
    for (int64_t i = 0; i < PITH_TAPS_BLOCK; i++) to[p.row_phases * all + i] = padding;
}
