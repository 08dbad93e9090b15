/* pooling.c - cls, max, mean, mean over the square root of the length, position-weighted mean,
 * last.
 *
 * Plain loops with one accumulator per component and rows in ascending order. The compiler may
 * compute several components at once, which changes no bit. Source of the modes: Sentence
 * Transformers, models/Pooling. */
#include "models/heads/pooling.h"

#include <math.h>
#include <string.h>

/* Rows [first, rows) count. */
typedef struct pool_input {
    const float *x;
    int64_t first, rows, width, stride;
} pool_input;

/* Of the weights behind all rows. Source: sentence-transformers 6, modules/pooling.py
 * (token_weights_sum). */
static float pooling_weight(const pool_input *p) {
    float sum = 0;
    for (int64_t r = 0; r < p->rows; r++) sum += p->x[r * p->stride + p->width];
    return sum > 1e-9f ? sum : 1e-9f;
}

typedef void pool_fn(float *y, const pool_input *p);

static void pool_cls(float *y, const pool_input *p) {
    const int64_t row = p->first < p->rows ? p->first : 0;
    memcpy(y, p->x + row * p->stride, (size_t)p->width * sizeof *y);
}

static void pool_last(float *y, const pool_input *p) {
    if (p->first < p->rows)
        memcpy(y, p->x + (p->rows - 1) * p->stride, (size_t)p->width * sizeof *y);
    else
        memset(y, 0, (size_t)p->width * sizeof *y);
}

static void pool_max(float *y, const pool_input *p) {
    for (int64_t i = 0; i < p->width; i++) y[i] = -INFINITY;
    for (int64_t r = p->first; r < p->rows; r++)
        for (int64_t i = 0; i < p->width; i++) {
            float v = p->x[r * p->stride + i];
            y[i] = v > y[i] || v != v ? v : y[i];
        }
}

/* Begins with the first row, not with 0, so that -0 stays -0. */
static void sum(float *y, const pool_input *p) {
    if (p->first < p->rows)
        memcpy(y, p->x + p->first * p->stride, (size_t)p->width * sizeof *y);
    else
        memset(y, 0, (size_t)p->width * sizeof *y);
    for (int64_t r = p->first + 1; r < p->rows; r++)
        for (int64_t i = 0; i < p->width; i++) y[i] += p->x[r * p->stride + i];
}

/* by 0: there are no rows, and y is 0. */
static void pooling_divide(float *y, int64_t width, float by) {
    if (!(by > 0)) return;
    for (int64_t i = 0; i < width; i++) y[i] /= by;
}

static void pool_mean(float *y, const pool_input *p) {
    sum(y, p);
    pooling_divide(y, p->width,
                   p->stride > p->width ? pooling_weight(p) : (float)(p->rows - p->first));
}

static void pool_mean_sqrt(float *y, const pool_input *p) {
    sum(y, p);
    pooling_divide(y, p->width,
                   sqrtf(p->stride > p->width ? pooling_weight(p) : (float)(p->rows - p->first)));
}

static void pool_weighted(float *y, const pool_input *p) {
    const float a = (float)p->first, n = (float)p->rows;
    for (int64_t i = 0; i < p->width; i++)
        y[i] = p->first < p->rows ? p->x[p->first * p->stride + i] * (a + 1) : 0;
    for (int64_t r = p->first + 1; r < p->rows; r++)
        for (int64_t i = 0; i < p->width; i++) y[i] += p->x[r * p->stride + i] * (float)(r + 1);
    pooling_divide(y, p->width,
                   p->stride > p->width ? pooling_weight(p) : n * (n + 1) / 2 - a * (a + 1) / 2);
}

int pith__pool_parts(uint32_t pooling) {
    int parts = 0;
    for (; pooling; pooling >>= PITH_POOL_BITS) parts++;
    return parts;
}

void pith__pool_rows(float *vector, uint32_t pooling, const float *x, int64_t rows, int64_t width,
                     int64_t skip, bool weighted) {
    static pool_fn *const modes[PITH_POOL_MODES] = {
        [PITH_POOL_CLS] = pool_cls,           [PITH_POOL_MAX] = pool_max,
        [PITH_POOL_MEAN] = pool_mean,         [PITH_POOL_MEAN_SQRT] = pool_mean_sqrt,
        [PITH_POOL_WEIGHTED] = pool_weighted, [PITH_POOL_LAST] = pool_last,
    };
    const pool_input p = { x, skip < rows ? skip : rows, rows, width, width + weighted };
    for (; pooling; pooling >>= PITH_POOL_BITS, vector += width)
        modes[pooling & ((1u << PITH_POOL_BITS) - 1)](vector, &p);
}
