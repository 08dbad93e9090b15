/* test_tokenizer.c - the real MiniLM tokenizer against what its network was given, and the calls
 * around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/formats/json.h"
#include "base/memory/account.h"
#include "base/os/file.h"
#include "base/str.h"
#include "text/tokenizer.h"

typedef struct fixture {
    pith__arena arena;
    pith_tokenizer *tokenizer;
    pith_tokens tokens;
} fixture;

static int open_minilm(void **state) {
    fixture *f = calloc(1, sizeof *f);
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&f->arena, &pith__allocator_default);
    if (pith__tokenizer_load(&f->tokenizer, PITH_TEST_DATA "/minilm", NULL, &f->arena, &err)) {
        print_error("%s\n", err.message);
        return -1;
    }
    f->tokens = (pith_tokens)PITH_TOKENS_INIT;
    *state = f;
    return 0;
}

static int close_minilm(void **state) {
    fixture *f = *state;
    pith_tokens_free(&f->tokens);
    pith__tokenizer_unload(f->tokenizer);
    pith__arena_free(&f->arena);
    free(f);
    return 0;
}

static void check_ids(fixture *f, pith__json *j, pith_str text) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    options.max_length = 256;
    assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, text, NULL, &options, &err), PITH_OK);
    size_t n = 0;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        int64_t id = pith__json_int(j);
        if (n >= f->tokens.count || f->tokens.ids[n] != id)
            fail_msg("token %zu of \"" PITH_STR_FMT "\" is not %lld", n, PITH_STR_ARG(text),
                     (long long)id);
        n++;
    }
    assert_int_equal(n, f->tokens.count);
}

static void test_golden(void **state) {
    fixture *f = *state;
    pith__file file;
    pith_error err = PITH_ERROR_INIT;
    size_t lines = 0;
    pith__arena scratch;
    pith__arena_init(&scratch, &pith__allocator_default);
    assert_int_equal(pith__file_open(&file, PITH_TEST_DATA "/minilm/golden.jsonl", false,
                                     &pith__allocator_default, &err),
                     0);
    const char *p = (const char *)file.data, *end = p + file.size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        pith__json *j = pith__arena_alloc(&scratch, sizeof *j);
        pith__json_init(j, (pith_str){ p, (size_t)(stop - p) }, "golden.jsonl", &scratch, &err);
        pith_str key, text = { NULL, 0 };
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            if (pith__str_is(key, "text"))
                text = pith__json_string(j);
            else if (pith__str_is(key, "ids"))
                check_ids(f, j, text);
            else
                pith__json_skip(j);
        }
        assert_false(j->failed);
        lines++;
        p = stop + 1;
    }
    assert_int_equal(lines, 300);
    pith__file_close(&file);
    pith__arena_free(&scratch);
}

static void test_offsets_and_words(void **state) {
    fixture *f = *state;
    pith_error err = PITH_ERROR_INIT;
    pith_str text = PITH_STR("Nai\xCC\x88ve tokenizing, \xE6\xBC\xA2\xE5\xAD\x97[MASK]!");
    assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, text, NULL, NULL, &err), PITH_OK);
    /* [CLS] naive token ##izing , 漢 字 [MASK] ! [SEP] */
    static const uint32_t begin[] = { 0, 0, 8, 13, 18, 20, 23, 26, 32, 0 },
                          end[] = { 0, 7, 13, 18, 19, 23, 26, 32, 33, 0 };
    static const int32_t words[] = { -1, 0, 1, 1, 2, 3, 4, 5, 6, -1 };
    assert_int_equal(f->tokens.count, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(f->tokens.begin[i], begin[i]);
        assert_int_equal(f->tokens.end[i], end[i]);
        assert_int_equal(f->tokens.word_ids[i], words[i]);
        assert_int_equal(f->tokens.special[i], i == 0 || i == 9);
    }
}

static void test_pair_and_truncation(void **state) {
    fixture *f = *state;
    pith_error err = PITH_ERROR_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_str pair = PITH_STR("d e f g h i");
    options.max_length = 8;
    assert_int_equal(
        pith_tokenize(&f->tokens, f->tokenizer, PITH_STR("a b"), &pair, &options, &err), PITH_OK);
    assert_int_equal(f->tokens.count, 8); /* [CLS] a b [SEP] d e f [SEP] */
    assert_int_equal(f->tokens.truncated, 1);
    for (size_t i = 0; i < 8; i++) assert_int_equal(f->tokens.type_ids[i], i > 3);
    assert_int_equal(f->tokens.ids[7], 102);
    assert_int_equal(f->tokens.begin[4], 0);
    options.max_length = 1; /* less than the specials: they stay */
    assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, PITH_STR("a b"), NULL, &options, &err),
                     PITH_OK);
    assert_int_equal(f->tokens.count, 2);
    options.max_length = 0;
    options.no_specials = 1;
    assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, PITH_STR("a b"), NULL, &options, &err),
                     PITH_OK);
    assert_int_equal(f->tokens.count, 2);
    assert_int_equal(f->tokens.truncated, 0);
    options.no_specials = 0;
    options.raw = 1; /* the file truncates to 128 and pads to 128 */
    assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, PITH_STR("a b"), NULL, &options, &err),
                     PITH_OK);
    assert_int_equal(f->tokens.count, 128);
    assert_int_equal(f->tokens.ids[127], 0);
}

