/* test_chunk.c - long texts in chunks: places, words that stay whole, overlap, what the model sees
 * of a chunk, means. */
#include "support/embed_test.h"
#include "support/failing_alloc.h"

#define DIR PITH_BINARY_DIR "/chunk"

enum { MOST = 100000 };
static pith_chunk chunks[MOST];
static pith_error err;
static pith_model *toy; /* tokens: a, b, c, d, pieces of words, and two special ones */

static int open_toy(void **state) {
    (void)state;
    network_directory(DIR, "bert-base-script17-sdpa", "null");
    FILE *f = fopen(DIR "/config_sentence_transformers.json", "w");
    assert_non_null(f);
    fputs("{\"prompts\": {\"query\": \"d d \"}}", f);
    assert_int_equal(fclose(f), 0);
    if (pith_model_open(&toy, DIR, NULL, &err)) fail_msg("%s", err.message);
    return 0;
}

static int close_toy(void **state) {
    (void)state;
    pith_model_close(toy);
    return 0;
}

static size_t chunk_all(const pith_model *model, pith_str text, int max_length, int overlap,
                        const char *prompt) {
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    pith_chunk_options options = PITH_CHUNK_OPTIONS_INIT;
    pith_chunk chunk = PITH_CHUNK_INIT;
    size_t count = 0;
    embed.max_length = max_length;
    embed.prompt_name = prompt;
    options.embed = &embed;
    options.overlap = overlap;
    while (!chunk.last) {
        if (pith_chunk_text(&chunk, model, text, &options, &err)) fail_msg("%s", err.message);
        assert_true(count < MOST);
        chunks[count++] = chunk;
    }
    return count;
}

/* Places of the toy's chunks as text: "0-5 6-9". */
static void check_places(const char *text, int max_length, int overlap, const char *prompt,
                         const char *wanted) {
    char got[1000] = "";
    size_t count = chunk_all(toy, pith__str_of(text), max_length, overlap, prompt), used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%zu-%zu:%zu", i ? " " : "",
                                 chunks[i].begin, chunks[i].end, chunks[i].tokens);
    assert_string_equal(got, wanted);
}

static void test_places(void **state) {
    (void)state;
    check_places("", 5, 0, NULL, "0-0:0");
    check_places("   ", 5, 0, NULL, "0-3:0");
    check_places("a b c", 5, 0, NULL, "0-5:3");
    check_places(" a b c ", 5, 0, NULL, "0-7:3"); /* one that fits is taken whole */
    check_places("a b c d", 5, 0, NULL, "0-5:3 6-7:1");
    check_places("a b c  d  ", 5, 0, NULL, "0-5:3 7-10:1");
    check_places("a b c d a b c d", 5, 1, NULL, "0-5:3 4-9:3 8-13:3 12-15:2");
    check_places("a b c d a b c d", 7, 2, NULL, "0-9:5 6-15:5");
    check_places("a b c d", 5, 0, "query", "0-1:1 2-3:1 4-5:1 6-7:1"); /* the prompt takes two */
    /* words stay whole; aaa is a ##a ##a */
    check_places("a b aaa c d", 6, 0, NULL, "0-3:2 4-9:4 10-11:1");
    check_places("a b aaa c d", 6, 1, NULL, "0-3:2 2-7:4 8-11:2");
    /* unless they are longer than half a chunk: pieces of a word become words of their own */
    check_places("aaaaaaaa", 5, 0, NULL, "0-3:3 3-6:3 6-8:2");
    check_places("d aaaaaaaa", 6, 0, NULL, "0-5:4 5-9:4 9-10:1");
    /* characters that no token has: words of them are one [UNK], pieces of a word are not */
    check_places("\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4 a b", 4, 0, NULL, "0-9:2 10-13:2");
}

/* White space, and characters that the tokenizer leaves out. */
static void check_dropped(const pith_model *model, pith_str gap) {
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.no_specials = 1;
    assert_int_equal(pith_tokenize(&tokens, pith_model_tokenizer(model), gap, NULL, &options, &err),
                     PITH_OK);
    assert_int_equal(tokens.count, 0);
    pith_tokens_free(&tokens);
}

