/* The 8-bit product at every level and by every way: the exact sums, and equal bits of what is made of them. */
#include "kernel_test.h"

#include <math.h>

#include "kernels/gemm_int8.h"

static int runnable(const char *family, int level) {
    uint32_t features = pith_cpu_get()->features;
    if (strcmp(family, "gemm_vnni") != 0 || level == PITH_ISA_scalar || level == PITH_ISA_neon) return 1;
    return (features & (level == PITH_ISA_avx512 ? PITH_CPU_AVX512_VNNI : PITH_CPU_AVX_VNNI)) != 0;
}

static void check(int64_t m, int64_t n, int64_t k, int is_signed, int narrow) {
    static const char *const ways[] = { "gemm", "gemm_vnni" };
    int64_t lda = k + random_below(3), ldc = n + random_below(3), a_size = m > 0 ? (m - 1) * lda + k : 0;
    int64_t c_size = m > 0 ? (m - 1) * ldc + n : 0;
    guarded a = guarded_alloc((size_t)a_size, (int)random_below(2));
    guarded b = guarded_alloc((size_t)(k * n), (int)random_below(2));
    guarded packed = guarded_alloc((size_t)pith_gemm_int8_packed_size(k, n), 1);
    guarded c = guarded_floats(c_size), out = guarded_floats(c_size), scale_a = guarded_floats(m),
            scale_b = guarded_floats(n);
    guarded zero = guarded_floats(m), bias = guarded_floats(n);
    int32_t *expected = calloc((size_t)(c_size + 1), sizeof *expected), *sums = calloc((size_t)(n + 1), sizeof *sums);
    float *first = floats(c_size);
    for (int64_t i = 0; i < a_size; i++) ((uint8_t *)a.data)[i] = random_below(4) ? (uint8_t)random_u32() : 255;
    for (int64_t i = 0; i < k * n; i++) {
        int32_t extreme = random_u32() & 1 ? -128 : 127, value = random_below(3) ? (int8_t)random_u32() : extreme;
        ((int8_t *)b.data)[i] = (int8_t)(narrow ? value / 2 : value);
    }
    for (int64_t i = 0; i < m; i++) ((int32_t *)zero.data)[i] = (int32_t)random_below(256);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t l = 0; l < k; l++) sums[j] += ((int8_t *)b.data)[l * n + j];
        for (int64_t i = 0; i < m; i++) {
            for (int64_t l = 0; l < k; l++) {
                int32_t x = is_signed ? ((int8_t *)a.data)[i * lda + l] : ((uint8_t *)a.data)[i * lda + l];
                expected[i * ldc + j] += x * ((int8_t *)b.data)[l * n + j];
            }
        }
    }
    pith_gemm_int8 g = { .a = a.data,
                         .b = packed.data,
                         .a_scale = scale_a.data,
                         .a_zero = zero.data,
                         .b_scale = scale_b.data,
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = lda,
                         .ldc = ldc,
                         .a_signed = is_signed,
                         .narrow = narrow };
    if (random_below(2)) g.bias = bias.data;
    if (random_below(2)) g.activation = PITH_ACT_GELU_ERF;
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        PITH_KERNEL_FIND(pith_gemm_pack_i8_fn, "gemm_pack", PITH_I8, (pith_isa)level)
        (packed.data, b.data, n, 1, k, n, 0, n);
        for (size_t way = 0; way < COUNT(ways); way++) {
            if (!runnable(ways[way], level)) continue;
            pith_gemm_i8_fn *fn = PITH_KERNEL_FIND(pith_gemm_i8_fn, ways[way], PITH_I8, (pith_isa)level);
            int64_t row = random_below(m + 1), half = n / 32 * 16;
            g.c = c.data;
            fn(&g, 0, row, 0, n);
            fn(&g, row, m, half, n);
            fn(&g, row, m, 0, half);
            g.c = NULL;
            g.out = out.data;
            fn(&g, 0, m, 0, n);
            for (int64_t i = 0; i < m; i++) {
                for (int64_t j = 0; j < n; j++) {
                    int32_t exact = expected[i * ldc + j];
                    if (((int32_t *)c.data)[i * ldc + j] != exact) {
                        fail_msg("%s %s m=%d n=%d k=%d signed=%d narrow=%d at %d, %d", ways[way],
                                 pith_isa_name((pith_isa)level), (int)m, (int)n, (int)k, is_signed, narrow, (int)i,
                                 (int)j);
                    }
                    float v = (float)(exact - ((int32_t *)zero.data)[i] * sums[j]) *
                              (((float *)scale_a.data)[i] * ((float *)scale_b.data)[j]);
                    if (g.bias) v += g.bias[j];
                    float y = ((float *)out.data)[i * ldc + j];
                    if (g.activation == PITH_ACT_NONE) assert_true(same_float(y, v));
                    if (level == 0 && way == 0) first[i * ldc + j] = y;
                    assert_true(same_float(y, first[i * ldc + j]));
                }
            }
        }
    }
    free(expected), free(sums), free(first);
    guarded_free(a), guarded_free(b), guarded_free(packed), guarded_free(c), guarded_free(out), guarded_free(scale_a);
    guarded_free(scale_b), guarded_free(zero), guarded_free(bias);
}

static void test_products(void **state) {
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        for (int narrow = 0; narrow < 2; narrow++) {
            for (int64_t n = 0; n <= 50; n++) check(1 + n % 27, n, random_below(40), is_signed, narrow);
            check(0, 20, 5, is_signed, narrow);
            check(29, 70, 1000, is_signed, narrow);
        }
    }
}

static void test_quantize(void **state) {
    (void)state;
    for (int64_t n = 1; n < 70; n++) {
        enum { ROWS = 3 };
        guarded x = guarded_floats(ROWS * n), q = guarded_alloc((size_t)(ROWS * n), 1);
        fill_floats(x.data, ROWS * n);
        uint8_t *first = malloc((size_t)(ROWS * n));
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            float scale[ROWS];
            int32_t zero[ROWS];
            if (!level_usable(level)) continue;
            PITH_KERNEL_FIND(pith_quantize_rows_fn, "quantize_rows", PITH_U8, (pith_isa)level)
            (x.data, q.data, scale, zero, ROWS, n);
            if (level == 0) memcpy(first, q.data, (size_t)(ROWS * n));
            assert_memory_equal(first, q.data, (size_t)(ROWS * n));
            for (int64_t i = 0; i < ROWS * n; i++) {
                float value = ((float *)x.data)[i], s = scale[i / n];
                if (!(fabsf(value) < 8.5f) || !(s < 1.0f)) continue; /* ordinary rows */
                assert_true(fabsf((float)(((uint8_t *)q.data)[i] - zero[i / n]) * s - value) <= 1.001f * s);
            }
        }
        free(first);
        guarded_free(x), guarded_free(q);
    }
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(pith_gemm_int8_packed_size(5, 17), 2 * (2 * 64 + 64));
    assert_int_equal(pith_gemm_int8_packed_size(0, 0), 0);
    assert_int_equal(pith_gemm_int8_packed_size(-1, 1), -1);
    assert_int_equal(pith_gemm_int8_packed_size(INT64_MAX / 8, 17), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
