/* k_arg.c - see arg_lanes.h. Columns: sixteen or more keep their best value and its place side by
 * side. A row: its best value is found first, then where it is. */
#include "engine/kernels/arg_lanes.h"

#include "engine/kernels/vec.h"

/* Vectors of columns, or of one row, whose comparisons run side by side: each is a chain in which
 * the next comparison waits for the last. More chains would need registers for as many best values
 * and places; fewer leave the execution ports idle. */
enum { VECTORS = 4 };

/* Where v takes the place of best: where it is better, or as good if the last of equals is wanted,
 * or a NaN while best is none. Every comparison with a NaN fails, so the first NaN stays. */
PITH_INLINE vm arg_better(vf v, vf best, const bool last, const int min) {
    vm plain;
    if (min)
        plain = last ? vf_le(v, best) : vf_lt(v, best);
    else
        plain = last ? vf_ge(v, best) : vf_gt(v, best);
    return vm_or(plain, vm_and(vf_isnan(v), vf_eq(best, best)));
}

/* `count` vectors of columns; the last one has n of them. */
PITH_INLINE void arg_columns(const float *x, int64_t *y, int64_t rows, int64_t stride,
                             const int count, size_t n, const bool last, const int min) {
    vf best[VECTORS];
    vi at[VECTORS];
    PITH_UNROLL
    for (int k = 0; k < count; k++) {
        best[k] = k == count - 1 ? vf_load_n(x + 16 * k, n) : vf_load(x + 16 * k);
        at[k] = vi_set1(0);
    }
    for (int64_t r = 1; r < rows; r++) {
        const vi now = vi_set1((int32_t)r);
        x += stride;
        PITH_UNROLL
        for (int k = 0; k < count; k++) {
            const vf v = k == count - 1 && n < 16 ? vf_load_n(x + 16 * k, n) : vf_load(x + 16 * k);
            const vm take = arg_better(v, best[k], last, min);
            best[k] = vf_select(take, v, best[k]);
            at[k] = vi_select(take, now, at[k]);
        }
    }
    PITH_UNROLL
    for (int k = 0; k < count; k++) {
        int32_t places[16];
        const int64_t wanted = k == count - 1 ? (int64_t)n : 16;
        vi_store(places, at[k]);
        for (int64_t i = 0; i < wanted; i++) y[16 * k + i] = places[i];
    }
}

PITH_INLINE vm arg_equal(vf v, vf best, const bool odd) {
    return odd ? vf_isnan(v) : vf_eq(v, best);
}

/* The first or last place of best among n elements, or of NaN; -1 if there is none. */
static int64_t arg_find(const float *x, int64_t n, float best, bool last, bool odd) {
    const vf wanted = vf_set1(best);
    for (int64_t i = last ? (n - 1) / 16 * 16 : 0; last ? i >= 0 : i < n; i += last ? -16 : 16) {
        const size_t left = n - i < 16 ? (size_t)(n - i) : 16;
        const vf v = left < 16 ? vf_load_n(x + i, left) : vf_load(x + i);
        const uint32_t lanes = vm_lanes(vm_and(arg_equal(v, wanted, odd), vm_first(left)));
        if (lanes) return i + (last ? 31 - __builtin_clz(lanes) : __builtin_ctz(lanes));
    }
    return -1;
}

/* Two passes over a row: the best value, then its place. The first pass is plain minima or maxima,
 * which carry no places along. `odd` adds 0 * x of every element: it is NaN in the end if there was
 * a NaN or an infinity, for one instruction per vector instead of a comparison. Only then is the
 * row searched for NaN. */
PITH_INLINE int64_t arg_row(const float *x, int64_t n, const bool last, const int min) {
    vf best[VECTORS], odd = vf_zero();
    int64_t i = 0;
    PITH_UNROLL
    for (int k = 0; k < VECTORS; k++) best[k] = vf_set1(x[0]);
    for (; n - i >= 16 * VECTORS; i += 16 * VECTORS) {
        PITH_UNROLL
        for (int k = 0; k < VECTORS; k++) {
            const vf v = vf_load(x + i + 16 * k);
            odd = vf_fma(v, vf_zero(), odd);
            best[k] = min ? vf_min(v, best[k]) : vf_max(v, best[k]);
        }
    }
    for (; i < n; i += 16) {
        const size_t left = n - i < 16 ? (size_t)(n - i) : 16;
        const vf v =
            left < 16 ? vf_select(vm_first(left), vf_load_n(x + i, left), best[0]) : vf_load(x + i);
        odd = vf_fma(v, vf_zero(), odd);
        best[0] = min ? vf_min(v, best[0]) : vf_max(v, best[0]);
    }
    /* or an infinity */
    const int64_t nan = vm_any(vf_isnan(odd)) ? arg_find(x, n, 0, false, true) : -1;
    if (nan >= 0) return nan;
    PITH_UNROLL
    for (int k = 1; k < VECTORS; k++)
        best[0] = min ? vf_min(best[0], best[k]) : vf_max(best[0], best[k]);
    return arg_find(x, n, min ? vf_hmin(best[0]) : vf_hmax(best[0]), last, false);
}

PITH_INLINE void arg_run(const float *x, int64_t *y, int64_t n, int64_t stride, int64_t columns,
                         const bool last, const int min) {
    if (stride == 1) {
        for (int64_t j = 0; j < columns; j++) y[j] = arg_row(x + j, n, last, min);
        return;
    }
    int64_t j = 0;
    for (; columns - j >= 16 * VECTORS; j += 16 * VECTORS)
        arg_columns(x + j, y + j, n, stride, VECTORS, 16, last, min);
    for (; j < columns; j += 16)
        arg_columns(x + j, y + j, n, stride, 1, columns - j < 16 ? (size_t)(columns - j) : 16, last,
                    min);
}

void PITH_K(arg_max_lanes_f32)(const float *x, int64_t *y, int64_t n, int64_t stride,
                               int64_t columns, bool last) {
    if (last)
        arg_run(x, y, n, stride, columns, true, 0);
    else
        arg_run(x, y, n, stride, columns, false, 0);
}

void PITH_K(arg_min_lanes_f32)(const float *x, int64_t *y, int64_t n, int64_t stride,
                               int64_t columns, bool last) {
    if (last)
        arg_run(x, y, n, stride, columns, true, 1);
    else
        arg_run(x, y, n, stride, columns, false, 1);
}