/* The chunk as a text of its own is not cut and has so many tokens; nothing that has tokens is
 * between chunks. */
static void check_model(const pith_model *model, pith_str text, int max_length, int overlap,
                        int specials) {
    pith_embed_stats stats = { 0 };
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    float *vector = calloc(pith_embed_dim(model, NULL), sizeof *vector);
    const size_t count = chunk_all(model, text, max_length, overlap, NULL);
    size_t repeated = 0;
    options.max_length = max_length;
    options.stats = &stats;
    assert_int_equal(chunks[0].begin, 0);
    assert_int_equal(chunks[count - 1].end, text.size);
    for (size_t i = 0; i < count; i++) {
        const pith_chunk *c = &chunks[i];
        const pith_str part = { text.data + c->begin, c->end - c->begin };
        const uint64_t before = stats.tokens;
        assert_int_equal(pith_text_valid(part), part.size);
        assert_int_equal(pith_embed(vector, model, &part, 1, &options, &err), PITH_OK);
        assert_int_equal(stats.truncated, 0);
        if (specials >= 0) assert_int_equal(stats.tokens - before, c->tokens + (size_t)specials);
        assert_int_equal(c->last, i + 1 == count);
        if (!i) continue;
        assert_true(c->begin > c[-1].begin && c->end > c[-1].end);
        if (!overlap) assert_true(c->begin >= c[-1].end);
        if (c->begin > c[-1].end)
            check_dropped(model, (pith_str){ text.data + c[-1].end, c->begin - c[-1].end });
        repeated += c->begin < c[-1].end;
    }
    if (overlap && count > 10) assert_true(repeated > count / 2);
    free(vector);
}

static pith_str long_text(const golden *g) {
    static char text[200000];
    size_t size = 0;
    for (int i = 0; i < GOLDEN && size + g->texts[i].size + 1 < 60000; i++) {
        memcpy(text + size, g->texts[i].data, g->texts[i].size);
        size += g->texts[i].size;
        text[size++] = ' ';
    }
    return (pith_str){ text, size };
}

static void test_models(void **state) {
    static const char *const names[] = { "static", "model2vec", "half" };
    golden *g = *state;
    pith_model *model = open_at(PITH_PRECISION_F32);
    pith_str text = long_text(g);
    for (int length = 0; length < 128; length = length ? 2 * length + 3 : 20)
        for (int overlap = 0; overlap < 20; overlap += 7) {
            if (length && 2 * overlap >= length - 2) continue;
            check_model(model,
                        (pith_str){ text.data, pith_text_valid((pith_str){ text.data, 5000 }) },
                        length, overlap, 2);
        }
    for (int i = 0; i < GOLDEN; i++) /* what is not cut is one chunk */
        if (g->tokens[i] < 256) assert_int_equal(chunk_all(model, g->texts[i], 0, 0, NULL), 1);
    pith_model_close(model);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[300];
        snprintf(path, sizeof path, PITH_TEST_DATA "/modules/%s", names[i]);
        if (pith_model_open(&model, path, NULL, &err)) fail_msg("%s", err.message);
        check_model(model, (pith_str){ text.data, pith_text_valid((pith_str){ text.data, 2000 }) },
                    16, 0, -1);
        pith_model_close(model);
    }
}

static bool chunk_is_first(const pith_chunk *c) {
    return !c->begin && !c->end && !c->tokens && !c->next && !c->fresh && !c->last;
}

static void refuse(pith_str text, int max_length, int overlap, const char *says) {
    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    pith_chunk_options options = PITH_CHUNK_OPTIONS_INIT;
    pith_chunk chunk = PITH_CHUNK_INIT;
    embed.max_length = max_length;
    options.embed = &embed;
    options.overlap = overlap;
    assert_int_equal(pith_chunk_text(&chunk, toy, text, &options, &err), PITH_ERR_ARGUMENT);
    if (!strstr(err.message, says)) fail_msg("'%s' is not in '%s'", says, err.message);
    assert_true(chunk_is_first(&chunk));
}

