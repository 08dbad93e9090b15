/* test_embed_precision.c - precisions other than f32: how near their vectors are, and that int8
 * gives the same bytes for every batch, order, number of threads and instruction set, bf16 for all
 * but the last.
 *
 * With an argument the program writes the int8 vectors of some short texts to that file: so it runs
 * itself under PITH_ISA. */
#include "base/os/cpu.h"
#include "support/embed_test.h"

enum { SHORT_TOKENS = 30, FEW = 16 };

static golden g;
static float vectors[GOLDEN][DIM], again[GOLDEN][DIM];
static pith_str few[FEW];
static int few_index[FEW];

static void open_texts(void) {
    int count = 0;
    golden_open(&g);
    for (int i = 0; i < GOLDEN && count < FEW; i++) {
        if (g.tokens[i] > SHORT_TOKENS) continue;
        few_index[count] = i;
        few[count++] = g.texts[i];
    }
    assert_int_equal(count, FEW);
}

static int setup(void **state) {
    (void)state;
    open_texts();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    golden_close(&g);
    return 0;
}

/* Fills vectors; least: the smallest cosine with the f32 vector allowed, mean: the smallest mean.
 */
static void check_quality(const pith_model *model, double least, double mean) {
    double sum = 0;
    embed(vectors[0], model, g.texts, GOLDEN, NULL);
    for (int i = 0; i < GOLDEN; i++) {
        double c = cosine(vectors[i], g.vectors[i]);
        if (!(c >= least)) fail_msg("text %d: cosine %f", i, c);
        sum += c;
    }
    print_message("mean cosine %f\n", sum / GOLDEN);
    assert_true(sum / GOLDEN >= mean);
}

/* One by one, in one call backwards, and on two threads. */
static void check_same(const pith_model *model) {
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_str backwards[FEW];
    options.call.threads = 1;
    for (int i = 0; i < FEW; i++) {
        embed(again[0], model, &few[i], 1, &options);
        assert_memory_equal(again[0], vectors[few_index[i]], sizeof again[0]);
        backwards[i] = few[FEW - 1 - i];
    }
    for (options.call.threads = 1; options.call.threads <= 3; options.call.threads += 2) {
        embed(again[0], model, backwards, FEW, &options);
        for (int i = 0; i < FEW; i++) {
            assert_memory_equal(again[i], vectors[few_index[FEW - 1 - i]], sizeof again[0]);
        }
    }
}

static void test_int8(void **state) {
    (void)state;
    pith_model *model = open_at(PITH_PRECISION_INT8);
    check_quality(model, 0.99, 0.998);
    check_same(model);
    pith_model_close(model);
}

static void test_int8_instruction_sets(void **state) {
    (void)state;
    static const char *const limits[] = { "scalar",          "avx2",  "avx2-vnni", "avx512-amx",
                                          "avx512-amx-vnni", "avx512" };
    pith_model *model = open_at(PITH_PRECISION_INT8);
    embed(vectors[0], model, few, FEW, NULL);
    pith_model_close(model);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        check_under_isa(limits[i], vectors, again, FEW);
}

static void test_bf16(void **state) {
    (void)state;
    pith_model *model = open_at(PITH_PRECISION_BF16);
    check_quality(model, 0.999, 0.9997);
    check_same(model);
    pith_model_close(model);
}

static void test_options(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model;
    options.precision = 17;
    assert_int_equal(pith_model_open(&model, "all-MiniLM-L6-v2", &options, &err),
                     PITH_ERR_ARGUMENT);
    options.precision = PITH_PRECISION_INT8;
    options.optimization = 1;
    assert_int_equal(pith_model_open(&model, "all-MiniLM-L6-v2", &options, &err),
                     PITH_ERR_ARGUMENT);
}

static int write_vectors(const char *path) {
    open_texts();
    pith_model *model = open_at(PITH_PRECISION_INT8);
    embed(again[0], model, few, FEW, NULL);
    pith_model_close(model);
    golden_close(&g);
    return save_vectors(path, again, FEW);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int8),
        cmocka_unit_test(test_int8_instruction_sets),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_options),
    };
    return argc > 1 ? write_vectors(argv[1]) : cmocka_run_group_tests(tests, setup, teardown);
}
