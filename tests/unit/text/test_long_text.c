/* test_long_text.c - one text of megabytes: cut off at some tokens it gives those of the whole and
 * costs next to no memory, not cut off it costs memory that a limit counts and an error
 * explains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "pith/pith.h"

static pith_error err;

static pith_tokenizer *open_tokenizer(const char *name, uint64_t memory_limit) {
    char path[600];
    pith_tokenizer *t;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.memory_limit = memory_limit;
    snprintf(path, sizeof path, PITH_TEST_DATA "/%s", name);
    if (pith_tokenizer_open(&t, path, &options, &err)) fail_msg("%s: %s", name, err.message);
    return t;
}

/* Units drawn from a list, up to `size` bytes. */
static pith_str make_text(size_t size, const char *const *units, size_t count) {
    char *text = malloc(size + 16);
    size_t n = 0;
    uint32_t state = 7;
    assert_non_null(text);
    while (n < size) {
        state = state * 1664525 + 1013904223;
        const char *unit = units[(state >> 16) % count];
        memcpy(text + n, unit, strlen(unit));
        n += strlen(unit);
    }
    return (pith_str){ text, n };
}

static const char *const words[] = { "a ",           "man ",     "is ", "playing", " ",
                                     "the",          " guitar ", "dog", "s ",      "run ",
                                     ". ",           "  ",       "\n",  "Zwei ",   "H\xC3\xBCte",
                                     "\xE4\xB8\xAD", "3",        "'s " };
static const char *const long_words[] = { "man",         "guit", "ar", "play",
                                          "ing",         "dog",  "xq", "\xF0\x9F\x98\x80",
                                          "\xE4\xB8\xAD" };
enum { WORDS = sizeof words / sizeof *words, LONG_WORDS = sizeof long_words / sizeof *long_words };

static const char *const tokenizers[] = {
    "minilm",
    "tokenizer_models/albert.json",
    "tokenizer_models/bpe_unk.json",
    "tokenizer_models/clip.json",
    "tokenizer_models/deepseek.json",
    "tokenizer_models/gemma.json",
    "tokenizer_models/gpt2_prefix_space.json",
    "tokenizer_models/llama2.json",
    "tokenizer_models/llama2_metaspace.json",
    "tokenizer_models/llama3.json",
    "tokenizer_models/o200k.json",
    "tokenizer_models/roberta.json",
    "tokenizer_models/unigram_bytes.json",
    "tokenizer_models/xlm_roberta.json",
};

static void same_beginning(const char *name, pith_str text) {
    static const int32_t lengths[] = { 1, 2, 60, 1000 };
    pith_tokenizer *t = open_tokenizer(name, 0);
    pith_tokens whole = PITH_TOKENS_INIT, cut = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.no_specials = 1;
    if (pith_tokenize(&whole, t, text, NULL, &options, &err)) fail_msg("%s: %s", name, err.message);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        options.max_length = lengths[i];
        if (pith_tokenize(&cut, t, text, NULL, &options, &err))
            fail_msg("%s: %s", name, err.message);
        size_t n = whole.count < (size_t)lengths[i] ? whole.count : (size_t)lengths[i];
        assert_int_equal(cut.count, n);
        assert_int_equal(cut.truncated, whole.count > n);
        if (memcmp(cut.ids, whole.ids, n * sizeof *cut.ids) ||
            memcmp(cut.begin, whole.begin, n * sizeof *cut.begin) ||
            memcmp(cut.end, whole.end, n * sizeof *cut.end) ||
            memcmp(cut.word_ids, whole.word_ids, n * sizeof *cut.word_ids))
            fail_msg("%s: the first %d tokens are others", name, lengths[i]);
    }
    pith_tokens_free(&whole);
    pith_tokens_free(&cut);
    pith_tokenizer_close(t);
}

static void test_beginning(void **state) {
    (void)state;
    pith_str text = make_text(300000, words, WORDS),
             unbroken = make_text(300000, long_words, LONG_WORDS);
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        same_beginning(tokenizers[i], text);
        same_beginning(tokenizers[i], unbroken);
    }
    free((void *)(uintptr_t)text.data);
    free((void *)(uintptr_t)unbroken.data);
}

/* A Unigram piece that goes through in windows has the tokens of one that goes through at once. */
static void test_windows(void **state) {
    (void)state;
    pith_tokenizer *t = open_tokenizer("tokenizer_models/unigram_bytes.json", 0);
    pith_str text = make_text(400000, long_words, LONG_WORDS);
    pith_tokens all = PITH_TOKENS_INIT, part = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.no_specials = 1;
    assert_int_equal(pith_tokenize(&all, t, text, NULL, &options, &err), PITH_OK);
    assert_true(all.count > 50000);
    assert_int_equal(all.end[all.count - 1], text.size);
    for (size_t size = 50000; size < 65000; size += 4999) { /* less than a window */
        while ((text.data[size] & 0xC0) == 0x80) size++;
        assert_int_equal(
            pith_tokenize(&part, t, (pith_str){ text.data, size }, NULL, &options, &err), PITH_OK);
        for (size_t i = 0; i + 8 < part.count; i++) /* but for the last ones, which the cut may
                                                       change */
            if (part.ids[i] != all.ids[i]) fail_msg("token %zu of %zu bytes", i, size);
    }
    pith_tokens_free(&all);
    pith_tokens_free(&part);
    pith_tokenizer_close(t);
    free((void *)(uintptr_t)text.data);
}

static void test_memory(void **state) {
    (void)state;
    enum { MIB = 1 << 20, TEXT = 32 * MIB, LIMIT = 16 * MIB };
    static const char *const cut_at_words[] = { "minilm", "tokenizer_models/roberta.json",
                                                "tokenizer_models/llama3.json",
                                                "tokenizer_models/xlm_roberta.json",
                                                "tokenizer_models/albert.json" };
    pith_str text = make_text(TEXT, words, WORDS);
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof cut_at_words / sizeof *cut_at_words; i++) {
        pith_tokenizer *t = open_tokenizer(cut_at_words[i], LIMIT);
        options.max_length = 512;
        if (pith_tokenize(&tokens, t, text, NULL, &options, &err))
            fail_msg("%s: %s", cut_at_words[i], err.message);
        assert_int_equal(tokens.count, 512);
        options.max_length = 0;
        assert_int_equal(pith_tokenize(&tokens, t, text, NULL, &options, &err), PITH_ERR_MEMORY);
        assert_non_null(strstr(err.message, "the memory limit is 16777216 bytes: a text of 3355"));
        assert_int_equal(tokens.count, 512); /* as it was */
        options.max_length = 512;
        assert_int_equal(pith_tokenize(&tokens, t, text, NULL, &options, &err), PITH_OK);
        pith_tokenizer_close(t);
    }
    pith_tokens_free(&tokens);
    free((void *)(uintptr_t)text.data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_beginning),
                                        cmocka_unit_test(test_windows),
                                        cmocka_unit_test(test_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
