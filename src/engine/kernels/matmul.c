/* matmul.c - see matmul.h. Rows of b are added one after another, so that memory is read in order
 * when b_column is 1. */
#include "engine/kernels/matmul.h"

#include <string.h>

#define MATMUL(name, T, A)                                                                         \
    pith__matmul_fn name;                                                                          \
    void name(const pith__matmul *p, int64_t m0, int64_t m1) {                                     \
        const T *a = p->a, *b = p->b;                                                              \
        for (int64_t i = m0; i < m1; i++) {                                                        \
            T *c = (T *)p->c + i * p->n;                                                           \
            memset(c, 0, (size_t)p->n * sizeof(T));                                                \
            for (int64_t k = 0; k < p->k; k++) {                                                   \
                A v = (A)a[i * p->a_row + k * p->a_column];                                        \
                const T *row = b + k * p->b_row;                                                   \
                for (int64_t j = 0; j < p->n; j++)                                                 \
                    c[j] = (T)((A)c[j] + v * (A)row[j * p->b_column]);                             \
            }                                                                                      \
        }                                                                                          \
    }
MATMUL(pith__matmul_any_f64, double, double)
MATMUL(pith__k_matmul_i32, int32_t, uint32_t)
MATMUL(pith__k_matmul_u32, uint32_t, uint32_t)
MATMUL(pith__k_matmul_i64, int64_t, uint64_t)
MATMUL(pith__k_matmul_u64, uint64_t, uint64_t)