static void test_batch(void **state) {
    fixture *f = *state;
    enum { N = 200 };
    pith_str texts[N];
    char buffer[N][40];
    size_t ends[2][N];
    pith_tokens all[2] = { PITH_TOKENS_INIT, PITH_TOKENS_INIT };
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < N; i++) {
        int n = snprintf(buffer[i], sizeof buffer[i], "%.*s%d caf\xC3\xA9", i % 7, "abc de fgh",
                         i * 7919);
        texts[i] = (pith_str){ buffer[i], (size_t)n };
    }
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    for (int k = 0; k < 2; k++) {
        options.call.threads = 1 + k;
        assert_int_equal(
            pith_tokenize_batch(&all[k], ends[k], f->tokenizer, texts, NULL, N, &options, &err),
            PITH_OK);
    }
    assert_memory_equal(ends[0], ends[1], sizeof ends[0]);
    assert_memory_equal(all[0].ids, all[1].ids, all[0].count * sizeof(int32_t));
    for (int i = 0; i < N; i++) {
        size_t begin = i ? ends[0][i - 1] : 0;
        assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, texts[i], NULL, NULL, &err),
                         PITH_OK);
        assert_int_equal(f->tokens.count, ends[0][i] - begin);
        assert_memory_equal(f->tokens.ids, all[0].ids + begin, f->tokens.count * sizeof(int32_t));
    }
    texts[77] = PITH_STR("bad \xFF");
    for (int k = 0; k < 2; k++) {
        options.call.threads = 1 + k;
        assert_int_equal(
            pith_tokenize_batch(&all[0], ends[0], f->tokenizer, texts, NULL, N, &options, &err),
            PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "text 77"));
    }
    pith_tokens_free(&all[0]);
    pith_tokens_free(&all[1]);
}

/* Rows [begin, end) of a batch are those of a call of its own, column by column. */
static void check_rows(const pith_tokens *all, size_t begin, size_t end, const pith_tokens *one) {
    size_t n = end - begin;
    assert_int_equal(n, one->count);
    assert_memory_equal(all->ids + begin, one->ids, n * sizeof *one->ids);
    assert_memory_equal(all->type_ids + begin, one->type_ids, n * sizeof *one->type_ids);
    assert_memory_equal(all->begin + begin, one->begin, n * sizeof *one->begin);
    assert_memory_equal(all->end + begin, one->end, n * sizeof *one->end);
    assert_memory_equal(all->word_ids + begin, one->word_ids, n * sizeof *one->word_ids);
    assert_memory_equal(all->windows + begin, one->windows, n * sizeof *one->windows);
    assert_memory_equal(all->sequence_ids + begin, one->sequence_ids, n);
    assert_memory_equal(all->special + begin, one->special, n);
    assert_memory_equal(all->attention + begin, one->attention, n);
}

static void test_batch_of_pairs(void **state) {
    fixture *f = *state;
    enum { N = 4000 }; /* some thirty parts */
    static pith_str texts[N], pairs[N];
    static size_t ends[N];
    static char buffer[N][64];
    pith_tokens all = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    for (int i = 0; i < N; i++) {
        int n = snprintf(buffer[i], sizeof buffer[i],
                         "%d na\xC3\xAFve caf\xC3\xA9s of %d \xE6\xBC\xA2", i * 7919, i);
        texts[i] = (pith_str){ buffer[i], (size_t)n };
        pairs[i] = texts[i * 31 % (i + 1)];
    }
    options.max_length = 11;
    options.stride = 2;
    options.overflow = 1;
    for (options.characters = 0; options.characters < 2; options.characters++)
        for (options.call.threads = 1; options.call.threads < 4; options.call.threads++) {
            assert_int_equal(
                pith_tokenize_batch(&all, ends, f->tokenizer, texts, pairs, N, &options, &err),
                PITH_OK);
            assert_int_equal(all.truncated, N);
            for (int i = 0; i < N; i++) {
                assert_int_equal(
                    pith_tokenize(&f->tokens, f->tokenizer, texts[i], &pairs[i], &options, &err),
                    PITH_OK);
                check_rows(&all, i ? ends[i - 1] : 0, ends[i], &f->tokens);
            }
            pith_tokens_free(&all);
        }
    /* Whoever comes first, the first of two faults is reported. */
    texts[N / 2] = texts[N - 1] = PITH_STR("a\xFF");
    for (options.call.threads = 1; options.call.threads < 4; options.call.threads++) {
        assert_int_equal(
            pith_tokenize_batch(&all, ends, f->tokenizer, texts, pairs, N, &options, &err),
            PITH_ERR_ARGUMENT);
        assert_string_equal(err.message, "text 2000: invalid UTF-8 at byte 1");
        assert_int_equal(all.count, 0);
    }
    pith_tokens_free(&all);
}

