/* test_tokenizer_frozen.c - tokenizers opened out of their frozen tokenizers give the same tokens
 * and texts; damaged frozen tokenizers are refused or harmless. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/os/file.h"
#include "text/frozen_tokenizer.h"

static const char *const texts[] = {
    "",
    "The quick brown fox isn't jumping over 12,345 lazy dogs!",
    "Zwölf Boxkämpfer jagen Eva quer über den Sylter Deich.  \t\n Ende",
    "敏捷的棕色狐狸跳过懒狗。 いろはにほへと ちりぬるを",
    "e\xCC\x81\xCC\xA3 \xEF\xAC\x81 \xE2\x84\xAB <mask> [MASK] </s> "
    "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80",
};

enum { TEXTS = sizeof texts / sizeof texts[0] };

static void compare_tokens(const char *name, const pith_tokenizer *a, const pith_tokenizer *b) {
    pith_error err = PITH_ERROR_INIT;
    for (size_t i = 0; i < TEXTS; i++) {
        pith_tokens x = PITH_TOKENS_INIT, y = PITH_TOKENS_INIT;
        pith_str text = pith__str_of(texts[i]), pair = pith__str_of(texts[(i + 1) % TEXTS]);
        pith_status status = pith_tokenize(&x, a, text, i % 2 ? &pair : NULL, NULL, &err);
        assert_int_equal(pith_tokenize(&y, b, text, i % 2 ? &pair : NULL, NULL, &err), status);
        if (x.count != y.count)
            fail_msg("%s: text %zu: %zu tokens, %zu out of the frozen tokenizer", name, i, x.count,
                     y.count);
        for (size_t k = 0; k < x.count; k++)
            if (x.ids[k] != y.ids[k] || x.begin[k] != y.begin[k] || x.end[k] != y.end[k] ||
                x.word_ids[k] != y.word_ids[k] || x.type_ids[k] != y.type_ids[k] ||
                x.special[k] != y.special[k])
                fail_msg("%s: text %zu: token %zu", name, i, k);
        char *s = NULL, *t = NULL;
        size_t s_size = 0, t_size = 0;
        status = pith_detokenize(&s, &s_size, a, x.ids, x.count, 0, NULL, &err);
        assert_int_equal(pith_detokenize(&t, &t_size, b, x.ids, x.count, 0, NULL, &err), status);
        assert_true(s_size == t_size && (!s_size || memcmp(s, t, s_size) == 0));
        pith_text_free(a, s);
        pith_text_free(b, t);
        pith_tokens_free(&x);
        pith_tokens_free(&y);
    }
    assert_int_equal(pith__tokenizer_vocab_size(a), pith__tokenizer_vocab_size(b));
    assert_int_equal(pith__tokenizer_max_length(a), pith__tokenizer_max_length(b));
}

/* From a path, or from the first line of a file of cases. */
static void round_trip(const char *path, bool cases) {
    pith__arena arena;
    pith__file file;
    pith_tokenizer *t = NULL, *opened = NULL;
    pith_error err = PITH_ERROR_INIT;
    pith_str frozen, again;
    pith__arena_init(&arena, &pith__allocator_default);
    if (cases) {
        assert_int_equal(pith__file_open(&file, path, false, &pith__allocator_default, &err),
                         PITH_OK);
        pith_str json = { (const char *)file.data,
                          (size_t)((char *)memchr(file.data, '\n', file.size) -
                                   (char *)file.data) };
        pith__tokenizer_load_bytes(&t, json, NULL, &arena, &err);
        pith__file_close(&file);
    } else
        pith__tokenizer_load(&t, path, NULL, &arena, &err);
    if (!t) fail_msg("%s: %s", path, err.message);
    assert_int_equal(pith__tokenizer_freeze(&frozen, t, &arena, &err), PITH_OK);
    if (pith__tokenizer_open_frozen(&opened, frozen.data, frozen.size, NULL, &arena, &err))
        fail_msg("%s: %s", path, err.message);
    compare_tokens(path, t, opened);
    assert_int_equal(pith__tokenizer_freeze(&again, opened, &arena, &err), PITH_OK);
    assert_true(pith__str_eq(frozen, again));
    pith__tokenizer_unload(t);
    pith__tokenizer_unload(opened);
    pith__arena_free(&arena);
}

