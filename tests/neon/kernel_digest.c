/* kernel_digest.c - a line per kernel and level with a digest of its output on fixed input, for comparing machines that
 * one program cannot run on both of. Levels must agree within a run too: exit status 1 if they do not. */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/kernel_families.h"
#include "base/cpu.h"
#include "kernels/attention.h"
#include "kernels/binary.h"
#include "kernels/gemm_half.h"
#include "kernels/gemm_int8.h"
#include "kernels/norm.h"
#include "kernels/quantize.h"
#include "kernels/reduce.h"
#include "kernels/rotary.h"
#include "kernels/small.h"
#include "kernels/taps.h"
#include "kernels/unary.h"

enum { N = 4099, M = 23, D = 40 };

#define LEVEL_FN(isa, family, suffix) [PITH_ISA_##isa] = (pith_kernel_fn *)pith_k_##family##_##suffix##_##isa,
const pith_kernel_row pith_kernel_table[] = {
#define KERNEL(family, suffix) { #family, PITH_SUFFIX_##suffix, { PITH_ISAS(LEVEL_FN, family, suffix) } },
#define PLAIN(family, suffix) /* plain C has no levels */
#include "select/kernels.def"
#undef KERNEL
#undef PLAIN
};
const size_t pith_kernel_table_count = COUNT(pith_kernel_table);

static float x[N * 2], y[N * 2], z[N * 2], packed[N * 4], out[N * 2];

static uint64_t digest(uint64_t h, const float *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0x7FC00000;
        if (v[i] == v[i]) memcpy(&bits, &v[i], sizeof bits);
        h = (h ^ bits) * 0x100000001B3u;
    }
    return h;
}

/* Quantised rows of x times y, by the 8-bit kernels. */
static void run_int8(int level, int round) {
    enum { K = 37 };
    static uint8_t q[M * K];
    static int8_t b[K * M];
    static float scale[M];
    static int32_t zero[M], at[M], extra[M], b_packed[(K + 8) * (M + 16)];
    pith_isa isa = (pith_isa)level;
    pith_quantize_rows rows = {
        .x = y, .q = q, .scale = scale, .zero = zero, .at = at, .extra = extra, .rows = M, .n = K, .ldx = K, .ldq = K
    };
    PITH_KERNEL_FIND(pith_quantize_rows_fn, "quantize_rows", PITH_U8, isa)(&rows);
    for (int i = 0; i < K * M; i++) b[i] = (int8_t)(z[i] * 127.0f);
    PITH_KERNEL_FIND(pith_gemm_pack_i8_fn, "gemm_pack", PITH_I8, isa)(b_packed, b, M, 1, K, M, 0, M);
    pith_gemm_int8 g = { .a = q,
                         .b = b_packed,
                         .out = out,
                         .a_scale = scale,
                         .a_zero = zero,
                         .a_at = at,
                         .a_extra = extra,
                         .b_scale = x + 50,
                         .bias = z,
                         .m = M,
                         .n = M,
                         .k = K,
                         .lda = K,
                         .ldc = M,
                         .a_signed = round % 2 };
    pith_gemm_i8_find(isa)(&g, 0, M, 0, M);
}

/* Numbers of 8 and 16 bits, and taps; false if it is none of them. */
static int run_small(const pith_kernel_row *row, pith_kernel_fn *f, int64_t n) {
    if (strcmp(row->family, "widen") == 0) {
        ((pith_widen_f16_fn *)f)((const uint16_t *)(const void *)x, out, (size_t)n);
    } else if (strcmp(row->family, "narrow") == 0) {
        static uint16_t halves[N];
        ((pith_narrow_f16_fn *)f)(y, halves, (size_t)n);
        for (int64_t i = 0; i < n; i++) out[i] = (halves[i] & 0x7FFF) > 0x7C00 ? 0.0f : (float)halves[i];
    } else if (strcmp(row->family, "quantize") == 0) {
        ((pith_quantize_fn *)f)(y, (uint8_t *)out, (size_t)n, 0.03f, -100, 155, 100);
        for (int64_t i = n - 1; i >= 0; i--) out[i] = (float)((uint8_t *)out)[i];
    } else if (strcmp(row->family, "dequantize") == 0) {
        ((pith_dequantize_fn *)f)((const uint8_t *)x, out, (size_t)n, 0.03f, 100);
    } else if (strcmp(row->family, "range") == 0) {
        ((pith_range_fn *)f)(x, (size_t)n, &out[0], &out[1]);
    } else if (strncmp(row->family, "taps", 4) == 0) {
        static const int64_t offsets[] = { 0, 1, 2, 100, 101, 102 };
        pith_taps a = {
            .x = x, .y = out, .offsets = offsets, .weights = y, .taps = 6, .rows = 3, .columns = n / 4, .step = 50
        };
        ((pith_taps_fn *)f)(&a);
    } else {
        return 0;
    }
    return 1;
}

