/* test_tokenizer_stop.c - long texts and tokenizers that are being opened end when the call must,
 * whatever their steps are, and what is open works afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "text/tokenizer.h"

/* Bytes of a text. PITH_TEST_LONG takes ten megabytes, and tells the longest time between two
 * questions. */
enum { TEXT_BYTES = 2 << 20, TEXT_LONG = 10 << 20 };

static size_t text_bytes;

/* ---- a caller who may want to stop ---- */

typedef struct asked {
    size_t times, stop_at;         /* questions; the one that is answered by yes, 0: none */
    uint64_t last, longest, whole; /* of the thread's own time */
} asked;

static int32_t ask(void *user) {
    asked *a = user;
    const uint64_t now = pith__clock_thread_ns();
    if (a->last && now - a->last > a->longest) a->longest = now - a->last;
    a->last = now;
    return ++a->times == a->stop_at;
}

/* ---- tokenizers ---- */

#define WORDS "\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"ab\":3,\"\\u2581\":4,\"\\u2581a\":5}"
#define LEVEL "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\"," WORDS "}"
#define PAIRS                                                                                      \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\"," WORDS ",\"merges\":[\"a b\",\"\\u2581 "     \
    "a\"]}"
#define PAIRS_OF_WORDS                                                                             \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"end_of_word_suffix\":\"\",\"ignore_"        \
    "merges\":"                                                                                    \
    "true," WORDS ",\"merges\":[\"a b\"]}"
#define BYTES                                                                                      \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"byte_fallback\":false," WORDS               \
    ",\"merges\":[\"a b\"]}"
#define PIECES                                                                                     \
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"a\",-1],[\"b\",-2],"     \
    "[\"ab\",-1.5],[\"\\u2581\",-2],[\"\\u2581a\",-3]]}"

static const struct {
    const char *name, *json;
    bool alike; /* the text is one word without spaces */
} kinds[] = {
    { "bert",
      "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
      "\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\"," WORDS "}}",
      false },
    { "bert, step by step",
      "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"BertNormalizer\"},"
      "{\"type\":\"Nmt\"}]},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," LEVEL "}",
      false },
    { "normal forms",
      "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":"
      "\"StripAccents\"},{\"type\":\"NFKC\"},{\"type\":\"Lowercase\"}]},\"pre_tokenizer\":{"
      "\"type\":\"Whitespace\"}," LEVEL "}",
      false },
    { "replaced",
      "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"b+\"},\"content\":\"bb\"},"
      "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a| \"},\"behavior\":"
      "\"Isolated\",\"invert\":false}," LEVEL "}",
      false },
    { "cut by class",
      "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\"},"
      "{\"type\":\"Digits\"},{\"type\":\"UnicodeScripts\"},{\"type\":\"FixedLength\"}]}," LEVEL "}",
      false },
    { "bytes", "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"}," BYTES "}", false },
    { "bytes of one word",
      "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":false}," BYTES "}", true },
    { "pairs",
      "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}," PAIRS "}",
      false },
    { "pairs of one word", "{" PAIRS "}", true },
    { "pairs that are not cut", "{" PAIRS_OF_WORDS "}", true },
    { "pieces",
      "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}," PIECES "}",
      false },
    { "pieces of one word", "{" PIECES "}", true },
    { "added",
      "{\"added_tokens\":[{\"id\":9,\"content\":\"ba\",\"single_word\":false,\"lstrip\":false,"
      "\"rstrip\":false,\"normalized\":false,\"special\":false}]," PIECES "}",
      true },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char repeated[] = "ab ba B\xC3\xA4"
                               "b a1. \xE4\xB8\xAD b\xCC\x81 ";
enum { REPEATED = sizeof repeated - 1 };
static char *words, *word;

static int make_texts(void **state) {
    (void)state;
    text_bytes = getenv("PITH_TEST_LONG") ? TEXT_LONG : TEXT_BYTES;
    words = malloc(text_bytes);
    word = malloc(text_bytes);
    assert_true(words && word);
    memset(words, ' ', text_bytes);
    for (size_t i = 0; i + REPEATED <= text_bytes; i += REPEATED)
        memcpy(words + i, repeated, REPEATED);
    for (size_t i = 0; i < text_bytes; i++) word[i] = i % 3 ? 'b' : 'a';
    return 0;
}

static int free_texts(void **state) {
    (void)state;
    free(words);
    free(word);
    return 0;
}

static pith_status tokenize(pith_tokens *tokens, const pith_tokenizer *t, pith_str text, asked *a,
                            pith_error *err) {
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    o.call.stop = ask;
    o.call.user = a;
    o.characters = 1;
    const uint64_t begin = a->last = pith__clock_thread_ns();
    const pith_status status = pith_tokenize(tokens, t, text, NULL, &o, err);
    a->whole = pith__clock_thread_ns() - begin;
    if (a->last && begin + a->whole - a->last > a->longest) a->longest = begin + a->whole - a->last;
    return status;
}

