/* k_pool.c - see taps.h: maxima of windows two places apart, read where the input lies. */
#include <math.h>
#include <string.h>

#include "kernels/taps.h"
#include "kernels/vec.h"

/* Places at, at + 2, … at + 30 of a row of `in`, -infinity outside it. The row is readable from `at` on. */
PITH_INLINE vf pool_places(const float *row, int64_t at, int64_t in) {
    const vf outside = vf_set1(-INFINITY);
    const int64_t before = at < 0 ? (1 - at) / 2 : 0, inside = in - at;
    if (before >= 16 || inside <= 0) return outside;
    const vf low = vf_load_n(row + at, inside < 16 ? (size_t)inside : 16);
    const vf high = inside <= 16 ? vf_zero() : vf_load_n(row + at + 16, inside < 32 ? (size_t)(inside - 16) : 16);
    const vf v = vf_select(vm_first(inside < 32 ? (size_t)(inside + 1) / 2 : 16), vf_even(low, high), outside);
    return before ? vf_select(vm_first((size_t)before), outside, v) : v;
}

/* Sixteen windows of 2 x 2, all inside. */
PITH_INLINE vf pool_square(const float *x, int64_t step) {
    vf most = vf_set1(-INFINITY);
    PITH_UNROLL
    for (int i = 0; i < 4; i++) {
        const float *from = x + i / 2 * step + i % 2;
        most = vf_max_nan(vf_even(vf_load(from), vf_load(from + 16)), most);
    }
    return most;
}

/* n (up to 16) windows of one row of windows from place `at` on, over `rows` input rows, `step` apart. `readable`
 * elements lie from the beginning of the last of these rows to the end of x; what is read behind a row is not used. */
PITH_INLINE vf pool_block(const float *row, int64_t rows, int64_t step, int64_t at, int64_t n, int64_t readable,
                          const pith_window *w) {
    const int64_t columns = w->kernel[w->rank - 1], in = w->in[w->rank - 1];
    const bool whole = at >= 0 && at + 2 * (n - 1) + columns <= in && at + columns + 31 <= readable;
    if (whole && rows == 2 && columns == 2) return pool_square(row + at, step);
    vf most = vf_set1(-INFINITY);
    for (int64_t r = 0; r < rows; r++) {
        const float *from = row + r * step;
        for (int64_t c = at; c < at + columns; c++) {
            const vf v = whole ? vf_even(vf_load(from + c), vf_load(from + c + 16)) : pool_places(from, c, in);
            most = vf_max_nan(v, most);
        }
    }
    return most;
}

/* The first of the input's rows has nothing before it that could be read. */
PITH_INLINE vf pool_first(const float *x, int64_t rows, int64_t step, int64_t at, const pith_window *w) {
    enum { BEFORE = PITH_POOL_TWO_PADS, BEHIND = 48 };
    float copy[BEFORE + BEHIND] = { 0 };
    const int64_t in = w->in[w->rank - 1];
    memcpy(copy + BEFORE, x, (size_t)(in < BEHIND ? in : BEHIND) * sizeof *x);
    vf most = pool_block(copy + BEFORE, 1, 0, at, 16, 0, w);
    for (int64_t r = 1; r < rows; r++) {
        for (int64_t c = at; c < at + w->kernel[w->rank - 1]; c++)
            most = vf_max_nan(pool_places(x + r * step, c, in), most);
    }
    return most;
}

void PITH_K(pool_max_two_f32)(float *y, const float *x, const pith_window *w, int64_t channels) {
    const int last = w->rank - 1;
    const int64_t in = w->in[last], height = last ? w->in[0] : 1, out = w->out[last], outer = last ? w->out[0] : 1;
    const int64_t dilation = last ? w->dilation[0] : 1, kernel = last ? w->kernel[0] : 1;
    for (int64_t channel = 0; channel < channels; channel++) {
        const float *plane = x + channel * height * in;
        for (int64_t r = 0; r < outer; r++, y += out) {
            const int64_t at = last ? r * w->stride[0] - w->begin[0] : 0;
            const int64_t skip = at < 0 ? (dilation - 1 - at) / dilation : 0, first = at + skip * dilation;
            int64_t rows = first < height ? (height - 1 - first) / dilation + 1 : 0;
            if (rows > kernel - skip) rows = kernel - skip;
            const int64_t from = rows > 0 ? first : 0, step = dilation * in;
            const int64_t readable = ((channels - channel) * height - from - (rows > 1 ? rows - 1 : 0) * dilation) * in;
            for (int64_t j = 0; j < out; j += 16) {
                const int64_t place = 2 * j - w->begin[last], n = out - j < 16 ? out - j : 16;
                const bool start = plane == x && first == 0 && place < 0 && rows > 0;
                const vf v = start ? pool_first(plane, rows, step, place, w)
                                   : pool_block(plane + from * in, rows, step, place, n, readable, w);
                if (n == 16)
                    vf_store(y + j, v);
                else
                    vf_store_n(y + j, v, (size_t)n);
            }
        }
    }
}