/* 0 for a family whose signature is not known here. */
static uint64_t run(const pith_kernel_row *row, int level, int round) {
    pith_kernel_fn *f = row->fn[level];
    int64_t n = round < 20 ? round : N - round;
    memset(out, 0, sizeof out);
    if (LISTED(unary_families, row->family)) {
        ((pith_unary_f32_fn *)f)(x, out, (size_t)n);
    } else if (LISTED(binary_families, row->family)) {
        ((pith_binary_fn *)f)(out, x, y, n, round % 2, round / 2 % 2);
    } else if (LISTED(rows_families, row->family)) {
        ((pith_reduce_rows_fn *)f)(x, out, 2, n);
    } else if (LISTED(columns_families, row->family)) {
        ((pith_reduce_columns_fn *)f)(x, out, 3, n / 3, n / 3);
    } else if (LISTED(row_to_row_families, row->family)) {
        ((pith_row_f32_fn *)f)(x, out, 2, n);
    } else if (LISTED(norms_families, row->family)) {
        pith_layer_norm a = {
            .x = x, .residual = y, .gamma = z, .beta = y, .y = out, .rows = 2, .n = n, .epsilon = 1e-5f
        };
        ((pith_layer_norm_f32_fn *)f)(&a);
    } else if (run_small(row, f, n)) {
    } else if (row->dtype == PITH_I8 || row->dtype == PITH_U8) {
        run_int8(level, round);
    } else if (strcmp(row->family, "gemm_pack") == 0) {
        ((pith_gemm_pack_f32_fn *)f)(out, x, round % 2 ? 1 : M, round % 2 ? D : 1, D, M, 0, M);
    } else if (strcmp(row->family, "gemm") == 0) {
        pith_gemm g = { .a = y,
                        .b = packed,
                        .c = out,
                        .bias = z,
                        .residual = round % 3 ? z : NULL,
                        .m = 1 + round,
                        .n = M,
                        .k = D,
                        .lda = D,
                        .ldc = M,
                        .ldr = M,
                        .activation = (pith_activation)(round % 7) };
        pith_kernel_row pack = *row;
        for (size_t i = 0; i < COUNT(pith_kernel_table); i++) {
            if (strcmp(pith_kernel_table[i].family, "gemm_pack") == 0 && pith_kernel_table[i].dtype == PITH_F32)
                pack = pith_kernel_table[i];
        }
        ((pith_gemm_pack_f32_fn *)pack.fn[level])(packed, z, M, 1, D, M, 0, M);
        ((pith_gemm_f32_fn *)f)(&g, 0, g.m, 0, g.n);
    } else if (strcmp(row->family, "attention") == 0) {
        uint8_t mask[M];
        float *scratch = malloc((size_t)pith_attention_f32_scratch(M, D, D) * sizeof *scratch);
        for (int j = 0; j < M; j++) mask[j] = (uint8_t)(y[j] > -4.0f);
        pith_attention a = { .q = y,
                             .k = y + 7,
                             .v = z,
                             .o = out,
                             .q_stride = D,
                             .k_stride = D,
                             .v_stride = D,
                             .o_stride = D,
                             .queries = 17,
                             .keys = M,
                             .d = D,
                             .dv = D - round % 20,
                             .scale = 0.1f,
                             .key_mask = mask,
                             .causal_offset = round % 2 ? 6 : INT64_MAX,
                             .window_left = -1,
                             .window_right = -1 };
        if (scratch) ((pith_attention_f32_fn *)f)(&a, scratch);
        free(scratch);
    } else {
        return 0;
    }
    return digest(0xCBF29CE484222325u, out, COUNT(out));
}

int main(void) {
    const pith_cpu *cpu = pith_cpu_get();
    int different = 0;
    for (size_t i = 0; i < COUNT(pith_kernel_table); i++) {
        uint64_t sums[PITH_ISA_COUNT] = { 0 };
        for (int round = 0; round < 40; round++) {
            fill_floats(x, COUNT(x));
            for (size_t j = 0; j < COUNT(y); j++) y[j] = random_float() * 8.0f, z[j] = random_float();
            for (int level = 0; level < PITH_ISA_COUNT; level++) {
                if (cpu->supported >> level & 1)
                    sums[level] = sums[level] * 31 + run(&pith_kernel_table[i], level, round);
            }
        }
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!(cpu->supported >> level & 1)) continue;
            different |= sums[level] != sums[PITH_ISA_scalar];
            if (sums[level])
                printf("%s %s %016llx\n", pith_kernel_table[i].family, pith_isa_name((pith_isa)level),
                       (unsigned long long)sums[level]);
        }
    }
    return different;
}