static void check_kind(const pith_tokenizer *t, const char *name, pith_str text) {
    pith_error err = PITH_ERROR_INIT;
    pith_tokens all = PITH_TOKENS_INIT, tokens = PITH_TOKENS_INIT;
    asked never = { .stop_at = 0 }, soon = { .stop_at = 2 };
    if (tokenize(&all, t, text, &never, &err)) fail_msg("%s: %s", name, err.message);
    if (getenv("PITH_TEST_LONG"))
        print_message("%-24s %6.1f ms, %4zu questions, %5.1f ms between two\n", name,
                      (double)never.whole / 1e6, never.times, (double)never.longest / 1e6);
    if (never.times < 2) fail_msg("%s: asked %zu times", name, never.times);
    if (tokenize(&tokens, t, text, &soon, &err) != PITH_ERR_CANCELLED)
        fail_msg("%s: %s", name, err.message);
    assert_string_equal(err.message, "cancelled");
    assert_int_equal(tokens.count, 0);
    assert_int_equal(soon.times, 2);
    if (never.times > 40 && soon.whole > never.whole / 2)
        fail_msg("%s: %.1f ms after the call had to end, of %.1f", name, (double)soon.whole / 1e6,
                 (double)never.whole / 1e6);
    /* The same buffers are used again. */
    asked third = { .stop_at = 0 };
    assert_int_equal(tokenize(&tokens, t, text, &third, &err), PITH_OK);
    assert_int_equal(tokens.count, all.count);
    assert_memory_equal(tokens.ids, all.ids, all.count * sizeof *all.ids);
    assert_memory_equal(tokens.end, all.end, all.count * sizeof *all.end);
    pith_tokens_free(&tokens);
    pith_tokens_free(&all);
}

static void test_texts(void **state) {
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        pith_error err = PITH_ERROR_INIT;
        pith__arena arena;
        pith_tokenizer *t;
        pith__arena_init(&arena, &pith__allocator_default);
        if (pith__tokenizer_load_bytes(&t, pith__str_of(kinds[i].json), NULL, &arena, &err))
            fail_msg("%s: %s", kinds[i].name, err.message);
        check_kind(t, kinds[i].name, (pith_str){ kinds[i].alike ? word : words, text_bytes });
        pith__tokenizer_unload(t);
        pith__arena_free(&arena);
    }
}

/* ---- all ways to end a call, one text and many ---- */

static pith_tokenizer *minilm;
static pith__arena minilm_arena;

static int open_minilm(void **state) {
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    pith__arena_init(&minilm_arena, &pith__allocator_default);
    if (pith__tokenizer_load(&minilm, PITH_TEST_DATA "/minilm", NULL, &minilm_arena, &err))
        fail_msg("%s", err.message);
    return make_texts(state);
}

static int close_minilm(void **state) {
    pith__tokenizer_unload(minilm);
    pith__arena_free(&minilm_arena);
    return free_texts(state);
}

typedef struct told {
    size_t calls;
    uint64_t done, total;
} told;

static void tell(void *user, const char *what, uint64_t done, uint64_t total) {
    told *t = user;
    assert_string_equal(what, "texts");
    assert_true(done > t->done && done <= total);
    *t = (told){ t->calls + 1, done, total };
}

static void test_ways(void **state) {
    (void)state;
    enum { TEXTS = 300 };
    static pith_str texts[TEXTS];
    static size_t ends[TEXTS];
    volatile int cancel = 1;
    pith_error err = PITH_ERROR_INIT;
    /* whole repetitions: no character is cut */
    const size_t some = text_bytes / TEXTS / REPEATED * REPEATED;
    for (int i = 0; i < TEXTS; i++) texts[i] = (pith_str){ words, some };
    texts[TEXTS / 2].size = text_bytes;
    for (int threads = 1; threads <= 3; threads++)
        for (int way = 0; way < 3; way++) {
            pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
            asked a = { .stop_at = 2 };
            pith_tokens tokens = PITH_TOKENS_INIT;
            const pith_status wanted = way == 0 ? PITH_ERR_DEADLINE : PITH_ERR_CANCELLED;
            o.call.threads = threads;
            if (way == 0) o.call.deadline_ns = 1;
            if (way == 1) o.call.cancel = &cancel;
            if (way == 2) o.call.stop = ask, o.call.user = &a;
            assert_int_equal(pith_tokenize(&tokens, minilm, texts[TEXTS / 2], NULL, &o, &err),
                             wanted);
            a.times = 0;
            assert_int_equal(
                pith_tokenize_batch(&tokens, ends, minilm, texts, NULL, TEXTS, &o, &err), wanted);
            assert_int_equal(tokens.count, 0);
            o.call = (pith_call){ .size = sizeof o, .threads = threads };
            told t = { 0, 0, 0 };
            o.call.progress = tell;
            o.call.user = &t;
            assert_int_equal(
                pith_tokenize_batch(&tokens, ends, minilm, texts, NULL, TEXTS, &o, &err), PITH_OK);
            assert_int_equal(ends[TEXTS - 1], tokens.count);
            assert_int_equal(t.done, TEXTS);
            pith_tokens_free(&tokens);
        }
}

/* ---- opening ---- */

static void test_opening(void **state) {
    (void)state;
    static const char *const paths[] = { PITH_TEST_DATA "/minilm" };
    volatile int cancel = 1;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (int way = 0; way < 3; way++) {
            pith_error err = PITH_ERROR_INIT;
            pith_open_options o = PITH_OPEN_OPTIONS_INIT;
            asked a = { .stop_at = 1 };
            pith_tokenizer *t = NULL;
            if (way == 0) o.call.deadline_ns = 1;
            if (way == 1) o.call.cancel = &cancel;
            if (way == 2) o.call.stop = ask, o.call.user = &a;
            assert_int_equal(pith_tokenizer_open(&t, paths[i], &o, &err),
                             way == 0 ? PITH_ERR_DEADLINE : PITH_ERR_CANCELLED);
            assert_null(t);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_texts, make_texts, free_texts),
        cmocka_unit_test_setup_teardown(test_ways, open_minilm, close_minilm),
        cmocka_unit_test(test_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
