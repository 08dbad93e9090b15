/* test_embed_call.c - calls of many texts: windows, what the statistics count, what is finished
 * when a text fails, prompts, options out of range. */
#include "support/embed_test.h"

#define DIR PITH_BINARY_DIR "/embed-call"

enum { TEXTS = 2500, KINDS = 5, WIDTH = 32, WINDOW = 1024, LONG = 6, LONG_BYTES = 1 << 20 };
static const char *const kinds[KINDS] = { "a b c", "", "d", "a b c d a b c d", "ab ba" };
static const uint64_t tokens_of[KINDS] = { 5, 2, 3, 10, 6 }; /* with both specials */
static pith_str texts[TEXTS];
static float vectors[TEXTS * WIDTH], alone[KINDS][WIDTH];
static pith_model *model;
static pith_error err;

static void put_prompts(const char *text) {
    FILE *f = fopen(DIR "/config_sentence_transformers.json", "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int open_directory(void **state) {
    (void)state;
    network_directory(DIR, "bert-base-script17-sdpa", "null");
    put_prompts("{\"prompts\": {\"query\": \"d \", \"plain\": \"\"}}");
    if (pith_model_open(&model, DIR, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_embed_dim(model, NULL), WIDTH);
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(kinds[i % KINDS]);
    for (int i = 0; i < KINDS; i++) embed(alone[i], model, &texts[i], 1, NULL);
    return 0;
}

static int close_directory(void **state) {
    (void)state;
    pith_model_close(model);
    return 0;
}

/* Each text is computed and counted once, in windows and out of them. */
static void test_windows(void **state) {
    (void)state;
    static const size_t counts[] = { 1, 5, WINDOW - 1, WINDOW, WINDOW + 1, TEXTS };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int threads = 1; threads <= 3; threads++) {
            pith_embed_stats stats = {
                .texts = 1, .tokens = 2, .truncated = 3, .padded_tokens = 4, .texts_done = 5
            };
            pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
            uint64_t tokens = 2;
            options.call.threads = threads;
            options.stats = &stats;
            options.batch_tokens = threads == 2 ? 7 : 0; /* less than the longest text */
            memset(vectors, 0, sizeof vectors);
            embed(vectors, model, texts, counts[i], &options);
            for (size_t t = 0; t < counts[i]; t++) {
                assert_memory_equal(vectors + t * WIDTH, alone[t % KINDS], sizeof alone[0]);
                tokens += tokens_of[t % KINDS];
            }
            assert_int_equal(stats.texts, 1 + counts[i]);
            assert_int_equal(stats.tokens, tokens);
            assert_int_equal(stats.truncated, 3);
            assert_int_equal(stats.padded_tokens, 4);
            assert_int_equal(stats.texts_done, counts[i]);
            assert_true(stats.peak_bytes > 0);
        }
}

/* Texts with more tokens than max_length are counted; the specials are among the tokens. */
static void test_truncated(void **state) {
    (void)state;
    for (int32_t length = 2; length <= 11; length++) {
        pith_embed_stats stats = { 0 };
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        uint64_t tokens = 0, cut = 0;
        options.stats = &stats;
        options.max_length = length;
        assert_int_equal(pith_embed_max_length(model, &options), length);
        embed(vectors, model, texts, KINDS, &options);
        for (int k = 0; k < KINDS; k++) {
            tokens += tokens_of[k] < (uint64_t)length ? tokens_of[k] : (uint64_t)length;
            cut += tokens_of[k] > (uint64_t)length;
            if (tokens_of[k] <= (uint64_t)length)
                assert_memory_equal(vectors + k * WIDTH, alone[k], sizeof alone[0]);
        }
        assert_int_equal(stats.tokens, tokens);
        assert_int_equal(stats.truncated, cut);
    }
}

static void check_failure(const pith_str *all, size_t count, size_t bad, size_t done) {
    char says[32];
    snprintf(says, sizeof says, "text %zu:", bad);
    for (int threads = 1; threads <= 2; threads++) {
        pith_embed_stats stats = { .texts_done = 99999 };
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        options.stats = &stats;
        options.call.threads = threads;
        options.max_length = 4;
        assert_int_equal(pith_embed(vectors, model, all, count, &options, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
        assert_int_equal(stats.texts_done, done);
        assert_int_equal(stats.texts, done);
    }
}

/* Windows end after many texts and after many bytes; those before the failure are finished. */
static void test_failures(void **state) {
    (void)state;
    static const size_t bad[] = { 0, 7, WINDOW - 1, WINDOW, 2 * WINDOW + 40, TEXTS - 1 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pith_str good = texts[bad[i]];
        texts[bad[i]] = (pith_str){ "a\xff", 2 };
        check_failure(texts, TEXTS, bad[i], bad[i] / WINDOW * WINDOW);
        texts[bad[i]] = good;
    }
    char *bytes = malloc(LONG_BYTES);
    pith_str all[LONG];
    memset(bytes, ' ', LONG_BYTES);
    bytes[0] = 'a';
    for (int i = 0; i < LONG; i++) all[i] = (pith_str){ bytes, LONG_BYTES };
    all[LONG - 1] = (pith_str){ "\xff", 1 };
    check_failure(all, LONG, LONG - 1, 4); /* two mebibytes a window */
    free(bytes);
}

static void test_refused(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        pith_embed_stats stats = { .texts_done = 9 };
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        *(i == 0   ? &options.call.threads
          : i == 1 ? &options.max_length
                   : &options.batch_tokens) = -1;
        options.stats = &stats;
        assert_int_equal(pith_embed(vectors, model, texts, 1, &options, &err), PITH_ERR_ARGUMENT);
        assert_string_equal(err.message,
                            "threads, max_length and batch_tokens must not be negative");
        assert_int_equal(stats.texts_done, 0);
    }
}

static void refuse_prompt(const char *name, const char *says) {
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.prompt_name = name;
    assert_int_equal(pith_embed(vectors, model, texts, 1, &options, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, says);
}

#define NO_PROMPT "pith_embed_options.prompt_name: "

/* A prompt is text in front of the text; one that is not there is answered with as many as fit. */
static void test_prompts(void **state) {
    (void)state;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    static const pith_str with[] = { PITH_STR("d a b c"), PITH_STR("d ") };
    float wanted[2][WIDTH];
    embed(wanted[0], model, with, 2, NULL);
    options.prompt_name = "query";
    embed(vectors, model, texts, 2, &options);
    assert_memory_equal(vectors, wanted, sizeof wanted);
    options.prompt_name = "plain";
    embed(vectors, model, texts, 2, &options);
    assert_memory_equal(vectors, alone, sizeof wanted);
    refuse_prompt("nobody", NO_PROMPT "the model has no prompt 'nobody' (it has: query, plain)");
    pith_model_close(model);

    char text[4096] = "{\"prompts\": {",
         says[600] = NO_PROMPT "the model has no prompt 'x' (it has: ";
    for (int i = 0; i < 60; i++) {
        snprintf(text + strlen(text), 32, "%s\"name-%02d\": \"\"", i ? ", " : "", i);
        /* less than 300 bytes */
        if (i < 33) snprintf(says + strlen(says), 32, "%sname-%02d", i ? ", " : "", i);
    }
    put_prompts(strcat(text, "}}"));
    if (pith_model_open(&model, DIR, NULL, &err)) fail_msg("%s", err.message);
    refuse_prompt("x", strcat(says, ")"));
    pith_model_close(model);

    put_prompts("{}");
    if (pith_model_open(&model, DIR, NULL, &err)) fail_msg("%s", err.message);
    refuse_prompt("x", NO_PROMPT "the model has no prompt 'x' (it has: none)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_failures),
        /* it leaves another model */
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prompts),
    };
    return cmocka_run_group_tests(tests, open_directory, close_directory);
}
