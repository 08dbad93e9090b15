/* Products with weights of 16 bits: the wide ones have the bits of the f32 product of the widened
 * weights on every level; the processor's own are near the exact sums, and the same for every
 * blocking. */
#include "support/kernel_test.h"

#include <math.h>

#include "base/half.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/gemm_half.h"

static float widened(float x) { return pith__f32_of_bf16(pith__bf16_of_f32(x)); }
static float widened_f16(float x) { return pith__f32_of_f16(pith__f16_of_f32(x)); }

/* b's k rows of n floats as panels of 16 bits. */
static void pack_half(guarded packed, const float *b, int dtype, int64_t k, int64_t n, int level) {
    float *panel = floats(16 * k);
    pith__gemm_pack_f32_fn *cut =
        PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, (pith__isa)level);
    pith__gemm_pack_half_fn *pack =
        PITH_KERNEL_FIND(pith__gemm_pack_half_fn, "gemm_pack", dtype, (pith__isa)level);
    for (int64_t j = 0; j < n; j += 16) {
        int64_t width = n - j < 16 ? n - j : 16;
        cut(panel, b + j, n, 1, k, width, 0, width);
        pack((char *)packed.data + j / 16 * pith__gemm_half_packed_size(k, 16), panel, k);
    }
    free(panel);
}

static void check_wide(int dtype, int64_t m, int64_t n, int64_t k) {
    int64_t lda = k + random_below(3), ldc = n + random_below(3), a_size = (m - 1) * lda + k;
    int64_t c_size = (m - 1) * ldc + n;
    guarded a = guarded_floats(a_size), c = guarded_floats(c_size), bias = guarded_floats(n),
            b = guarded_floats(k * n);
    guarded packed = guarded_alloc((size_t)pith__gemm_half_packed_size(k, n), 1);
    float *expected = floats(c_size), *b32 = floats(pith__gemm_f32_packed_size(k, n));
    for (int64_t i = 0; i < k * n; i++) {
        float *value = (float *)b.data + i;
        *value = dtype == PITH_F16 ? widened_f16(*value) : widened(*value);
    }
    PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, PITH_ISA_scalar)
    (b32, b.data, n, 1, k, n, 0, n);
    pith__gemm plain = { .a = a.data,
                         .b = b32,
                         .c = expected,
                         .bias = bias.data,
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = lda,
                         .ldc = ldc,
                         .activation = n % 2 ? PITH_ACT_GELU_ERF : PITH_ACT_NONE };
    PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, PITH_ISA_scalar)(&plain, 0, m, 0, n);
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        pack_half(packed, b.data, dtype, k, n, level);
        pith__gemm_half g = { .a = a.data,
                              .b = packed.data,
                              .c = c.data,
                              .bias = bias.data,
                              .m = m,
                              .n = n,
                              .k = k,
                              .lda = lda,
                              .ldc = ldc,
                              .activation = plain.activation };
        pith__gemm_half_fn *fn =
            PITH_KERNEL_FIND(pith__gemm_half_fn, "gemm", dtype, (pith__isa)level);
        /* what another level left is no result */
        for (int64_t i = 0; i < c_size; i++) ((float *)c.data)[i] = NAN;
        gemm_in_parts(fn, &g, m, n);
        for (int64_t i = 0; i < m; i++) {
            assert_same_floats((float *)c.data + i * ldc, expected + i * ldc, n,
                               "%s m=%d n=%d k=%d", pith__isa_name((pith__isa)level), (int)m,
                               (int)n, (int)k);
        }
    }
    free(expected), free(b32);
    guarded_free(a), guarded_free(b), guarded_free(c), guarded_free(bias), guarded_free(packed);
}

static void test_wide(void **state) {
    static const int dtypes[] = { PITH_F16, PITH_BF16 };
    (void)state;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        for (int64_t n = 1; n <= 50; n++)
            check_wide(dtypes[i], 1 + n % 27, n, 1 + random_below(40));
        check_wide(dtypes[i], 29, 70, 1000);
        check_wide(dtypes[i], 40, 33, 257);
    }
}

