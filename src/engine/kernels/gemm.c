/* gemm.c - sizes of packed matrices, and which 8-bit, 4-bit or bf16 matmul a CPU runs. */
#include <string.h>

#include "engine/kernels/gemm_blocks.h"
#include "engine/kernels/gemm_half.h"
#include "engine/kernels/gemm_int8.h"

#include "base/checked.h"
#include "base/piece_listener.h"

int64_t pith__gemm_f32_packed_size(int64_t k, int64_t n) {
    int64_t columns, size;
    if (k < 0 || n < 0 || pith__add_overflows(n, PITH_GEMM_PANEL - 1, &columns)) return -1;
    columns -= columns % PITH_GEMM_PANEL;
    return pith__mul_overflows(columns, k, &size) ? -1 : size;
}

int64_t pith__gemm_int8_packed_size(int64_t k, int64_t n) {
    int64_t columns, depth, size;
    if (k < 0 || n < 0 || pith__add_overflows(n, PITH_GEMM_PANEL - 1, &columns) ||
        pith__add_overflows(k, 3 + 4, &depth)) {
        return -1;
    }
    /* 4 bytes more per column: its sum. */
    return pith__mul_overflows(columns / PITH_GEMM_PANEL * PITH_GEMM_PANEL, depth / 4 * 4, &size)
               ? -1
               : size;
}

int64_t pith__gemm_half_packed_size(int64_t k, int64_t n) {
    int64_t columns, size;
    if (k < 0 || n < 0 || k == INT64_MAX || pith__add_overflows(n, PITH_GEMM_PANEL - 1, &columns))
        return -1;
    columns -= columns % PITH_GEMM_PANEL;
    return pith__mul_overflows(columns, (k + 1) / 2 * 4, &size) ? -1 : size;
}

/* The families, with blanks between them, that processors choose from. */
static void gemm_tell(const char *families, int dtype) {
    while (*families) {
        char family[32];
        size_t size = strcspn(families, " ");
        memcpy(family, families, size);
        family[size] = 0;
        (void)pith__kernel_find(family, dtype, PITH_ISA_scalar);
        families += size + strspn(families + size, " ");
    }
}

const char *pith__gemm_bf16_family(int *wide, pith__isa isa) {
    uint32_t features = isa == PITH_ISA_avx512 ? pith__cpu_get()->features : 0;
    if (pith__piece_heard()) gemm_tell("gemm_amx gemm_dp gemm", PITH_BF16);
    const char *family = "gemm";
    if (features & PITH_CPU_FAST_BF16) family = "gemm_dp";
    if (features & PITH_CPU_AMX_BF16) family = "gemm_amx";
    *wide = strcmp(family, "gemm") == 0;
    return family;
}

/* A kernel of one level whose processor needs a feature, its speed as a multiple of f32's, and the
 * least k for which it has that. */
typedef struct gemm_choice {
    const char *family;
    pith__isa isa;
    uint32_t feature;
    int speed;
    int64_t least;
} gemm_choice;

/* The first of the choices that this build has and this processor runs at the level, else the plain
 * one, twice as fast as f32. speed may be NULL. */
static pith__kernel_fn *gemm_choose(const gemm_choice *choices, size_t count, const char *plain,
                                    int dtype, int64_t k, pith__isa isa, int *speed) {
    for (size_t i = 0; i < count; i++) {
        if (choices[i].isa != isa || !(pith__cpu_get()->features & choices[i].feature) ||
            k < choices[i].least)
            continue;
        pith__kernel_fn *fn = pith__kernel_find(choices[i].family, dtype, isa);
        if (fn && speed) *speed = choices[i].speed;
        if (fn) return fn;
    }
    if (speed) *speed = 2;
    return pith__kernel_find(plain, dtype, isa);
}

/* Below 64 k the tiles of AMX would multiply mostly zeros, since a step takes 64. The speeds are
 * rough multiples of f32's; callers share a matmul among threads by them, and no result depends on
 * them. */
pith__gemm_i8_fn *pith__gemm_i8_find(int *speed, int64_t k, pith__isa isa) {
    static const gemm_choice choices[] = {
        { "gemm_amx", PITH_ISA_avx512, PITH_CPU_AMX_INT8, 10, 64 },
        { "gemm_vnni", PITH_ISA_avx512, PITH_CPU_AVX512_VNNI, 3, 0 },
        { "gemm_vnni", PITH_ISA_avx2, PITH_CPU_AVX_VNNI, 3, 0 },
    };
    if (pith__piece_heard()) gemm_tell("gemm_amx gemm_vnni gemm", PITH_I8);
    return (pith__gemm_i8_fn *)gemm_choose(choices, sizeof choices / sizeof *choices, "gemm",
                                           PITH_I8, k, isa, speed);
}

pith__gemm_blocks_fn *pith__gemm_blocks_find(int *speed, pith__isa isa) {
    static const gemm_choice choices[] = {
        { "gemm_blocks_vnni", PITH_ISA_avx512, PITH_CPU_AVX512_VNNI, 3, 0 },
        { "gemm_blocks_vnni", PITH_ISA_avx2, PITH_CPU_AVX_VNNI, 3, 0 },
    };
    if (pith__piece_heard()) gemm_tell("gemm_blocks_vnni gemm_blocks", PITH_U8);
    return (pith__gemm_blocks_fn *)gemm_choose(choices, sizeof choices / sizeof *choices,
                                               "gemm_blocks", PITH_U8, 0, isa, speed);
}
