/* gemm.c - sizes of packed matrices. */
#include "kernels/gemm.h"

#include "base/checked.h"

int64_t pith_gemm_f32_packed_size(int64_t k, int64_t n) {
    int64_t columns, size;
    if (k < 0 || n < 0 || pith_add_overflows(n, PITH_GEMM_PANEL - 1, &columns)) return -1;
    columns -= columns % PITH_GEMM_PANEL;
    return pith_mul_overflows(columns, k, &size) ? -1 : size;
}
