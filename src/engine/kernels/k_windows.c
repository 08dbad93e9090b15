/* k_windows.c - see sliding_windows.h. Up to eight vectors of windows share each tap, so that
 * chains of additions overlap: vectors of one row, or where rows are short, one vector each of
 * several rows. */
#include "engine/kernels/sliding_windows.h"

#include <math.h>

#include "engine/kernels/vec.h"

/* VECTORS: vectors of windows of one row that share a tap. ROWS: rows with a vector each, where
 * rows are short. A sum is a chain of additions of four cycles, so eight chains are about what two
 * ports can take; more would not fit the registers of AVX2. */
enum { VECTORS = PITH_TAPS_BLOCK / 16, ROWS = 8 };

/* `count` vectors of windows, x_step and y_step apart; all of 16, but the last, or with all_short
 * each, of n. */
PITH_INLINE void block(const pith__taps *a, const float *x, int64_t x_step, float *y,
                       int64_t y_step, int count, size_t n, bool all_short, int max) {
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

/* Columns [j, j + n), at most 16, of all rows, in blocks of nearly equal numbers of rows. */
PITH_INLINE void taps_column(const pith__taps *a, int64_t j, size_t n, int max) {
    int64_t r = 0;
    for (int64_t left = (a->rows + ROWS - 1) / ROWS, rows; left > 0; left--, r += rows) {
        const float *x = a->x + j + r * a->step;
        float *y = a->y + j + r * a->columns;
        rows = (a->rows - r + left - 1) / left;
        switch (rows) {
#define TAPS_ROWS(count)                                                                           \
    case count: block(a, x, a->step, y, a->columns, count, n, true, max); break;
            TAPS_ROWS(1)
            TAPS_ROWS(2)
            TAPS_ROWS(3)
            TAPS_ROWS(4)
            TAPS_ROWS(5)
            TAPS_ROWS(6)
            TAPS_ROWS(7)
            TAPS_ROWS(8)
        }
    }
}

PITH_INLINE void taps_run(const pith__taps *a, int max) {
    const int64_t whole = a->columns / PITH_TAPS_BLOCK * PITH_TAPS_BLOCK;
    for (int64_t r = 0; r < a->rows; r++) {
        const float *x = a->x + r * a->step;
        float *y = a->y + r * a->columns;
        for (int64_t j = 0; j < whole; j += PITH_TAPS_BLOCK)
            block(a, x + j, 16, y + j, 16, VECTORS, 16, false, max);
    }
    for (int64_t j = whole; j < a->columns; j += 16)
        taps_column(a, j, a->columns - j < 16 ? (size_t)(a->columns - j) : 16, max);
}

void PITH_K(taps_sum_f32)(const pith__taps *a) { taps_run(a, 0); }
void PITH_K(taps_max_f32)(const pith__taps *a) { taps_run(a, 1); }

/* n elements, each the `stride`-th after the one before. May write up to 15 more. */
PITH_INLINE void put_places(float *to, const float *from, int64_t n, int64_t stride) {
    int64_t i = 0;
    if (stride == 1) {
        for (; n - i >= 16; i += 16) vf_store(to + i, vf_load(from + i));
        if (i < n) vf_store(to + i, vf_load_n(from + i, (size_t)(n - i)));
    } else if (stride == 2) {
        for (; n - i > 16; i += 16)
            vf_store(to + i, vf_even(vf_load(from + 2 * i), vf_load(from + 2 * i + 16)));
        if (i == n) return;
        const int64_t last = 2 * (n - i) - 1; /* elements up to the last one that is taken */
        vf low = vf_load_n(from + 2 * i, last < 16 ? (size_t)last : 16);
        vf_store(to + i, vf_even(low, last > 16 ? vf_load_n(from + 2 * i + 16, (size_t)(last - 16))
                                                : vf_zero()));
    } else {
        for (; i < n; i++) to[i] = from[i * stride];
    }
}

/* The places of one phase in a row: padding, places [first, end) from `at` on, padding. */
typedef struct phase_row {
    int64_t columns, stride, at, first, end;
} phase_row;

static phase_row phase_of(const pith__taps_layout *p, const pith__window *w, int64_t phase) {
    phase_row row = { .columns = p->columns,
                      .stride = w->stride[p->last],
                      .at = phase - w->begin[p->last] };
    const int64_t size = w->in[p->last];
    row.first = row.at >= 0 ? 0 : (-row.at + row.stride - 1) / row.stride;
    row.end = row.at >= size ? 0 : (size - 1 - row.at) / row.stride + 1;
    if (row.first > row.columns) row.first = row.columns;
    if (row.end > row.columns) row.end = row.columns;
    if (row.end < row.first) row.end = row.first;
    return row;
}

/* Writes up to 15 elements behind the row: those of the next one, which is written later, or behind
 * the plane. */
PITH_INLINE void put_row(float *to, const float *from, const phase_row *row, vf padding) {
    for (int64_t i = 0; i < row->first; i += 16) vf_store(to + i, padding);
    if (row->end > row->first)
        put_places(to + row->first, from + row->at + row->first * row->stride,
                   row->end - row->first, row->stride);
    for (int64_t i = row->end; i < row->columns; i += 16) vf_store(to + i, padding);
}

void PITH_K(taps_plane_f32)(float *to, const float *x, const pith__window *w, float padding) {
    pith__taps_layout p;
    if (!pith__taps_layout_of(&p, w)) return; /* pith__taps_floats has said so */
    const vf outside = vf_set1(padding);
    const phase_row empty = { .columns = p.columns };
    for (int64_t phase = 0; phase < p.row_phases * p.column_phases; phase++) {
        const phase_row row = phase_of(&p, w, phase % p.column_phases);
        for (int64_t r = 0; r < p.rows; r++, to += p.columns) {
            int64_t from = p.last ? r * w->stride[0] + phase / p.column_phases - w->begin[0] : 0;
            bool inside = !p.last || (from >= 0 && from < w->in[0]);
            put_row(to, x + (inside ? from * w->in[p.last] : 0), inside ? &row : &empty, outside);
        }
    }
    for (int64_t i = 0; i < PITH_TAPS_BLOCK; i++) to[i] = padding;
}
