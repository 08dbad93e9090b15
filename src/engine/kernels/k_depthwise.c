/* k_depthwise.c - see sliding_windows.h. A strip of columns is walked from the first row to the
 * last. Each row is loaded once, at three places, and adds to the sums of three rows: it is the
 * last one of the row before, the middle one of its own and the first one of the row behind it. So
 * each sum takes its nine taps in their order. With stride 2, every second element of two vectors
 * is taken, and the last row of a window is the first one of the next. */
#include "engine/kernels/sliding_windows.h"

#include <stdbool.h>

#include "engine/kernels/vec.h"

/* Vectors of columns that are walked together. Each needs three sums and three loaded places, and
 * its sums are chains: more strips overlap more of them, up to the number that fits the registers.
 * Where a vector of 16 takes two registers or more, one strip fills them. */
#if defined(PITH_LEVEL_avx512)
enum { STRIP = 4 };
#else
enum { STRIP = 1 };
#endif

/* sum + three taps of a row. */
PITH_INLINE vf depthwise_row(const float *weights, const vf *at, vf sum) {
    sum = vf_fma(vf_set1(weights[0]), at[0], sum);
    sum = vf_fma(vf_set1(weights[1]), at[1], sum);
    return vf_fma(vf_set1(weights[2]), at[2], sum);
}

/* The places to the left, in the middle and to the right of columns [j, j + 16), of which the row
 * has n; 16 < n: more. */
PITH_INLINE void depthwise_load(vf *at, const float *row, bool first, size_t n) {
    if (n > 16) {
        at[1] = vf_load(row);
        at[2] = vf_load(row + 1);
    } else {
        at[1] = vf_load_n(row, n);
        at[2] = vf_load_n(row + 1, n - 1);
    }
    if (first)
        at[0] = vf_shift(at[1]);
    else
        at[0] = n >= 16 ? vf_load(row - 1) : vf_load_n(row - 1, n + 1);
}

/* `vectors` times 16 columns from j on; the last has n of the row's columns, or more than 16 if
 * others follow. */
PITH_INLINE void depthwise_strip(const pith__depthwise *a, int64_t j, const int vectors, bool first,
                                 size_t n) {
    const float *row = a->x + j, *w = a->weights;
    float *y = a->y + j;
    vf before[STRIP], own[STRIP], behind[STRIP], at[3];
    const vf bias = a->bias ? vf_set1(*a->bias) : vf_zero();
    PITH_UNROLL
    for (int i = 0; i < vectors; i++) before[i] = own[i] = vf_zero();
    for (int64_t r = -1; r <= a->rows; r++, row += a->columns) {
        const bool inside = r >= 0 && r < a->rows;
        PITH_UNROLL
        for (int i = 0; i < vectors; i++) {
            if (inside)
                depthwise_load(at, row - a->columns + i * 16, first && i == 0,
                               i < vectors - 1 ? 17 : n);
            else
                at[0] = at[1] = at[2] = vf_zero();
            before[i] = depthwise_row(w + 6, at, before[i]);
            own[i] = depthwise_row(w + 3, at, own[i]);
            behind[i] = depthwise_row(w, at, vf_zero());
        }
        PITH_UNROLL
        for (int i = 0; i < vectors; i++) {
            if (r > 0) {
                const vf sum = a->bias ? vf_add(before[i], bias) : before[i];
                if (i < vectors - 1 || n >= 16)
                    vf_store(y + i * 16, sum);
                else
                    vf_store_n(y + i * 16, sum, n);
            }
            before[i] = own[i];
            own[i] = behind[i];
        }
        if (r > 0) y += a->columns;
    }
}

/* row[0], row[2], … row[30], of which the row has n elements; +0 for others. */
PITH_INLINE vf depthwise_even(const float *row, int64_t n) {
    if (n >= 32) return vf_even(vf_load(row), vf_load(row + 16));
    size_t count = 16; /* of the first sixteen */
    if (n < 0)
        count = 0;
    else if (n < 16)
        count = (size_t)n;
    const vf low = vf_load_n(row, count);
    return vf_even(low, n > 16 ? vf_load_n(row + 16, (size_t)(n - 16)) : vf_zero());
}

/* The three places of 16 windows, the first of which begins at column `at`, -1 or more, of row r.
 */
PITH_INLINE void depthwise_load_even(const pith__depthwise *a, vf *places, int64_t r, int64_t at) {
    if (r < 0 || r >= a->rows) {
        places[0] = places[1] = places[2] = vf_zero();
        return;
    }
    const float *row = a->x + r * a->columns;
    if (at < 0) {
        places[1] = depthwise_even(row, a->columns);
        places[2] = depthwise_even(row + 1, a->columns - 1);
        places[0] = vf_shift(places[2]);
        return;
    }
    PITH_UNROLL
    for (int i = 0; i < 3; i++) places[i] = depthwise_even(row + at + i, a->columns - at - i);
}

/* 16 windows of each row, or n of them. */
PITH_INLINE void depthwise_halves(const pith__depthwise *a, int64_t j, size_t n) {
    const float *w = a->weights;
    const vf bias = a->bias ? vf_set1(*a->bias) : vf_zero();
    const int64_t at = 2 * j - a->begin[1];
    vf first[3], middle[3], last[3];
    depthwise_load_even(a, first, -a->begin[0], at);
    for (int64_t r = 0; r < a->out_rows; r++) {
        float *y = a->y + r * a->out_columns + j;
        depthwise_load_even(a, middle, 2 * r - a->begin[0] + 1, at);
        depthwise_load_even(a, last, 2 * r - a->begin[0] + 2, at);
        vf sum = depthwise_row(w + 6, last,
                               depthwise_row(w + 3, middle, depthwise_row(w, first, vf_zero())));
        if (a->bias) sum = vf_add(sum, bias);
        if (n == 16)
            vf_store(y, sum);
        else
            vf_store_n(y, sum, n);
        PITH_UNROLL
        for (int i = 0; i < 3; i++) first[i] = last[i];
    }
}

void PITH_K(depthwise_f32)(const pith__depthwise *a) {
    int64_t j = 0;
    if (a->stride == 2) {
        for (; j < a->out_columns; j += 16)
            depthwise_halves(a, j, a->out_columns - j < 16 ? (size_t)(a->out_columns - j) : 16);
        return;
    }
    for (; a->columns - j > STRIP * 16; j += STRIP * 16) {
        if (j)
            depthwise_strip(a, j, STRIP, false, 17);
        else
            depthwise_strip(a, j, STRIP, true, 17);
    }
    for (; j < a->columns; j += 16) {
        const size_t n = a->columns - j > 16 ? 17 : (size_t)(a->columns - j);
        depthwise_strip(a, j, 1, j == 0, n);
    }
}