/* The file asks for more padding than the memory limit allows. */
static void test_padding_beyond_the_limit(void **state) {
    static const char *const paddings[] = {
        "{\"strategy\":{\"Fixed\":1000000000}}",
        "{\"strategy\":\"BatchLongest\",\"pad_to_multiple_of\":4611686018427387903}"
    };
    pith_str text = PITH_STR("a b");
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_open_options opened = PITH_OPEN_OPTIONS_INIT;
    pith_tokens tokens = PITH_TOKENS_INIT;
    (void)state;
    options.raw = 1;
    for (int i = 0; i < 2; i++) {
        char json[500];
        size_t end;
        pith__arena arena;
        pith__account account;
        pith_tokenizer *t;
        pith_error err = PITH_ERROR_INIT;
        snprintf(json, sizeof json,
                 "{\"padding\":%s,\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"model\":{"
                 "\"type\":\"WordLevel\","
                 "\"unk_token\":\"u\",\"vocab\":{\"a\":1,\"b\":2,\"u\":0}}}",
                 paddings[i]);
        pith__account_init(&account, &pith__allocator_default, 1 << 20, 0);
        opened.call.allocator = &account.allocator;
        pith__arena_init(&arena, &account.allocator);
        assert_int_equal(pith__tokenizer_load_bytes(&t, pith__str_of(json), &opened, &arena, &err),
                         PITH_OK);
        assert_int_equal(pith_tokenize(&tokens, t, text, NULL, &options, &err), PITH_ERR_MEMORY);
        assert_non_null(strstr(err.message, "the memory limit is 1048576 bytes: "));
        assert_int_equal(pith_tokenize_batch(&tokens, &end, t, &text, NULL, 1, &options, &err),
                         PITH_ERR_MEMORY);
        pith__tokenizer_unload(t);
        pith__arena_free(&arena);
    }
    pith_tokens_free(&tokens);
}

/* A batch that the file pads to its longest: every window is as wide as the widest first one. */
static void test_padded_batch(void **state) {
    static const char json[] = "{\"truncation\":{\"max_length\":5,\"stride\":1,\"strategy\":"
                               "\"LongestFirst\",\"direction\":\"Right\"},"
                               "\"padding\":{\"strategy\":\"BatchLongest\",\"direction\":\"Left\","
                               "\"pad_id\":9,\"pad_type_id\":3},"
                               "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
                               "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{"
                               "\"a\":1,\"b\":2,\"u\":0}}}";
    static const int32_t wanted[] = { 9, 9, 9, 9, 1, 1, 2, 1, 2, 1, 9, 9, 9, 1, 2, 9, 9, 9, 9, 9 };
    pith_str texts[] = { PITH_STR("a"), PITH_STR("a b a b a b"), PITH_STR("") };
    pith__arena arena;
    pith_tokenizer *t;
    pith_tokens all = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    size_t ends[3];
    (void)state;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__tokenizer_load_bytes(&t, PITH_STR(json), NULL, &arena, &err), PITH_OK);
    options.raw = options.overflow = 1;
    for (options.call.threads = 1; options.call.threads < 3; options.call.threads++) {
        assert_int_equal(pith_tokenize_batch(&all, ends, t, texts, NULL, 3, &options, &err),
                         PITH_OK);
        assert_int_equal(all.count, sizeof wanted / sizeof *wanted);
        assert_memory_equal(all.ids, wanted, sizeof wanted);
        assert_int_equal(ends[0], 5);
        assert_int_equal(ends[1], 15);
        assert_int_equal(ends[2], 20);
        for (size_t i = 0; i < all.count; i++) {
            assert_int_equal(all.attention[i], all.ids[i] != 9);
            assert_int_equal(all.windows[i], i >= 10 && i < 15);
            assert_int_equal(all.type_ids[i], all.ids[i] == 9 ? 3 : 0);
        }
    }
    pith__tokenizer_unload(t);
    /* No room for tokens: the first window is empty, the second has all. */
    static const char none[] = "{\"truncation\":{\"max_length\":0,\"stride\":0,\"strategy\":"
                               "\"LongestFirst\",\"direction\":\"Right\"},"
                               "\"padding\":{\"strategy\":\"BatchLongest\",\"direction\":\"Right\","
                               "\"pad_id\":9,\"pad_type_id\":3},"
                               "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
                               "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{"
                               "\"a\":1,\"b\":2,\"u\":0}}}";
    assert_int_equal(pith__tokenizer_load_bytes(&t, PITH_STR(none), NULL, &arena, &err), PITH_OK);
    for (options.call.threads = 1; options.call.threads < 3; options.call.threads++) {
        assert_int_equal(pith_tokenize_batch(&all, ends, t, texts, NULL, 3, &options, &err),
                         PITH_OK);
        assert_int_equal(all.count, 7);
        assert_int_equal(ends[1], 7);
        assert_int_equal(all.windows[1], 1);
    }
    pith_tokens_free(&all);
    pith__tokenizer_unload(t);
    pith__arena_free(&arena);
}

