/* The f32 product at every level: equal bits to the definition in gemm.h, at any size, stride,
 * epilogue and split. */
#include "support/kernel_test.h"

#include <math.h>

#include "engine/kernels/gemm.h"
#include "engine/kernels/matmul.h"
#include "engine/kernels/unary.h"

static const char *const activation_families[] = { NULL,   "gelu",    "gelu_tanh", "relu",
                                                   "tanh", "sigmoid", "silu",      "quick_gelu" };

/* The definition, one element after the other; the activation by the scalar kernel. */
static float element(const pith__gemm *g, const float *b, int64_t i, int64_t j) {
    float sum = 0.0f;
    for (int64_t k = 0; k < g->k; k++) sum = fmaf(g->a[i * g->lda + k], b[k * g->n + j], sum);
    if (g->bias) sum += g->bias[j];
    if (g->activation != PITH_ACT_NONE) {
        PITH_KERNEL_FIND(pith__unary_f32_fn, activation_families[g->activation], PITH_F32,
                         PITH_ISA_scalar)
        (&sum, &sum, 1);
    }
    return sum;
}

static void check_with(pith__gemm_activation activation, int64_t m, int64_t n, int64_t k) {
    int64_t lda = k + random_below(3), ldc = n + random_below(3);
    float *b = floats(k * n), *expected = floats(m * ldc);
    guarded a = guarded_floats(m > 0 ? (m - 1) * lda + k : 0),
            packed = guarded_floats(pith__gemm_f32_packed_size(k, n));
    guarded bias = guarded_floats(n);
    int64_t c_size = m > 0 ? (m - 1) * ldc + n : 0;
    guarded c_guarded = guarded_floats(c_size);
    float *c = c_guarded.data;

    pith__gemm g = {
        .a = a.data, .b = packed.data, .c = c, .m = m, .n = n, .k = k, .lda = lda, .ldc = ldc
    };
    if (random_below(2)) g.bias = bias.data;
    g.activation = activation;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) expected[i * ldc + j] = element(&g, b, i, j);
    }
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        pith__gemm_pack_f32_fn *pack =
            PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, (pith__isa)level);
        pith__gemm_f32_fn *gemm =
            PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, (pith__isa)level);
        int64_t half = n / 32 * 16;
        pack(packed.data, b, n, 1, k, n, half, n);
        pack(packed.data, b, n, 1, k, n, 0, half);
        for (int64_t i = 0; i < c_size; i++) c[i] = 7.0f;
        gemm_in_parts(gemm, &g, m, n);
        for (int64_t i = 0; i < m; i++) {
            assert_same_floats(c + i * ldc, expected + i * ldc, n, "%s m=%d n=%d k=%d row %d",
                               pith__isa_name((pith__isa)level), (int)m, (int)n, (int)k, (int)i);
            for (int64_t j = n; i + 1 < m && j < ldc; j++) assert_true(c[i * ldc + j] == 7.0f);
        }
    }
    free(b), free(expected);
    guarded_free(a), guarded_free(packed), guarded_free(bias), guarded_free(c_guarded);
}

static void check(int64_t m, int64_t n, int64_t k) {
    check_with((pith__gemm_activation)random_below(7), m, n, k);
}

static void test_small(void **state) {
    (void)state;
    for (int64_t m = 0; m <= 31; m++) {
        for (int64_t n = 0; n <= 67; n += n < 18 || n > 46 ? 1 : 7) check(m, n, random_below(6));
    }
}

static void test_random(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) check(random_below(90), random_below(130), random_below(200));
    check(200, 40, 700); /* more than one block of rows */
    check(3, 33, 3000);
    check(150, 40, 5000); /* blocks of rows and of k */
}

/* A single row goes by groups of panels, and by larger ones if the matrix lies in memory. */
static void test_row(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) check(1, random_below(300), random_below(200));
    const size_t l3 = pith__cpu_get()->l3;
    if (l3 > (size_t)128 << 20) return; /* a matrix of half of it would take too long */
    const int64_t k = 512, n = (int64_t)(l3 / 2 / sizeof(float)) / k + 16 * 8 + 35;
    float *a = floats(k), *b = floats(k * n), *packed = floats(pith__gemm_f32_packed_size(k, n)),
          *c = floats(n), *expected = floats(n);
    pith__gemm g = { .a = a, .b = packed, .c = c, .m = 1, .n = n, .k = k, .lda = k, .ldc = n };
    for (int64_t j = 0; j < n; j++) expected[j] = element(&g, b, 0, j);
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, (pith__isa)level)
        (packed, b, n, 1, k, n, 0, n);
        PITH_KERNEL_FIND(pith__gemm_f32_fn, "gemm", PITH_F32, (pith__isa)level)(&g, 0, 1, 0, n);
        assert_same_floats(c, expected, n, "%s, a row of %d", pith__isa_name((pith__isa)level),
                           (int)n);
    }
    free(a), free(b), free(packed), free(c), free(expected);
}