static void test_refused(void **state) {
    const pith_str text = PITH_STR("a b c d a b c d");
    pith_chunk chunk = PITH_CHUNK_INIT;
    (void)state;
    refuse(text, 2, 0, "chunks of 2 tokens have no room for the character at byte 0");
    refuse(text, 6, 2, "an overlap of 2 tokens is too much: chunks hold 4");
    refuse(text, 6, -1, "negative");
    refuse(text, -1, 0, "negative");
    refuse(PITH_STR("a b \xff"), 5, 0, "invalid UTF-8 at byte 4");
    assert_int_equal(pith_chunk_text(&chunk, toy, PITH_STR("a"), NULL, &err), PITH_OK);
    assert_int_equal(pith_chunk_text(&chunk, toy, PITH_STR("a"), NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no chunk follows"));
    chunk = (pith_chunk){ .next = 2 };
    assert_int_equal(pith_chunk_text(&chunk, toy, PITH_STR("a"), NULL, &err), PITH_ERR_ARGUMENT);
}

static void test_mean(void **state) {
    enum { WIDTH = 32 };
    double sums[WIDTH], length = 0;
    float mean[WIDTH];
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    (void)state;
    for (int i = 0; i < WIDTH; i++) sums[i] = i - 7.5;
    options.normalize = PITH_CHOICE_NO;
    assert_int_equal(pith_chunk_mean(mean, toy, sums, 4, &options, &err), PITH_OK);
    for (int i = 0; i < WIDTH; i++) assert_true(mean[i] == (float)(sums[i] / 4));
    options.normalize = 1;
    assert_int_equal(pith_chunk_mean(mean, toy, sums, 4, &options, &err), PITH_OK);
    for (int i = 0; i < WIDTH; i++) length += (double)mean[i] * mean[i];
    assert_true(fabs(length - 1) < 1e-6);
    assert_int_equal(pith_chunk_mean(mean, toy, sums, 0, &options, &err), PITH_ERR_ARGUMENT);
    options.dim = WIDTH + 1;
    assert_int_equal(pith_chunk_mean(mean, toy, sums, 4, &options, &err), PITH_ERR_ARGUMENT);
}

/* Each allocation of a call fails once: the call says so and leaves the chunk as it was, and
 * nothing leaks. */
static void test_memory(void **state) {
    const pith_str text = PITH_STR("a b c d aaa b c d a b c d");
    size_t failures = 0;
    (void)state;
    for (long k = 1; k < 200; k++) {
        counter c = { 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
        pith_chunk_options options = PITH_CHUNK_OPTIONS_INIT;
        pith_chunk chunk = PITH_CHUNK_INIT;
        pith_model *model;
        open.call.allocator = &allocator;
        if (pith_model_open(&model, DIR, &open, &err)) fail_msg("%s", err.message);
        embed.max_length = 8;
        embed.prompt_name = "query";
        options.embed = &embed;
        options.overlap = 1;
        c.fail_at = atomic_load(&c.calls) + k;
        const pith_status status = pith_chunk_text(&chunk, model, text, &options, &err);
        const bool reached = atomic_load(&c.calls) >= c.fail_at;
        if (status) {
            assert_int_equal(status, PITH_ERR_MEMORY);
            assert_true(chunk_is_first(&chunk));
            failures++;
        } else {
            assert_int_equal(chunk.end, 7);
        }
        pith_model_close(model);
        assert_int_equal(atomic_load(&c.live), 0);
        if (!reached) break;
        assert_true(k < 199);
    }
    assert_true(failures > 4);
}

static int open_all(void **state) {
    static golden g;
    golden_open(&g);
    *state = &g;
    return open_toy(state);
}

static int close_all(void **state) {
    golden_close(*state);
    return close_toy(state);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_places),
                                        cmocka_unit_test(test_models),
                                        cmocka_unit_test(test_refused), cmocka_unit_test(test_mean),
                                        cmocka_unit_test(test_memory) };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
