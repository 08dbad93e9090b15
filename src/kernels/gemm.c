/* gemm.c - sizes of packed matrices, and which 8-bit product a processor runs. */
#include "kernels/gemm_int8.h"

#include "base/checked.h"

int64_t pith_gemm_f32_packed_size(int64_t k, int64_t n) {
    int64_t columns, size;
    if (k < 0 || n < 0 || pith_add_overflows(n, PITH_GEMM_PANEL - 1, &columns)) return -1;
    columns -= columns % PITH_GEMM_PANEL;
    return pith_mul_overflows(columns, k, &size) ? -1 : size;
}

int64_t pith_gemm_int8_packed_size(int64_t k, int64_t n) {
    int64_t columns, depth, size;
    if (k < 0 || n < 0 || pith_add_overflows(n, PITH_GEMM_PANEL - 1, &columns) ||
        pith_add_overflows(k, 3 + 4, &depth)) {
        return -1;
    }
    /* 4 bytes more per column: its sum. */
    return pith_mul_overflows(columns / PITH_GEMM_PANEL * PITH_GEMM_PANEL, depth / 4 * 4, &size) ? -1 : size;
}

pith_gemm_i8_fn *pith_gemm_i8_find(pith_isa isa) {
    uint32_t features = pith_cpu_get()->features;
    int vnni = isa == PITH_ISA_avx512 ? (features & PITH_CPU_AVX512_VNNI) != 0
                                      : isa == PITH_ISA_avx2 && (features & PITH_CPU_AVX_VNNI) != 0;
    pith_gemm_i8_fn *fn = vnni ? PITH_KERNEL_FIND(pith_gemm_i8_fn, "gemm_vnni", PITH_I8, isa) : NULL;
    return fn ? fn : PITH_KERNEL_FIND(pith_gemm_i8_fn, "gemm", PITH_I8, isa);
}
