/* test_bm25.c - sparse vectors of BM25 beside fastembed (tests/data/lexical), and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "support/failing_alloc.h"
#include "base/murmur.h"
#include "models/lexical/words.h"
#include "pith/pith.h"

#define STOPS PITH_TEST_DATA "/lexical/stops"
enum { CASES = 60, ENTRIES = 400 };

typedef struct bm25_case {
    pith_bm25_options options;
    const char *stops[8];
    pith_str text;
    int64_t indices[ENTRIES], query[ENTRIES];
    double values[ENTRIES];
    size_t count, query_count;
} bm25_case;

static bm25_case cases[CASES];
static size_t case_count;
static pith__arena arena;

static void read_list(pith__json *j, bm25_case *c, pith_str key) {
    size_t n = 0;
    for (pith__json_array(j); pith__json_next_item(j); n++) {
        assert_true(n < ENTRIES);
        if (pith__str_is(key, "stopwords"))
            c->stops[n] = pith__arena_str(&arena, pith__json_string(j)).data;
        else if (pith__str_is(key, "values"))
            c->values[n] = pith__json_double(j);
        else
            (pith__str_is(key, "query") ? c->query : c->indices)[n] = pith__json_int(j);
    }
    if (pith__str_is(key, "stopwords")) {
        c->options.stop_words = c->stops;
        c->options.stop_word_count = n;
    } else if (pith__str_is(key, "indices")) {
        c->count = n;
    } else if (pith__str_is(key, "query")) {
        c->query_count = n;
    }
}

/* 0 stands for the default, and a negative number for 0. */
static double number(double x) { return x == 0 ? -1 : x; }

static void read_case(bm25_case *c, pith_str line) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str key;
    c->options = (pith_bm25_options)PITH_BM25_OPTIONS_INIT;
    pith__json_init(&j, line, "cases.jsonl", &arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (pith__str_is(key, "language"))
            c->options.language = pith__arena_str(&arena, pith__json_string(&j)).data;
        else if (pith__str_is(key, "text"))
            c->text = pith__json_string(&j);
        else if (pith__str_is(key, "k"))
            c->options.k = number(pith__json_double(&j));
        else if (pith__str_is(key, "b"))
            c->options.b = number(pith__json_double(&j));
        else if (pith__str_is(key, "avg_len"))
            c->options.avg_len = pith__json_double(&j);
        else if (pith__str_is(key, "token_max_length"))
            c->options.token_max_length = (int32_t)pith__json_int(&j);
        else if (pith__str_is(key, "disable_stemmer"))
            c->options.no_stemming = pith__json_bool(&j);
        else
            read_list(&j, c, key);
    }
    if (j.failed) fail_msg("%s", err.message);
}

static int read_cases(void **state) {
    static pith__file file;
    (void)state;
    pith__arena_init(&arena, &pith__allocator_default);
    if (pith__file_open(&file, PITH_TEST_DATA "/lexical/cases.jsonl", false, NULL, NULL)) return -1;
    const char *p = (const char *)file.data, *end = p + file.size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        read_case(&cases[case_count++], (pith_str){ p, (size_t)(stop - p) });
        p = stop + 1;
    }
    return 0;
}

static pith_bm25 *open_bm25(const pith_bm25_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_bm25 *bm25 = NULL;
    if (pith_bm25_open(&bm25, STOPS, options, &err)) fail_msg("%s", err.message);
    return bm25;
}

static void encode(pith_bm25_rows *rows, const pith_bm25 *bm25, const pith_str *texts, size_t count,
                   int role, int threads) {
    pith_error err = PITH_ERROR_INIT;
    const pith_call call = { .size = sizeof call, .threads = threads };
    if (pith_bm25_encode(rows, bm25, texts, count, role, &call, &err)) fail_msg("%s", err.message);
}

