/* test_codes.c - rounding weights to codes: what the codes stand for, and what compensation gains.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/cpu.h"
#include "engine/kernels/kernel.h"
#include "engine/kernels/quantize.h"
#include "formats/export/weight_codes.h"

enum { K = 75, N = 37, ROWS = 400 };

static uint64_t seed = 1;

static float draw(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

typedef struct arenas {
    pith__arena result, scratch;
} arenas;

static void arenas_init(arenas *a) {
    pith__arena_init(&a->result, &pith__allocator_default);
    pith__arena_init(&a->scratch, &pith__allocator_default);
}

static void arenas_free(arenas *a) {
    pith__arena_free(&a->result);
    pith__arena_free(&a->scratch);
}

static float meaning(const pith__weight_codes *c, int64_t column, int64_t i) {
    const int64_t at = column * c->blocks + i / c->block;
    return ((float)c->codes[column * c->k + i] - (float)c->zeros[at]) * c->scales[at];
}

/* That no call makes. */
static const pith__graph plain_graph;

/* Every way: each number is at most a step from its own, and codes keep to their range. */
static void test_near(void **state) {
    (void)state;
    static float w[K * N];
    for (int i = 0; i < K * N; i++) w[i] = draw() * draw();
    w[0] = 3;                                           /* a block with one large number */
    for (int i = 32; i < 64; i++) w[i * N + 1] = 0;     /* a block of zeros */
    for (int i = 0; i < 32; i++) w[i * N + 2] = 1e-42f; /* a block whose scale has no inverse */
    static const pith__weight_code_form forms[] = { { 4, 16, true, 0 },  { 4, 32, false, 0 },
                                                    { 4, 0, true, 0 },   { 8, 32, true, 0 },
                                                    { 8, 64, false, 0 }, { 8, 0, true, 127 },
                                                    { 8, 0, true, 63 } };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int by_row = 0; by_row < 2; by_row++) {
            const pith__weight_code_form *form = &forms[f];
            pith__weight_code_source source = { w, by_row ? N : K, by_row ? K : N, by_row ? 1 : N,
                                                by_row ? N : 1 };
            pith__weight_codes c;
            arenas a;
            arenas_init(&a);
            assert_true(pith__weight_codes_round(&c, form, &source, NULL, &plain_graph, &a.result,
                                                 &a.scratch));
            for (int64_t j = 0; j < source.n; j++)
                for (int64_t i = 0; i < source.k; i++) {
                    const float x = w[i * source.row + j * source.column];
                    const int64_t at = j * c.blocks + i / c.block;
                    const float scale = fabsf(c.scales[at]);
                    const int q = c.codes[j * c.k + i], zero = c.zeros[at];
                    assert_true(q < 1 << form->bits);
                    if (form->symmetric) assert_int_equal(zero, 1 << (form->bits - 1));
                    if (form->reach)
                        assert_true(q >= zero - form->reach && q <= zero + form->reach);
                    /* the smallest scale that is tried is 0.6 of the one that reaches the largest
                     * number */
                    assert_true(fabsf(meaning(&c, j, i) - x) <=
                                (form->bits == 4 ? 6.0f : 1.01f) * scale + 1e-40f);
                }
            arenas_free(&a);
        }
}

/* The squared error of X W for the rows x. */
static double product_error(const pith__weight_codes *c, const float *w, const float *x) {
    double sum = 0;
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < N; j++) {
            double error = 0;
            for (int i = 0; i < K; i++)
                error += (double)x[r * K + i] * ((double)meaning(c, j, i) - (double)w[i * N + j]);
            sum += error * error;
        }
    return sum;
}

/* Rows of few directions: compensation halves the error of the product at least, and gives the same
 * codes each time. */
static void test_compensated(void **state) {
    (void)state;
    static float w[K * N], x[ROWS * K], u[K * 80], column[80], mix[8 * K];
    int32_t order[K];
    for (int i = 0; i < K * N; i++) w[i] = draw();
    for (int i = 0; i < 8 * K; i++) mix[i] = draw();
    for (int r = 0; r < ROWS; r++) {
        float parts[8];
        for (int d = 0; d < 8; d++) parts[d] = draw();
        for (int i = 0; i < K; i++) {
            x[r * K + i] = 0.1f * draw();
            for (int d = 0; d < 8; d++) x[r * K + i] += parts[d] * mix[d * K + i];
        }
    }
    assert_int_equal(pith__factor_stride(K), 80);
    for (int i = 0; i < K; i++) order[i] = K - 1 - i;
    for (int s = 0; s < K; s++)
        for (int t = s; t < K; t++) {
            double sum = s == t ? 0.01 : 0;
            for (int r = 0; r < ROWS; r++)
                sum += (double)x[r * K + order[s]] * (double)x[r * K + order[t]];
            u[s * 80 + t] = (float)sum;
        }
    assert_true(PITH_KERNEL_FIND(pith__unit_factor_fn, "unit_factor", PITH_F32,
                                 PITH_ISA_scalar)(u, K, column, NULL));
    const pith__factor factor = { u, order };
    const pith__weight_code_form form = { 4, 32, true, 0 };
    const pith__weight_code_source source = { w, K, N, N, 1 };
    pith__weight_codes plain, fitted, again;
    arenas a;
    arenas_init(&a);
    assert_true(pith__weight_codes_round(&plain, &form, &source, NULL, &plain_graph, &a.result,
                                         &a.scratch));
    assert_true(pith__weight_codes_round(&fitted, &form, &source, &factor, &plain_graph, &a.result,
                                         &a.scratch));
    assert_true(pith__weight_codes_round(&again, &form, &source, &factor, &plain_graph, &a.result,
                                         &a.scratch));
    assert_true(product_error(&fitted, w, x) < 0.5 * product_error(&plain, w, x));
    assert_memory_equal(fitted.codes, again.codes, K * N);
    assert_memory_equal(fitted.scales, plain.scales,
                        (size_t)(plain.n * plain.blocks) * sizeof(float));
    arenas_free(&a);
}

/* Low bits first; what lies behind the numbers is the zero point. */
static void test_packed(void **state) {
    (void)state;
    uint8_t codes[] = { 1, 2, 3, 15, 14, 13 }, zeros[] = { 8, 7, 5, 6 };
    const pith__weight_codes c = {
        .k = 3, .n = 2, .blocks = 2, .block = 2, .codes = codes, .zeros = zeros
    };
    size_t bytes;
    arenas a;
    arenas_init(&a);
    const uint8_t *packed = pith__weight_codes_pack(&bytes, &c, 4, 4, &a.result);
    assert_int_equal(bytes, 4);
    assert_memory_equal(packed, ((uint8_t[]){ 0x21, 0x73, 0xef, 0x6d }), 4);
    packed = pith__weight_codes_pack(&bytes, &c, 3, 8, &a.result);
    assert_int_equal(bytes, 6);
    assert_memory_equal(packed, codes, 6);
    packed = pith__weight_codes_pack_zeros(&bytes, &c, 4, &a.result);
    assert_int_equal(bytes, 2);
    assert_memory_equal(packed, ((uint8_t[]){ 0x78, 0x65 }), 2);
    packed = pith__weight_codes_pack_zeros(&bytes, &c, 8, &a.result);
    assert_int_equal(bytes, 4);
    assert_memory_equal(packed, zeros, 4);
    arenas_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_compensated),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
