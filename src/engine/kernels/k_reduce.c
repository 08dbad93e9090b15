/* k_reduce.c - the reductions of reduce.h. A reduction is a start, a step, a tree over lanes and an
 * end. */
#include "engine/kernels/reduce.h"

#include <math.h>

#include "engine/kernels/vec.h"

PITH_INLINE vf step_l1(vf sum, vf x) { return vf_add(sum, vf_abs(x)); }
PITH_INLINE vf step_sumsq(vf sum, vf x) { return vf_fma(x, x, sum); }

PITH_INLINE float tree_max(vf a) { return vm_any(vf_isnan(a)) ? NAN : vf_hmax(a); }
PITH_INLINE float tree_min(vf a) { return vm_any(vf_isnan(a)) ? NAN : vf_hmin(a); }

/* What remains to be done with the reduced value of n elements. */
PITH_INLINE vf all(vf x, int64_t n) {
    (void)n;
    return x;
}
PITH_INLINE vf mean(vf x, int64_t n) { return vf_div(x, vf_set1((float)n)); }

/* Vectors of columns that are reduced at a time, so that their chains of additions, of four cycles
 * each, overlap. More gain nothing, fewer wait. */
enum { COLUMNS = 4 };

#define REDUCE(name, start, step, tree, end)                                                       \
    void PITH_K(row_##name##_f32)(const float *x, float *y, int64_t rows, int64_t n) {             \
        for (int64_t r = 0; r < rows; r++, x += n) {                                               \
            vf sum = vf_set1(start);                                                               \
            int64_t i = 0;                                                                         \
            for (; n - i >= 16; i += 16) sum = step(sum, vf_load(x + i));                          \
            if (i < n) {                                                                           \
                sum = vf_select(vm_first((size_t)(n - i)),                                         \
                                step(sum, vf_load_n(x + i, (size_t)(n - i))), sum);                \
            }                                                                                      \
            vf_store_n(y + r, end(vf_set1(tree(sum)), n), 1);                                      \
        }                                                                                          \
    }                                                                                              \
    void PITH_K(column_##name##_f32)(const float *x, float *y, int64_t rows, int64_t n,            \
                                     int64_t stride) {                                             \
        int64_t j = 0;                                                                             \
        for (; n - j >= 16 * COLUMNS; j += 16 * COLUMNS) {                                         \
            vf sum[COLUMNS];                                                                       \
            PITH_UNROLL                                                                            \
            for (int c = 0; c < COLUMNS; c++) sum[c] = vf_set1(start);                             \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                PITH_UNROLL                                                                        \
                for (int c = 0; c < COLUMNS; c++)                                                  \
                    sum[c] = step(sum[c], vf_load(x + r * stride + j + 16 * c));                   \
            }                                                                                      \
            PITH_UNROLL                                                                            \
            for (int c = 0; c < COLUMNS; c++) vf_store(y + j + 16 * c, end(sum[c], rows));         \
        }                                                                                          \
        for (; j < n; j += 16) {                                                                   \
            size_t width = n - j < 16 ? (size_t)(n - j) : 16;                                      \
            vf sum = vf_set1(start);                                                               \
            for (int64_t r = 0; r < rows; r++)                                                     \
                sum = step(sum, vf_load_n(x + r * stride + j, width));                             \
            vf_store_n(y + j, end(sum, rows), width);                                              \
        }                                                                                          \
    }

REDUCE(l1, 0.0f, step_l1, vf_sum, all)
REDUCE(max, -INFINITY, vf_max_nan, tree_max, all)
REDUCE(mean, 0.0f, vf_add, vf_sum, mean)
REDUCE(min, INFINITY, vf_min_nan, tree_min, all)
REDUCE(sum, 0.0f, vf_add, vf_sum, all)
REDUCE(sumsq, 0.0f, step_sumsq, vf_sum, all)
