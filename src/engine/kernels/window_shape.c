/* window_shape.c - see window_shape.h. */
#include "engine/kernels/window_shape.h"

#include <math.h>
#include <string.h>

int64_t pith__window_count(const int64_t *sizes, int rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= sizes[i];
    return count;
}

static void split_index(int64_t index, const int64_t *sizes, int rank, int64_t *place) {
    for (int i = rank - 1; i >= 0; i--) {
        place[i] = index % sizes[i];
        index /= sizes[i];
    }
}

#define COPY_STRIDED(T)                                                                            \
    for (int64_t i = first; i < last; i++) ((T *)to)[i] = ((const T *)row)[at + i * stride]

/* n windows of one row, beginning with output place o; row NULL: all padding. */
static void columns_row(char *to, const char *row, int64_t o, int64_t n, int64_t stride,
                        int64_t offset, int64_t in, size_t size) {
    int64_t at = o * stride + offset; /* place of the first */
    int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride,
            last = at >= in ? 0 : (in - 1 - at) / stride + 1;
    if (!row || last < 0) first = last = 0;
    if (first > n) first = n;
    if (last > n) last = n;
    if (last < first) last = first;
    memset(to, 0, (size_t)first * size);
    if (last > first && stride == 1)
        memcpy(to + (size_t)first * size, row + (size_t)(at + first) * size,
               (size_t)(last - first) * size);
    else if (size == 4)
        COPY_STRIDED(uint32_t);
    else
        COPY_STRIDED(uint64_t);
    memset(to + (size_t)last * size, 0, (size_t)(n - last) * size);
}

/* The columns of im2col, a row for each channel and tap. Windows along the last axis are taken
 * together: a run of them lies in one row of x at a fixed stride, or all of it in the padding, so
 * that columns_row has no test for each element. */
void pith__window_columns(void *columns, const void *x, const pith__window *w, int64_t channels,
                          int64_t o0, int64_t o1, size_t size) {
    int last = w->rank - 1;
    int64_t plane = pith__window_count(w->in, w->rank),
            kernel = pith__window_count(w->kernel, w->rank);
    char *to = columns;
    for (int64_t c = 0; c < channels; c++) {
        const char *channel = (const char *)x + (size_t)(c * plane) * size;
        for (int64_t k = 0; k < kernel; k++) {
            int64_t tap[PITH_WINDOW_RANK], o[PITH_WINDOW_RANK];
            split_index(k, w->kernel, w->rank, tap);
            split_index(o0, w->out, w->rank, o);
            for (int64_t i = o0; i < o1;) {
                int64_t n = w->out[last] - o[last] < o1 - i ? w->out[last] - o[last] : o1 - i,
                        row = 0;
                bool inside = true;
                for (int d = 0; d < last; d++) {
                    int64_t at = o[d] * w->stride[d] - w->begin[d] + tap[d] * w->dilation[d];
                    inside &= at >= 0 && at < w->in[d];
                    row = row * w->in[d] + at;
                }
                columns_row(to, inside ? channel + (size_t)(row * w->in[last]) * size : NULL,
                            o[last], n, w->stride[last],
                            tap[last] * w->dilation[last] - w->begin[last], w->in[last], size);
                to += (size_t)n * size;
                i += n;
                o[last] += n;
                for (int d = last; d > 0 && o[d] == w->out[d]; d--) {
                    o[d] = 0;
                    o[d - 1]++;
                }
            }
        }
    }
}

/* Taps are the outer loop and windows the inner one, so the sums of an element come in the order of
 * the taps, whatever the sizes. */