static void test_refused_options(void **state) {
    fixture *f = *state;
    static const pith_tokenize_options bad[] = {
        { .call.size = sizeof bad[0], .max_length = -1 },
        { .call.size = sizeof bad[0], .stride = -1 },
        { .call.size = sizeof bad[0], .call.threads = -1 },
        { .call.size = sizeof bad[0], .cut = 3 },
        { .call.size = sizeof bad[0], .max_length = 5, .stride = 3 },
        { .call.size = sizeof bad[0], .max_length = 5, .cut = PITH_CUT_SECOND },
        { .call.size = 0 },
    };
    pith_error err = PITH_ERROR_INIT;
    pith_str text = PITH_STR("one two three four five six");
    pith_tokens other = { .size = 8 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, text, NULL, &bad[i], &err),
                         PITH_ERR_ARGUMENT);
    assert_int_equal(pith_tokenize(&other, f->tokenizer, text, NULL, NULL, &err),
                     PITH_ERR_ARGUMENT);
}

/* The same ids from vocab.txt and tokenizer_config.json alone. */
static void test_vocab_txt(void **state) {
    fixture *f = *state;
    char dir[] = "/tmp/pith-vocab-XXXXXX", path[64];
    pith_error err = PITH_ERROR_INIT;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (int32_t i = 0; i < 30522; i++) {
        pith_str token = pith__tokenizer_token(f->tokenizer, i);
        fprintf(out, "%.*s\n", (int)token.size, token.data);
    }
    fclose(out);
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    fixture plain = { .tokenizer = NULL, .tokens = PITH_TOKENS_INIT };
    if (pith__tokenizer_load(&plain.tokenizer, dir, NULL, &arena, &err))
        fail_msg("%s", err.message);
    pith_str texts[] = { PITH_STR("Na\xC3\xAFve [MASK] tokenizing, \xE6\xBC\xA2\xE5\xAD\x97!"),
                         PITH_STR("") };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pith_tokenize(&f->tokens, f->tokenizer, texts[i], &texts[0], NULL, &err),
                         PITH_OK);
        assert_int_equal(
            pith_tokenize(&plain.tokens, plain.tokenizer, texts[i], &texts[0], NULL, &err),
            PITH_OK);
        assert_int_equal(plain.tokens.count, f->tokens.count);
        assert_memory_equal(plain.tokens.ids, f->tokens.ids, f->tokens.count * sizeof(int32_t));
        assert_memory_equal(plain.tokens.type_ids, f->tokens.type_ids,
                            f->tokens.count * sizeof(int32_t));
    }
    pith_tokens_free(&plain.tokens);
    pith__tokenizer_unload(plain.tokenizer);
    pith__arena_free(&arena);
    remove(path);
    remove(dir);
}

static void test_names(void **state) {
    fixture *f = *state;
    assert_int_equal(pith__tokenizer_id(f->tokenizer, PITH_STR("[SEP]")), 102);
    assert_int_equal(pith__tokenizer_id(f->tokenizer, PITH_STR("no such token")), -1);
    pith_str token = pith__tokenizer_token(f->tokenizer, 2003);
    assert_true(pith__str_is(token, "is"));
    assert_null(pith__tokenizer_token(f->tokenizer, 30522).data);
    assert_int_equal(pith__tokenizer_vocab_size(f->tokenizer), 30522);
    assert_int_equal(pith__tokenizer_max_length(f->tokenizer), 512);
}

static void test_missing_files(void **state) {
    fixture *f = *state;
    pith_tokenizer *t = NULL;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith__tokenizer_load(&t, PITH_TEST_DATA, NULL, &f->arena, &err),
                     PITH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "tokenizer.json"));
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_offsets_and_words),
        cmocka_unit_test(test_pair_and_truncation),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_batch_of_pairs),
        cmocka_unit_test(test_padded_batch),
        cmocka_unit_test(test_padding_beyond_the_limit),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_vocab_txt),
        cmocka_unit_test(test_missing_files),
    };
    return cmocka_run_group_tests(tests, open_minilm, close_minilm);
}
