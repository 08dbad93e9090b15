/* test_late_modules.c - the module MultiVectorMask with the settings around it: the models of
 * tests/data/late_modules against the vectors of sentence-transformers in double precision, in
 * batches, with other threads, and from a compiled file. */
#include "support/encode_test.h"
#include "support/module_texts.h"

#define CASES_DIR PITH_TEST_DATA "/late_modules"
#define COMPILED PITH_BINARY_DIR "/late-module.pith"
enum { NUMBERS_MAX = 2048, LEVEL_MAX = 3 };

static const char *const names[] = { "fixed", "hidden", "least", "kept" };
/* Short vectors are scaled to length 1: the package itself, in float32, differs by up to 2.9e-6
 * from its doubles. */
static void check(const pith_token_rows *rows, const char *name, int role) {
    static float want[NUMBERS_MAX];
    char path[400];
    double worst = 0;
    snprintf(path, sizeof path, CASES_DIR "/%s/expected.%s.f32", name,
             role == PITH_ROLE_QUERY ? "query" : "document");
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(want, sizeof *want, NUMBERS_MAX, f);
    fclose(f);
    for (size_t i = 0; i < TEXTS; i++)
        if (rows->offsets[i + 1] - rows->offsets[i] != (int64_t)want[i])
            fail_msg("%s, role %d, text %zu: %lld vectors, not %g", name, role, i,
                     (long long)(rows->offsets[i + 1] - rows->offsets[i]), (double)want[i]);
    assert_int_equal(n, TEXTS + (size_t)rows->offsets[TEXTS] * rows->dim);
    for (size_t i = 0; i < n - TEXTS; i++)
        worst = fmax(worst, fabs((double)rows->vectors[i] - (double)want[TEXTS + i]));
    print_message("%s, role %d: %.2g\n", name, role, worst);
    if (!(worst <= 4e-6)) fail_msg("%s, role %d: differs by %g", name, role, worst);
}

static int32_t write_piece(void *file, const void *data, size_t size) {
    return fwrite(data, 1, size, file) != size;
}

static pith_model *compile(const pith_model *m) {
    pith_error err = PITH_ERROR_INIT;
    FILE *f = fopen(COMPILED, "wb");
    assert_non_null(f);
    if (pith_model_save(m, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
        fail_msg("%s", err.message);
    assert_int_equal(fclose(f), 0);
    return encode_open(COMPILED);
}

static void check_role(const pith_model *m, const pith_model *again, const char *name, int role) {
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    embed.call.threads = 3;
    embed.batch_tokens = 5;
    pith_encoded *one = encode_all(m, texts, TEXTS, PITH_ENCODE_MULTI_VECTOR, role, NULL);
    check(&one->multi_vector, name, role);
    pith_encoded *other = encode_all(m, texts, TEXTS, PITH_ENCODE_MULTI_VECTOR, role, &embed);
    encode_same_rows(&one->multi_vector, &other->multi_vector, TEXTS);
    pith_encoded_free(other);
    if (again) {
        other = encode_all(again, texts, TEXTS, PITH_ENCODE_MULTI_VECTOR, role, NULL);
        encode_same_rows(&one->multi_vector, &other->multi_vector, TEXTS);
        pith_encoded_free(other);
    }
    pith_encoded_free(one);
}

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[400];
        snprintf(path, sizeof path, CASES_DIR "/%s", names[i]);
        for (int level = 0; level <= LEVEL_MAX; level += LEVEL_MAX) {
            pith_open_options open = PITH_OPEN_OPTIONS_INIT;
            pith_error err = PITH_ERROR_INIT;
            pith_model *m = NULL;
            open.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            if (pith_model_open(&m, path, &open, &err)) fail_msg("%s: %s", path, err.message);
            pith_model *again = level ? compile(m) : NULL;
            for (int role = 0; role < 2; role++) check_role(m, again, names[i], role);
            if (again) pith_model_close(again);
            pith_model_close(m);
        }
    }
}

/* A prompt that the caller names goes before that of the role. */
static void test_prompt(void **state) {
    (void)state;
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    pith_model *m = encode_open(CASES_DIR "/fixed");
    embed.prompt_name = "query";
    embed.max_length = 16;
    pith_encoded *named =
        encode_all(m, texts, 1, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_DOCUMENT, &embed);
    /* [CLS] query : the cat sat on the mat [SEP] */
    assert_int_equal(named->multi_vector.offsets[1], 10);
    embed.prompt_name = "";
    pith_encoded *none =
        encode_all(m, texts, 1, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_DOCUMENT, &embed);
    assert_int_equal(none->multi_vector.offsets[1], 8);
    pith_encoded_free(named);
    pith_encoded_free(none);
    pith_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases),
                                        cmocka_unit_test(test_prompt) };
    return cmocka_run_group_tests(tests, read_texts, NULL);
}