static size_t each_file(const char *folder, const char *suffix, bool cases) {
    char path[2048];
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, suffix) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        round_trip(path, cases);
        count++;
    }
    closedir(dir);
    return count;
}

static void test_round_trips(void **state) {
    (void)state;
    assert_true(each_file(PITH_TEST_DATA "/tokenizers", ".jsonl", true) >= 30);
    assert_true(each_file(PITH_TEST_DATA "/tokenizer_models", ".json", false) >= 10);
    round_trip(PITH_TEST_DATA "/minilm", false);
    round_trip(PITH_TEST_DATA "/tokenizer_models/llama", false);
    round_trip(PITH_TEST_DATA "/tokenizer_models/roberta", false);
    round_trip(PITH_TEST_DATA "/tokenizer_models/tiktoken", false);
}

/* ---- damage ---- */

/* Opens a copy of exactly the given bytes and uses what opened. */
static pith_status use(const char *bytes, size_t size, pith_error *err) {
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_tokens tokens = PITH_TOKENS_INIT;
    char *text = NULL, *copy = aligned_alloc(64, (size + 127) / 64 * 64);
    size_t text_size;
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    pith__arena_init(&arena, &pith__allocator_default);
    pith_status status = pith__tokenizer_open_frozen(&t, copy, size, NULL, &arena, err);
    for (size_t i = 0; !status && i < TEXTS; i++) {
        if (pith_tokenize(&tokens, t, pith__str_of(texts[i]), NULL, NULL, err)) continue;
        if (!pith_detokenize(&text, &text_size, t, tokens.ids, tokens.count, 0, NULL, err))
            pith_text_free(t, text);
    }
    pith_tokens_free(&tokens);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
    free(copy);
    return status;
}

static void damage(const char *path) {
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_error err = PITH_ERROR_INIT;
    pith_str frozen;
    uint64_t random = 88172645463325252u;
    size_t refused = 0;
    pith__arena_init(&arena, &pith__allocator_default);
    if (pith__tokenizer_load(&t, path, NULL, &arena, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith__tokenizer_freeze(&frozen, t, &arena, &err), PITH_OK);
    char *bytes = pith__arena_alloc64(&arena, frozen.size);
    for (int i = 0; i < 60; i++) {
        size_t size = frozen.size * (size_t)i / 60;
        assert_int_equal(use(frozen.data, size, &err), PITH_ERR_FORMAT);
    }
    for (int i = 0; i < 600; i++) {
        memcpy(bytes, frozen.data, frozen.size);
        for (int k = 0; k <= i % 4; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t at = random % (i % 3 ? frozen.size : 1024);
            bytes[at] =
                (char)(i % 2 ? (int)(random >> 32 & 0xFF) : bytes[at] ^ 1 << (random >> 40) % 8);
        }
        refused += use(bytes, frozen.size, &err) != PITH_OK;
    }
    assert_true(refused > 100);
    assert_int_equal(use(frozen.data, frozen.size, &err), PITH_OK);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
}

static void test_damage(void **state) {
    (void)state;
    damage(PITH_TEST_DATA "/tokenizer_models/bpe_unk.json");
    damage(PITH_TEST_DATA "/tokenizer_models/unigram_bytes.json");
    damage(PITH_TEST_DATA "/tokenizer_models/llama3.json");
}

static void test_refused(void **state) {
    static _Alignas(64) char bytes[2048] = "PithTok";
    pith_error err = PITH_ERROR_INIT;
    pith_tokenizer *t = NULL;
    pith__arena arena;
    (void)state;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__tokenizer_open_frozen(&t, bytes, sizeof bytes, NULL, &arena, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "version 0"));
    assert_int_equal(pith__tokenizer_open_frozen(&t, bytes + 1, 64, NULL, &arena, &err),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(pith__tokenizer_open_frozen(&t, NULL, 0, NULL, &arena, &err), PITH_ERR_FORMAT);
    assert_int_equal(pith__tokenizer_open_frozen(&t, "{}", 2, NULL, &arena, &err), PITH_ERR_FORMAT);
    assert_null(t);
    pith__arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