static void check_own(const char *family, uint32_t feature, int64_t m, int64_t n, int64_t k) {
    if (!level_usable(PITH_ISA_avx512) || !(pith__cpu_get()->features & feature)) return;
    /* gemm_dp takes rows of whole pairs */
    const bool pairs = strcmp(family, "gemm_dp") == 0;
    const int64_t row_size = pairs ? k + k % 2 : k,
                  lda = row_size + (pairs ? 2 : 1) * random_below(3);
    guarded a = guarded_alloc((size_t)((m - 1) * lda + row_size) * 2, 1), c = guarded_floats(m * n),
            b = guarded_floats(k * n);
    guarded packed = guarded_alloc((size_t)pith__gemm_half_packed_size(k, n), 1);
    float *first = floats(m * n);
    uint16_t *rows = a.data;
    for (int64_t i = 0; i < (m - 1) * lda + row_size; i++)
        rows[i] = pith__bf16_of_f32(random_float());
    for (int64_t i = 0; i < m && row_size > k; i++) rows[i * lda + k] = 0;
    for (int64_t i = 0; i < k * n; i++) ((float *)b.data)[i] = widened(((float *)b.data)[i]);
    pack_half(packed, b.data, PITH_BF16, k, n, PITH_ISA_avx512);
    pith__gemm_half g = {
        .a = a.data, .b = packed.data, .c = c.data, .m = m, .n = n, .k = k, .lda = lda, .ldc = n
    };
    pith__gemm_half_fn *fn =
        PITH_KERNEL_FIND(pith__gemm_half_fn, family, PITH_BF16, PITH_ISA_avx512);
    fn(&g, 0, m, 0, n);
    memcpy(first, c.data, (size_t)(m * n) * sizeof *first);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < k; l++) {
                double p =
                    (double)pith__f32_of_bf16(rows[i * lda + l]) * ((float *)b.data)[l * n + j];
                sum += p, size += fabs(p);
            }
            assert_true(fabs(sum - first[i * n + j]) <= size * (double)k * 0x1p-23 + 1e-30);
        }
    }
    for (int64_t i = 0; i < m * n; i++) ((float *)c.data)[i] = NAN;
    gemm_in_parts(fn, &g, m, n);
    assert_memory_equal(first, c.data, (size_t)(m * n) * sizeof *first);
    free(first);
    guarded_free(a), guarded_free(b), guarded_free(c), guarded_free(packed);
}

static void test_own(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 50; n++) {
        check_own("gemm_dp", PITH_CPU_AVX512_BF16, 1 + n % 27, n, 1 + random_below(80));
        check_own("gemm_amx", PITH_CPU_AMX_BF16, 1 + n % 37, n, 1 + random_below(80));
    }
    check_own("gemm_dp", PITH_CPU_AVX512_BF16, 70, 150, 9001); /* sums of k in parts */
    /* blocks of rows that overlap, groups of columns */
    check_own("gemm_amx", PITH_CPU_AMX_BF16, 70, 150, 500);
}

static void test_round(void **state) {
    (void)state;
    for (int64_t n = 0; n < 200; n++) {
        guarded x = guarded_floats(n), y = guarded_alloc((size_t)n * 2, 1),
                wide = guarded_floats(n);
        fill_floats(x.data, n);
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            PITH_KERNEL_FIND(pith__round_bf16_fn, "to_bf16", PITH_BF16, (pith__isa)level)
            (x.data, y.data, n);
            PITH_KERNEL_FIND(pith__round_bf16_fn, "to_bf16", PITH_F32, (pith__isa)level)
            (x.data, wide.data, n);
            for (int64_t i = 0; i < n; i++) {
                float expected = widened(((float *)x.data)[i]);
                assert_true(same_float(pith__f32_of_bf16(((uint16_t *)y.data)[i]), expected));
                assert_true(same_float(((float *)wide.data)[i], expected));
            }
        }
        guarded_free(x), guarded_free(y), guarded_free(wide);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