static void test_fastembed(void **state) {
    (void)state;
    assert_true(case_count > 30);
    for (size_t i = 0; i < case_count; i++) {
        const bm25_case *c = &cases[i];
        pith_bm25 *bm25 = open_bm25(&c->options);
        pith_bm25_rows rows;
        encode(&rows, bm25, &c->text, 1, PITH_ROLE_DOCUMENT, 1);
        if (rows.sparse.offsets[1] != (int64_t)c->count)
            fail_msg("case %zu: %lld entries, not %zu", i, (long long)rows.sparse.offsets[1],
                     c->count);
        for (size_t n = 0; n < c->count; n++) {
            if (rows.sparse.indices[n] != c->indices[n])
                fail_msg("case %zu: %.*s: %d, not %lld", i, (int)c->text.size, c->text.data,
                         rows.sparse.indices[n], (long long)c->indices[n]);
            assert_true(fabs(rows.sparse.values[n] - c->values[n]) <= 1e-6);
        }
        pith_bm25_rows_free(&rows, bm25);
        encode(&rows, bm25, &c->text, 1, PITH_ROLE_QUERY, 1);
        assert_int_equal(rows.sparse.offsets[1], c->query_count);
        for (size_t n = 0; n < c->query_count; n++) {
            assert_int_equal(rows.sparse.indices[n], c->query[n]);
            assert_true(rows.sparse.values[n] == 1);
        }
        pith_bm25_rows_free(&rows, bm25);
        pith_bm25_close(bm25);
    }
}

/* A row has the same bits among others, and with any number of threads. */
static void test_bits(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static pith_str texts[MANY];
    pith_bm25 *bm25 = open_bm25(NULL);
    pith_bm25_rows all, one;
    for (size_t i = 0; i < MANY; i++) texts[i] = cases[i * 7 % case_count].text;
    encode(&all, bm25, texts, MANY, PITH_ROLE_DOCUMENT, 1);
    for (size_t i = 0; i < 60; i++) {
        int64_t from = all.sparse.offsets[i], count = all.sparse.offsets[i + 1] - from;
        encode(&one, bm25, &texts[i], 1, PITH_ROLE_DOCUMENT, 1);
        assert_int_equal(one.sparse.offsets[1], count);
        if (count) {
            assert_memory_equal(one.sparse.indices, all.sparse.indices + from,
                                (size_t)count * sizeof(int32_t));
            assert_memory_equal(one.sparse.values, all.sparse.values + from,
                                (size_t)count * sizeof(float));
        }
        pith_bm25_rows_free(&one, bm25);
    }
    for (int threads = 2; threads <= 8; threads++) {
        const size_t entries = (size_t)all.sparse.offsets[MANY];
        encode(&one, bm25, texts, MANY, PITH_ROLE_DOCUMENT, threads);
        assert_memory_equal(one.sparse.offsets, all.sparse.offsets, (MANY + 1) * sizeof(int64_t));
        assert_memory_equal(one.sparse.indices, all.sparse.indices, entries * sizeof(int32_t));
        assert_memory_equal(one.sparse.values, all.sparse.values, entries * sizeof(float));
        pith_bm25_rows_free(&one, bm25);
    }
    pith_bm25_rows_free(&all, bm25);
    encode(&all, bm25, NULL, 0, PITH_ROLE_DOCUMENT, 0);
    assert_int_equal(all.sparse.offsets[0], 0);
    pith_bm25_rows_free(&all, bm25);
    pith_bm25_close(bm25);
}

