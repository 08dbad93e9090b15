/* plain_reduce.c - see plain_reduce.h. One line per function and type makes the row loop and the
 * column loop; `count` is the number of elements that become one result. */
#include "engine/kernels/plain_reduce.h"

#include <math.h>

#undef bool /* a suffix of names here */

#define FOLD(name, suffix, T, A, BEGIN, STEP, END)                                                 \
    static T fold_##name##_##suffix(const T *p, int64_t count, int64_t stride) {                   \
        A a = BEGIN;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            T v = p[i * stride];                                                                   \
            a = STEP;                                                                              \
        }                                                                                          \
        return (T)(END);                                                                           \
    }                                                                                              \
    LOOPS(name, suffix, T)
#define LOOPS(name, suffix, T)                                                                     \
    pith__fold_rows_fn pith__k_row_##name##_##suffix;                                              \
    void pith__k_row_##name##_##suffix(const void *x, void *y, int64_t rows, int64_t n) {          \
        for (int64_t r = 0; r < rows; r++)                                                         \
            ((T *)y)[r] = fold_##name##_##suffix((const T *)x + r * n, n, 1);                      \
    }                                                                                              \
    pith__fold_columns_fn pith__k_column_##name##_##suffix;                                        \
    void pith__k_column_##name##_##suffix(const void *x, void *y, int64_t rows, int64_t n,         \
                                          int64_t stride) {                                        \
        for (int64_t j = 0; j < n; j++)                                                            \
            ((T *)y)[j] = fold_##name##_##suffix((const T *)x + j, rows, stride);                  \
    }

#define NUMBERS(X, name)                                                                           \
    X(name, i32, int32_t, uint64_t)                                                                \
    X(name, u32, uint32_t, uint64_t)                                                               \
    X(name, i64, int64_t, uint64_t) X(name, u64, uint64_t, uint64_t) X(name, f64, double, double)
#define SUM(name, suffix, T, A) FOLD(name, suffix, T, A, 0, a + (A)v, a)
#define PROD(name, suffix, T, A) FOLD(name, suffix, T, A, 1, a *(A)v, a)
#define SUMSQ(name, suffix, T, A) FOLD(name, suffix, T, A, 0, a + (A)v * (A)v, a)
#define L1(name, suffix, T, A) FOLD(name, suffix, T, A, 0, v > 0 ? a + (A)v : a - (A)v, a)
NUMBERS(SUM, sum)
NUMBERS(PROD, prod)
NUMBERS(SUMSQ, sumsq)
NUMBERS(L1, l1)
FOLD(mean, i32, int32_t, int64_t, 0, a + v, count ? a / count : 0)
FOLD(mean, i64, int64_t, int64_t, 0, (int64_t)((uint64_t)a + (uint64_t)v), count ? a / count : 0)
FOLD(mean, u32, uint32_t, uint64_t, 0, a + v, count ? a / (uint64_t)count : 0)
FOLD(mean, u64, uint64_t, uint64_t, 0, a + v, count ? a / (uint64_t)count : 0)
FOLD(mean, f64, double, double, 0, a + v, a / (double)count)

#define ORDERED(X)                                                                                 \
    X(u8, uint8_t, 0, UINT8_MAX)                                                                   \
    X(i8, int8_t, INT8_MIN, INT8_MAX)                                                              \
    X(i32, int32_t, INT32_MIN, INT32_MAX)                                                          \
    X(u32, uint32_t, 0, UINT32_MAX)                                                                \
    X(i64, int64_t, INT64_MIN, INT64_MAX)                                                          \
    X(u64, uint64_t, 0, UINT64_MAX)                                                                \
    X(i16, int16_t, INT16_MIN, INT16_MAX) X(u16, uint16_t, 0, UINT16_MAX) X(bool, uint8_t, 0, 1)
#define MAX(suffix, T, low, high) FOLD(max, suffix, T, T, low, v > a ? v : a, a)
#define MIN(suffix, T, low, high) FOLD(min, suffix, T, T, high, v < a ? v : a, a)
ORDERED(MAX)
ORDERED(MIN)
FOLD(max, f64, double, double, -INFINITY, v > a || v != v ? v : a, a)
FOLD(min, f64, double, double, INFINITY, v < a || v != v ? v : a, a)

/* log(sum of exp(x)), relative to the largest, so that no exponential overflows. */
static double fold_log_sum_exp_f64(const double *p, int64_t count, int64_t stride) {
    double top = fold_max_f64(p, count, stride), sum = 0;
    if (isinf(top) || isnan(top)) return top;
    for (int64_t i = 0; i < count; i++) sum += exp(p[i * stride] - top);
    return top + log(sum);
}
LOOPS(log_sum_exp, f64, double)