#define WINDOW_ADD(suffix, T)                                                                      \
    pith__window_add_fn pith__k_window_add_##suffix;                                               \
    void pith__k_window_add_##suffix(void *y, const void *columns, const pith__window *w,          \
                                     int64_t channels) {                                           \
        int64_t plane = pith__window_count(w->in, w->rank),                                        \
                kernel = pith__window_count(w->kernel, w->rank);                                   \
        int64_t windows = pith__window_count(w->out, w->rank);                                     \
        const T *from = columns;                                                                   \
        for (int64_t c = 0; c < channels; c++) {                                                   \
            T *channel = (T *)y + c * plane;                                                       \
            for (int64_t k = 0; k < kernel; k++) {                                                 \
                int64_t tap[PITH_WINDOW_RANK], o[PITH_WINDOW_RANK] = { 0 };                        \
                split_index(k, w->kernel, w->rank, tap);                                           \
                for (int64_t i = 0; i < windows; i++) {                                            \
                    int64_t to = 0;                                                                \
                    bool inside = true;                                                            \
                    for (int d = 0; d < w->rank; d++) {                                            \
                        int64_t at = o[d] * w->stride[d] - w->begin[d] + tap[d] * w->dilation[d];  \
                        inside &= at >= 0 && at < w->in[d];                                        \
                        to = to * w->in[d] + at;                                                   \
                    }                                                                              \
                    if (inside) channel[to] += *from;                                              \
                    from++;                                                                        \
                    for (int d = w->rank - 1; d >= 0 && ++o[d] == w->out[d]; d--) o[d] = 0;        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
WINDOW_ADD(f32, float)
WINDOW_ADD(f64, double)

/* Taps [first, last) of an axis that fall inside [low, high). */
static void taps_inside(const pith__window *w, int d, int64_t o, int64_t low, int64_t high,
                        int64_t *first, int64_t *last) {
    int64_t at = o * w->stride[d] - w->begin[d], step = w->dilation[d];
    *first = at >= low ? 0 : (low - at + step - 1) / step;
    *last = at >= high ? 0 : (high - 1 - at) / step + 1;
    if (*last > w->kernel[d]) *last = w->kernel[d];
    if (*last < *first) *last = *first;
}

/* Window by window. The taps that lie inside are found by division for each axis, so that large
 * paddings cost nothing. BEGIN, STEP and END see the result so far (a), the element (v) and its
 * place (at), the taps inside and with the stated padding (inside, padded), and the place to report
 * (best). */
#define POOL(name, suffix, T, A, BEGIN, STEP, END)                                                 \
    static void pool_##name##_##suffix(void *y, int64_t *indices, const void *x,                   \
                                       const pith__window *w, int64_t p) {                         \
        const T *from = x;                                                                         \
        int64_t o[PITH_WINDOW_RANK] = { 0 }, windows = pith__window_count(w->out, w->rank);        \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < windows; i++) {                                                    \
            int64_t first[PITH_WINDOW_RANK], last[PITH_WINDOW_RANK], tap[PITH_WINDOW_RANK],        \
                best = -1;                                                                         \
            int64_t inside = 1, padded = 1;                                                        \
            for (int d = 0; d < w->rank; d++) {                                                    \
                taps_inside(w, d, o[d], -w->begin[d], w->in[d] + w->end[d], &first[d], &last[d]);  \
                padded *= last[d] - first[d];                                                      \
                taps_inside(w, d, o[d], 0, w->in[d], &first[d], &last[d]);                         \
                inside *= last[d] - first[d];                                                      \
                tap[d] = first[d];                                                                 \
            }                                                                                      \
            A a = BEGIN;                                                                           \
            for (int64_t n = 0; n < inside; n++) {                                                 \
                int64_t at = 0;                                                                    \
                for (int d = 0; d < w->rank; d++) {                                                \
                    at = at * w->in[d] + o[d] * w->stride[d] - w->begin[d] +                       \
                         tap[d] * w->dilation[d];                                                  \
                }                                                                                  \
                T v = from[at];                                                                    \
                STEP;                                                                              \
                for (int d = w->rank - 1; d >= 0 && ++tap[d] == last[d]; d--) tap[d] = first[d];   \
            }                                                                                      \
            (void)padded;                                                                          \
            ((T *)y)[i] = (T)(END);                                                                \
            if (indices) indices[i] = best;                                                        \
            for (int d = w->rank - 1; d >= 0 && ++o[d] == w->out[d]; d--) o[d] = 0;                \
        }                                                                                          \
    }
/* The same without indices for loops that need no more than the result so far: the output is its
 * own accumulator, and the windows of a row are taken together, tap by tap. */
#define POOL_ROWS(name, suffix, T, BEGIN, STEP, END)                                               \
    static void pool_rows_##name##_##suffix(T *y, const T *x, const pith__window *w, int64_t p) {  \
        int last = w->rank - 1;                                                                    \
        int64_t n = w->out[last], stride = w->stride[last], o[PITH_WINDOW_RANK] = { 0 };           \
        int64_t rows = pith__window_count(w->out, last),                                           \
                taps = pith__window_count(w->kernel, last);                                        \
        (void)p;                                                                                   \
        for (int64_t r = 0; r < rows; r++, y += n) {                                               \
            for (int64_t i = 0; i < n; i++) y[i] = BEGIN;                                          \
            for (int64_t t = 0; t < taps; t++) {                                                   \
                int64_t tap[PITH_WINDOW_RANK], row = 0;                                            \
                bool inside = true;                                                                \
                split_index(t, w->kernel, last, tap);                                              \
                for (int d = 0; d < last; d++) {                                                   \
                    int64_t at = o[d] * w->stride[d] - w->begin[d] + tap[d] * w->dilation[d];      \
                    inside &= at >= 0 && at < w->in[d];                                            \
                    row = row * w->in[d] + at;                                                     \
                }                                                                                  \
                if (!inside) continue;                                                             \
                for (int64_t k = 0; k < w->kernel[last]; k++) {                                    \
                    int64_t at = k * w->dilation[last] - w->begin[last];                           \
                    int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride;                     \
                    int64_t end = at >= w->in[last] ? 0 : (w->in[last] - 1 - at) / stride + 1;     \
                    const T *from = x + row * w->in[last];                                         \
                    if (end > n) end = n;                                                          \
                    for (int64_t i = first; i < end; i++) {                                        \
                        T v = from[at + i * stride], a = y[i];                                     \
                        y[i] = STEP;                                                               \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            END;                                                                                   \
            for (int d = last - 1; d >= 0 && ++o[d] == w->out[d]; d--) o[d] = 0;                   \
        }                                                                                          \
    }

int64_t pith__window_places(const pith__window *w, int d, int64_t o, bool padded) {
    int64_t first, end;
    taps_inside(w, d, o, padded ? -w->begin[d] : 0, w->in[d] + (padded ? w->end[d] : 0), &first,
                &end);
    return end - first;
}

static double outer_places(const pith__window *w, const int64_t *o, bool padded) {
    double count = 1;
    for (int d = 0; d < w->rank - 1; d++) count *= (double)pith__window_places(w, d, o[d], padded);
    return count;
}

#define LARGEST                                                                                    \
    if (best < 0 || v > a || (v != v && a == a)) {                                                 \
        a = v;                                                                                     \
        best = at;                                                                                 \
    }
#define LARGER ((v > a) | (v != v)) ? v : a
POOL(max, f32, float, float, -INFINITY, LARGEST, a)
POOL(max, f64, double, double, -INFINITY, LARGEST, a)
POOL(max, u8, uint8_t, uint8_t, 0, LARGEST, a)
POOL(max, i8, int8_t, int8_t, INT8_MIN, LARGEST, a)
POOL_ROWS(max, f32, float, -INFINITY, LARGER, )
POOL_ROWS(max, f64, double, -INFINITY, LARGER, )
POOL_ROWS(max, u8, uint8_t, 0, LARGER, )
POOL_ROWS(max, i8, int8_t, INT8_MIN, LARGER, )

#define DIVIDE(T)                                                                                  \
    double outer = outer_places(w, o, p != 0);                                                     \
    for (int64_t i = 0; i < n; i++)                                                                \
    y[i] /= (T)(outer * (double)pith__window_places(w, last, i, p != 0))
POOL(mean, f32, float, float, 0, a += v, a / (float)(p ? padded : inside))
POOL(mean, f64, double, double, 0, a += v, a / (double)(p ? padded : inside))
POOL_ROWS(mean, f32, float, 0, a + v, DIVIDE(float))
POOL_ROWS(mean, f64, double, 0, a + v, DIVIDE(double))

/* The p-norm: the usual p go without pow. */
static double lp_term(double v, int64_t p) {
    if (p == 1) return fabs(v);
    return p == 2 ? v * v : pow(fabs(v), (double)p);
}
static double lp_root(double sum, int64_t p) {
    if (p == 1) return sum;
    return p == 2 ? sqrt(sum) : pow(sum, 1.0 / (double)p);
}
POOL(lp, f32, float, double, 0, a += lp_term((double)v, p), lp_root(a, p))
POOL(lp, f64, double, double, 0, a += lp_term((double)v, p), lp_root(a, p))

/* The form by rows walks the taps one by one. Windows of more than MOST_TAPS are mostly padding,
 * which the other form skips. */
static bool takes_rows(const int64_t *indices, const pith__window *w) {
    enum { MOST_TAPS = 4096 };
    double taps = 1;
    for (int d = 0; d < w->rank; d++) taps *= (double)w->kernel[d];
    return !indices && taps <= MOST_TAPS;
}

#define BY_ROWS(name, suffix, T)                                                                   \
    pith__pool_fn pith__k_pool_##name##_##suffix;                                                  \
    void pith__k_pool_##name##_##suffix(void *y, int64_t *indices, const void *x,                  \
                                        const pith__window *w, int64_t p) {                        \
        if (takes_rows(indices, w))                                                                \
            pool_rows_##name##_##suffix((T *)y, (const T *)x, w, p);                               \
        else                                                                                       \
            pool_##name##_##suffix(y, indices, x, w, p);                                           \
    }
#define BY_WINDOWS(name, suffix)                                                                   \
    pith__pool_fn pith__k_pool_##name##_##suffix;                                                  \
    void pith__k_pool_##name##_##suffix(void *y, int64_t *indices, const void *x,                  \
                                        const pith__window *w, int64_t p) {                        \
        pool_##name##_##suffix(y, indices, x, w, p);                                               \
    }
BY_ROWS(max, f32, float)
BY_ROWS(max, f64, double)
BY_ROWS(max, u8, uint8_t)
BY_ROWS(max, i8, int8_t)
BY_ROWS(mean, f32, float)
BY_ROWS(mean, f64, double)
BY_WINDOWS(lp, f32)
BY_WINDOWS(lp, f64)
