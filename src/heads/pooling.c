/* pooling.c - cls, max, mean, mean over the square root of the length, position-weighted mean, last.
 *
 * Plain loops with one accumulator per component and rows in ascending order. The compiler may compute several
 * components at once, which changes no bit. Source of the modes: Sentence Transformers, models/Pooling. */
#include "heads/pooling.h"

#include <math.h>
#include <string.h>

typedef void pool_fn(float *y, const float *x, int64_t rows, int64_t width);

static void pool_cls(float *y, const float *x, int64_t rows, int64_t width) {
    (void)rows;
    memcpy(y, x, (size_t)width * sizeof *y);
}

static void pool_last(float *y, const float *x, int64_t rows, int64_t width) {
    memcpy(y, x + (rows - 1) * width, (size_t)width * sizeof *y);
}

static void pool_max(float *y, const float *x, int64_t rows, int64_t width) {
    memcpy(y, x, (size_t)width * sizeof *y);
    for (int64_t r = 1; r < rows; r++)
        for (int64_t i = 0; i < width; i++) {
            float v = x[r * width + i];
            y[i] = v > y[i] || v != v ? v : y[i];
        }
}

static void sum(float *y, const float *x, int64_t rows, int64_t width) {
    memcpy(y, x, (size_t)width * sizeof *y);
    for (int64_t r = 1; r < rows; r++)
        for (int64_t i = 0; i < width; i++) y[i] += x[r * width + i];
}

static void pooling_divide(float *y, int64_t width, float by) {
    for (int64_t i = 0; i < width; i++) y[i] /= by;
}

static void pool_mean(float *y, const float *x, int64_t rows, int64_t width) {
    sum(y, x, rows, width);
    pooling_divide(y, width, (float)rows);
}

static void pool_mean_sqrt(float *y, const float *x, int64_t rows, int64_t width) {
    sum(y, x, rows, width);
    pooling_divide(y, width, sqrtf((float)rows));
}

static void pool_weighted(float *y, const float *x, int64_t rows, int64_t width) {
    memcpy(y, x, (size_t)width * sizeof *y);
    for (int64_t r = 1; r < rows; r++)
        for (int64_t i = 0; i < width; i++) y[i] += x[r * width + i] * (float)(r + 1);
    pooling_divide(y, width, (float)rows * (float)(rows + 1) / 2);
}

int pith_pool_parts(uint32_t pooling) { return __builtin_popcount(pooling); }

void pith_pool_rows(float *vector, uint32_t pooling, const float *x, int64_t rows, int64_t width) {
    static pool_fn *const modes[PITH_POOL_MODES] = { pool_cls,       pool_max,      pool_mean,
                                                     pool_mean_sqrt, pool_weighted, pool_last };
    for (int mode = 0; mode < PITH_POOL_MODES; mode++)
        if (pooling >> mode & 1u) {
            modes[mode](vector, x, rows, width);
            vector += width;
        }
}