/* GELU of a tile is taken while the next one is computed: with fewer turns of k than vectors wait,
 * and more, behind tiles of other heights and widths, and across blocks of rows. */
static void test_gelu(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        check_with(PITH_ACT_GELU_ERF, 8 + random_below(60),
                   32 + random_below(3) * 16 + random_below(100), random_below(240));
    }
    check_with(PITH_ACT_GELU_ERF, 75, 288, 384);
    check_with(PITH_ACT_GELU_ERF, 400, 96, 1100);
    check_with(PITH_ACT_GELU_ERF, 66, 40, 9000); /* k is cut */
}

/* Any strides of the source give the same packed bytes: panels of 16 columns, k-major, zeros at the
 * end. */
static void test_pack(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        int64_t k = random_below(70), n = random_below(70), size = pith__gemm_f32_packed_size(k, n),
                rs, cs;
        switch (round % 3) {
        case 0: rs = 1, cs = k + random_below(3); break;
        case 1: cs = 1, rs = n + random_below(3); break;
        default: cs = 2, rs = 2 * n + 1; break;
        }
        guarded b_guarded = guarded_floats(k > 0 && n > 0 ? (k - 1) * rs + (n - 1) * cs + 1 : 0);
        const float *b = b_guarded.data;
        float *expected = floats(size);
        for (int64_t i = 0; i < size; i++) {
            int64_t column = i / (16 * k) * 16 + i % 16, row = i / 16 % k;
            expected[i] = column < n ? b[row * rs + column * cs] : 0.0f;
        }
        for (int level = 0; level < PITH_ISA_COUNT; level++) {
            if (!level_usable(level)) continue;
            pith__gemm_pack_f32_fn *pack =
                PITH_KERNEL_FIND(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, (pith__isa)level);
            guarded packed = guarded_floats(size);
            pack(packed.data, b, rs, cs, k, n, 0, n);
            assert_same_floats((float *)packed.data, expected, size, "%s k=%d n=%d",
                               pith__isa_name((pith__isa)level), (int)k, (int)n);
            guarded_free(packed);
        }
        guarded_free(b_guarded);
        free(expected);
    }
    assert_int_equal(pith__gemm_f32_packed_size(-1, 4), -1);
    assert_int_equal(pith__gemm_f32_packed_size(INT64_MAX / 16, 17), -1);
    assert_int_equal(pith__gemm_f32_packed_size(3, INT64_MAX), -1);
}

/* f64: products rounded, then added, in the order of k; rows in two parts. Guarded memory lies
 * behind the operands. */
static void check_f64(int64_t m, int64_t n, int64_t k) {
    guarded a = guarded_floats(2 * m * k), b = guarded_floats(2 * n * k),
            c = guarded_floats(2 * m * n);
    double *x = (void *)a.data, *y = (void *)b.data, *to = (void *)c.data;
    double *expected = calloc((size_t)(m * n) + 1, sizeof *expected);
    for (int64_t i = 0; i < m * k; i++) x[i] = (double)random_float() * 1.00000000123;
    for (int64_t i = 0; i < n * k; i++) y[i] = (double)random_float() * 1.00000000123;
    for (int64_t i = 0; i < m * n; i++)
        for (int64_t l = 0; l < k; l++) {
            volatile double product = x[i / n * k + l] * y[l * n + i % n];
            expected[i] += product;
        }
    const pith__matmul p = { x, y, to, n, k, k, 1, n, 1 };
    for (int level = 0; level < PITH_ISA_COUNT; level++) {
        if (!level_usable(level)) continue;
        pith__matmul_fn *matmul =
            PITH_KERNEL_FIND(pith__matmul_fn, "matmul", PITH_F64, (pith__isa)level);
        for (int64_t i = 0; i < m * n; i++) to[i] = 7;
        matmul(&p, m / 3, m);
        matmul(&p, 0, m / 3);
        if (m * n > 0 && memcmp(to, expected, (size_t)(m * n) * sizeof *to) != 0)
            fail_msg("%s m=%d n=%d k=%d", pith__isa_name((pith__isa)level), (int)m, (int)n, (int)k);
    }
    free(expected);
    guarded_free(a), guarded_free(b), guarded_free(c);
}

static void test_f64(void **state) {
    (void)state;
    for (int64_t m = 0; m <= 14; m++)
        for (int64_t n = 0; n <= 70; n += n < 18 ? 1 : 5) check_f64(m, n, random_below(6));
    for (int i = 0; i < 30; i++) check_f64(random_below(40), random_below(300), random_below(90));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small), cmocka_unit_test(test_random), cmocka_unit_test(test_row),
        cmocka_unit_test(test_gelu),  cmocka_unit_test(test_pack),   cmocka_unit_test(test_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
