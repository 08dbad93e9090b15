/* test_embed_golden.c - all-MiniLM-L6-v2 on 300 texts against sentence-transformers: from
 * safetensors and from two ONNX files (made by tests/embed/onnx_dirs.sh). */
#include <math.h>

#include "support/embed_test.h"

static golden g;

static int open_golden(void **state) {
    (void)state;
    golden_open(&g);
    return 0;
}

static int close_golden(void **state) {
    (void)state;
    golden_close(&g);
    return 0;
}

static void check(const char *path) {
    static float got[GOLDEN][DIM];
    pith_model *model = open_model(path);
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_embed_stats stats = { 0 };
    options.stats = &stats;
    embed(got[0], model, g.texts, GOLDEN, &options);
    double worst = 0, least = 1, length = 0;
    uint64_t tokens = 0;
    for (int i = 0; i < GOLDEN; i++) {
        double ab = 0, aa = 0, bb = 0;
        for (int d = 0; d < DIM; d++) {
            double a = got[i][d], b = g.vectors[i][d];
            worst = fmax(worst, fabs(a - b));
            ab += a * b;
            aa += a * a;
            bb += b * b;
        }
        least = fmin(least, ab / sqrt(aa * bb));
        length = fmax(length, fabs(sqrt(aa) - 1));
        tokens += (uint64_t)g.tokens[i];
    }
    print_message("%s: largest difference %.3g, least cosine %.9f, length off by %.3g\n", path,
                  worst, least, length);
    assert_true(worst <= 2e-6);
    assert_true(least >= 0.999999);
    assert_true(length <= 2e-7);
    assert_int_equal(stats.texts, GOLDEN);
    assert_int_equal(stats.tokens, tokens);
    assert_int_equal(stats.padded_tokens, 0);
    assert_int_equal(stats.truncated, 1);
    assert_true(stats.peak_bytes > 0);
    pith_model_close(model);
}

static void test_safetensors(void **state) {
    (void)state;
    check("all-MiniLM-L6-v2");
}

static void test_onnx(void **state) {
    (void)state;
    check(PITH_BINARY_DIR "/onnx-dirs/plain");
}

static void test_onnx_fused(void **state) {
    (void)state;
    check(PITH_BINARY_DIR "/onnx-dirs/fused");
}

/* The optimised graph against the one as written, through the whole embedder. */
static void test_levels(void **state) {
    (void)state;
    enum { FEW = 20 };
    static float got[FEW][DIM];
    pith_error err = PITH_ERROR_INIT;
    for (int level = 0; level < 3; level++) {
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
        pith_model *model = NULL;
        if (pith_model_open(&model, "all-MiniLM-L6-v2", &options, &err))
            fail_msg("%s", err.message);
        embed(got[0], model, g.texts, FEW, NULL);
        for (int i = 0; i < FEW; i++)
            for (int d = 0; d < DIM; d++) assert_true(fabsf(got[i][d] - g.vectors[i][d]) <= 2e-6f);
        pith_model_close(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_onnx),
        cmocka_unit_test(test_onnx_fused),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