/* Known answers of MurmurHash3_x86_32. Source: smhasher, and mmh3 of PyPI. */
static void test_murmur(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t seed, hash;
    } rows[] = { { "", 0, 0 },
                 { "", 1, 0x514E28B7 },
                 { "test", 0, 0xba6bd213 },
                 { "Hello, world!", 0, 0xc0363e43 },
                 { "aaaa", 0x9747b28c, 0x5A97808A },
                 { "aaa", 0x9747b28c, 0x283E0130 },
                 { "aa", 0x9747b28c, 0x5D211726 },
                 { "a", 0x9747b28c, 0x7FA09EA6 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(pith__murmur3_32(rows[i].text, strlen(rows[i].text), rows[i].seed),
                         rows[i].hash);
}

static void test_words(void **state) {
    (void)state;
    static const struct {
        const char *text, *words; /* with | between them */
    } rows[] = {
        { "", "" },
        { "...", "" },
        { "One two_3", "one|two_3" },
        { "ÄÖ-ü", "äö|ü" },
        { "ΟΔΥΣΣΕΥΣ ΣΑΣ", "οδυσσευς|σας" },
        { "İx", "i|x" },
        { "İΣ ΣİΣʰ", "i|ς|σi|ςʰ" },
        { "a\xCC\x81z", "a|z" },
        { "½ ²x ⅷ", "½|²x|ⅷ" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith__words w;
        char joined[100] = "";
        pith__words_begin(&w, pith__str_of(rows[i].text));
        while (pith__words_next(&w))
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%.*s",
                     *joined ? "|" : "", (int)w.size, w.word);
        assert_string_equal(joined, rows[i].words);
    }
}

static void refused(pith_bm25_options options, const char *dir, pith_status status,
                    const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_bm25 *bm25;
    assert_int_equal(pith_bm25_open(&bm25, dir, &options, &err), status);
    if (!strstr(err.message, says)) fail_msg("%s", err.message);
}

static void test_refused(void **state) {
    (void)state;
    const pith_bm25_options good = PITH_BM25_OPTIONS_INIT;
    pith_bm25_options o = good;
    o.language = "klingon";
    refused(o, STOPS, PITH_ERR_ARGUMENT,
            "language 'klingon' is not known; known are arabic, danish");
    o.language = "eng";
    refused(o, STOPS, PITH_ERR_ARGUMENT, "is not known");
    o.language = "";
    refused(o, STOPS, PITH_ERR_ARGUMENT, "is not known");
    o = good, o.k = 1e7;
    refused(o, STOPS, PITH_ERR_ARGUMENT, "k is 1e+07; it must be from 0 to 1e6");
    o = good, o.b = 1.5;
    refused(o, STOPS, PITH_ERR_ARGUMENT, "b is 1.5; it must be from 0 to 1");
    o = good, o.b = (double)NAN;
    refused(o, STOPS, PITH_ERR_ARGUMENT, "b is");
    o = good, o.avg_len = -1;
    refused(o, STOPS, PITH_ERR_ARGUMENT, "avg_len is -1");
    o = good, o.token_max_length = -1;
    refused(o, STOPS, PITH_ERR_ARGUMENT, "token_max_length is -1");
    refused(good, "/nowhere/at/all", PITH_ERR_NOT_FOUND, "/nowhere/at/all");
    refused(good, STOPS "/english.txt", PITH_ERR_ARGUMENT,
            "is not a directory with lists of stop words");
    pith_bm25 *bm25 = open_bm25(NULL);
    pith_bm25_rows rows;
    pith_error err = PITH_ERROR_INIT;
    const pith_str texts[] = { PITH_STR("fine"), { "\xFF", 1 }, { "\xFE", 1 } };
    assert_int_equal(pith_bm25_encode(&rows, bm25, texts, 3, PITH_ROLE_DOCUMENT, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "text 1: is not UTF-8");
    assert_int_equal(pith_bm25_encode(&rows, bm25, texts, 1, 7, NULL, &err), PITH_ERR_ARGUMENT);
    const pith_call bad = { .size = sizeof bad, .threads = -1 };
    assert_int_equal(pith_bm25_encode(&rows, bm25, texts, 1, 0, &bad, &err), PITH_ERR_ARGUMENT);
    encode(&rows, bm25, texts, 1, PITH_ROLE_DOCUMENT, 1); /* the handle stays usable */
    assert_int_equal(rows.sparse.offsets[1], 1);
    pith_bm25_rows_free(&rows, bm25);
    pith_bm25_close(bm25);
    pith_bm25_close(NULL);
}

/* Every allocation may fail; nothing leaks. */
static void test_memory(void **state) {
    (void)state;
    long n = 1;
    for (bool all_there = false; !all_there; n++) {
        counter c = { .fail_at = n };
        pith_allocator allocator = { count_alloc, count_free, &c };
        pith_bm25_options o = PITH_BM25_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_bm25 *bm25 = NULL;
        pith_bm25_rows rows;
        o.call.allocator = &allocator;
        pith_status status = pith_bm25_open(&bm25, STOPS, &o, &err);
        if (!status) {
            status =
                pith_bm25_encode(&rows, bm25, &cases[0].text, 1, PITH_ROLE_DOCUMENT, NULL, &err);
            if (!status) pith_bm25_rows_free(&rows, bm25);
            pith_bm25_close(bm25);
        }
        all_there = c.calls < n;
        assert_int_equal(status, all_there ? PITH_OK : PITH_ERR_MEMORY);
        assert_int_equal(c.live, 0);
    }
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fastembed), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_murmur),    cmocka_unit_test(test_words),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, read_cases, NULL);
    pith__arena_free(&arena);
    return failed;
}
