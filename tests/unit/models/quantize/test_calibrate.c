/* test_calibrate.c - weights of 8 bits rounded for the rows they meet: vectors come nearer to those
 * of f32, by the same bits everywhere, and what is saved is what was made. And the texts that are
 * made of a vocabulary.
 *
 * With an argument the program calibrates with a few texts and writes their vectors to that file:
 * so it runs itself under PITH_ISA. */
#include "support/embed_test.h"
#include "base/unicode/tokenizer_characters.h"
#include "base/unicode/utf8.h"
#include "models/hub/hub.h"
#include "models/quantize/made_up_texts.h"

enum { FEW = 6 };
static const pith_str few[FEW] = {
    { "a cat sat on the mat", 20 },
    { "how do I reset my password?", 27 },
    { "river", 5 },
    { "the engine of the old museum", 28 },
    { "signals, vectors and carbon", 27 },
    { "winter garden", 13 },
};

static golden g;
static float vectors[GOLDEN][DIM], again[GOLDEN][DIM];

static void calibrate(pith_model *model, const pith_calibrate_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_calibrate(model, options, &err)) fail_msg("%s", err.message);
}

static pith_calibrate_options with_few(void) {
    pith_calibrate_options options = PITH_CALIBRATE_OPTIONS_INIT;
    options.texts = few;
    options.text_count = FEW;
    return options;
}

/* 1 less the mean cosine with the vectors of f32. */
static double distance(const pith_model *model) {
    double sum = 0;
    embed(vectors[0], model, g.texts, GOLDEN, NULL);
    for (int i = 0; i < GOLDEN; i++) sum += 1 - cosine(vectors[i], g.vectors[i]);
    return sum / GOLDEN;
}

typedef struct shown {
    uint64_t calls, done, total;
} shown;

static void show(void *user, const char *what, uint64_t done, uint64_t total) {
    shown *s = user;
    assert_string_equal(what, "texts");
    assert_true(done > s->done && done <= total && (!s->calls || total == s->total));
    *s = (shown){ s->calls + 1, done, total };
}

typedef struct buffer {
    char *data;
    size_t size;
} buffer;

static int32_t make_room(void *user, uint64_t total) {
    buffer *b = user;
    b->data = aligned_alloc(64, (size_t)(total + 63) / 64 * 64);
    return !b->data;
}

static int32_t append(void *user, const void *data, size_t size) {
    buffer *b = user;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

/* The texts that nobody gave bring the vectors nearer, and a file that is saved holds the weights
 * both graphs use. */
static void test_vocabulary(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_calibrate_options options = PITH_CALIBRATE_OPTIONS_INIT;
    shown s = { 0, 0, 0 };
    buffer b = { NULL, 0 }, plain = { NULL, 0 };
    pith_model *model = open_at(PITH_PRECISION_INT8), *saved;
    double before = distance(model);
    if (pith_model_save(model, NULL, &(pith_writer){ append, make_room, &plain }, &err))
        fail_msg("%s", err.message);
    options.call.progress = show;
    options.call.user = &s;
    calibrate(model, &options);
    double after = distance(model);
    print_message("1 - mean cosine: %.2e to the nearest steps, %.2e calibrated\n", before, after);
    assert_true(after < 0.75 * before);
    assert_true(s.calls > 1 && s.done == s.total);
    if (pith_model_save(model, NULL, &(pith_writer){ append, make_room, &b }, &err))
        fail_msg("%s", err.message);
    assert_int_equal(b.size, plain.size);
    if (pith_model_open_memory(&saved, b.data, b.size, NULL, &err)) fail_msg("%s", err.message);
    embed(again[0], saved, g.texts, GOLDEN, NULL);
    assert_memory_equal(again, vectors, sizeof again);
    assert_int_equal(pith_model_calibrate(saved, NULL, &err), PITH_ERR_ARGUMENT);
    pith_model_close(saved);
    pith_model_close(model);
    free(b.data), free(plain.data);
}

static void test_instruction_sets(void **state) {
    (void)state;
    static const char *const limits[] = { "scalar", "avx2", "avx2-vnni", "avx512-amx" };
    const pith_calibrate_options options = with_few();
    pith_model *model = open_at(PITH_PRECISION_INT8);
    embed(again[0], model, few, FEW, NULL);
    calibrate(model, &options);
    embed(vectors[0], model, few, FEW, NULL);
    assert_memory_not_equal(again, vectors, sizeof again[0]);
    pith_model_close(model);
    const size_t first = getenv("PITH_TEST_LONG") ? 0 : 1; /* plain C takes half a minute */
    for (size_t i = first; i < sizeof limits / sizeof *limits; i++)
        check_under_isa(limits[i], vectors, again, FEW);
}

static void test_refusals(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    volatile int cancel = 1;
    pith_calibrate_options options = with_few();
    pith_model *model = open_at(PITH_PRECISION_F32);
    assert_int_equal(pith_model_calibrate(model, &options, &err), PITH_ERR_ARGUMENT);
    pith_model_close(model);
    model = open_at(PITH_PRECISION_INT8);
    options.call.cancel = &cancel;
    assert_int_equal(pith_model_calibrate(model, &options, &err), PITH_ERR_CANCELLED);
    options.call.cancel = NULL;
    options.call.size = 0;
    assert_int_equal(pith_model_calibrate(model, &options, &err), PITH_ERR_ARGUMENT);
    options = with_few();
    options.text_count = 0; /* no text: nothing is known of any product, so nothing changes */
    embed(vectors[0], model, few, FEW, NULL);
    calibrate(model, &options);
    embed(again[0], model, few, FEW, NULL);
    assert_memory_equal(again, vectors, FEW * sizeof again[0]);
    pith_model_close(model);
}

/* ---- the texts of a vocabulary ---- */

/* Counts the scripts of all texts; every text is valid. */
static size_t scripts_in(const pith_str *texts, size_t count) {
    bool seen[256] = { false };
    size_t scripts = 0;
    for (size_t i = 0; i < count; i++) {
        const char *p = texts[i].data, *end = p + texts[i].size;
        assert_true(texts[i].size > 0);
        assert_int_equal(pith__utf8_valid_prefix(p, texts[i].size), texts[i].size);
        while (p < end) {
            int script = pith__char_script(pith__utf8_next(&p));
            assert_in_range(script, 0, 255);
            if (script && !seen[script]) seen[script] = true, scripts++;
        }
    }
    return scripts;
}

/* Of a WordPiece vocabulary, a byte-level one and one with U+2581: several scripts, the same texts
 * again, and few of their tokens unknown. */
static void test_made_texts(void **state) {
    (void)state;
    static const struct {
        const char *file;
        size_t scripts;
    } cases[] = { { "all-MiniLM-L6-v2", 15 },
                  { PITH_TEST_DATA "/tokenizer_models/roberta.json", 1 },
                  { PITH_TEST_DATA "/tokenizer_models/xlm_roberta.json", 1 },
                  { PITH_TEST_DATA "/tokenizer_models/llama2.json", 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_error err = PITH_ERROR_INIT;
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_tokenizer *tokenizer;
        pith__arena arena;
        pith_str *texts, *twice, file;
        size_t count, twice_count;
        pith__arena_init(&arena, &pith__allocator_default);
        if (pith__hub_find(&file, cases[i].file, &arena, &err)) fail_msg("%s", err.message);
        if (pith__tokenizer_load(&tokenizer, file.data, &options, &arena, &err))
            fail_msg("%s", err.message);
        if (pith__made_up_texts(&texts, &count, tokenizer, &arena, &err))
            fail_msg("%s", err.message);
        print_message("%s: %zu texts in %zu scripts, like '" PITH_STR_FMT "'\n", cases[i].file,
                      count, scripts_in(texts, count), PITH_STR_ARG(texts[1]));
        assert_true(scripts_in(texts, count) >= cases[i].scripts);
        if (pith__made_up_texts(&twice, &twice_count, tokenizer, &arena, &err))
            fail_msg("%s", err.message);
        assert_int_equal(twice_count, count);
        for (size_t t = 0; t < count; t++) assert_true(pith__str_eq(texts[t], twice[t]));
        pith__tokenizer_unload(tokenizer);
        pith__arena_free(&arena);
    }
}

static int setup(void **state) {
    (void)state;
    golden_open(&g);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    golden_close(&g);
    return 0;
}

static int write_vectors(const char *path) {
    const pith_calibrate_options options = with_few();
    pith_model *model = open_at(PITH_PRECISION_INT8);
    calibrate(model, &options);
    embed(again[0], model, few, FEW, NULL);
    pith_model_close(model);
    return save_vectors(path, again, FEW);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_made_texts),
    };
    return argc > 1 ? write_vectors(argv[1]) : cmocka_run_group_tests(tests, setup, teardown);
}
