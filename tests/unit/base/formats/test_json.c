/* The JSON scanner: what RFC 8259 allows is read, what it forbids is refused, messages name the
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/formats/json.h"
#include "base/str.h"

static pith__arena arena;
static pith_error error;
static pith__json json;

static pith__json *scan(const char *text) {
    error = (pith_error)PITH_ERROR_INIT;
    pith__json_init(&json, pith__str_of(text), "t.json", &arena, &error);
    return &json;
}

/* Whether the scanner takes the text as one whole value. */
static bool accepts(const char *text, size_t size) {
    /* An exact copy: reading past the end shows under the address sanitizer. */
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    error = (pith_error)PITH_ERROR_INIT;
    pith__json_init(&json, (pith_str){ copy, size }, "t.json", &arena, &error);
    pith__json_skip(&json);
    pith__json_finish(&json);
    free(copy);
    assert_int_equal(json.failed, error.code != PITH_OK);
    return !json.failed;
}

/* What Python's json writes for numbers that JSON lacks is read where the caller says so. */
static void python_numbers(void **state) {
    (void)state;
    pith__json *j = scan("[NaN, Infinity, -Infinity, 1]");
    j->python = true;
    pith__json_array(j);
    assert_true(pith__json_next_item(j) && isnan(pith__json_double(j)));
    assert_true(pith__json_next_item(j) && pith__json_double(j) == INFINITY);
    assert_true(pith__json_next_item(j) && pith__json_double(j) == -INFINITY);
    assert_true(pith__json_next_item(j) && pith__json_int(j) == 1);
    assert_false(pith__json_next_item(j) || j->failed);
    j = scan("{\"a\": [NaN], \"b\": Infinity}");
    j->python = true;
    pith__json_skip(j);
    pith__json_finish(j);
    assert_false(j->failed);
    for (int i = 0; i < 4; i++) {
        static const char *const bad[] = { "NaNs", "Inf", "-NaN", "nan" };
        j = scan(bad[i]);
        j->python = true;
        pith__json_skip(j);
        pith__json_finish(j);
        assert_true(j->failed);
    }
    j = scan("Infinity");
    j->python = true;
    pith__json_int(j);
    assert_true(j->failed);
}

static int64_t python_int(const char *text) {
    scan(text)->python = true;
    return pith__json_int(&json);
}

/* There, a whole number is one however it is written. */
static void whole_numbers(void **state) {
    (void)state;
    assert_int_equal(python_int("2048.0"), 2048);
    assert_int_equal(python_int("-3.0e2"), -300);
    assert_int_equal(python_int("9007199254740992.0"), INT64_C(1) << 53);
    assert_false(json.failed);
    python_int("2048.5");
    assert_true(json.failed);
    python_int("1e30");
    assert_true(json.failed);
}

static void good_and_bad(void **state) {
    (void)state;
    static const char *const good[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-12",
        "0.5",
        "1e5",
        "1E+5",
        "1.25e-7",
        "\"\"",
        "\"a\"",
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "{\"a\":1,\"b\":[{}]}",
        "\"\\u00e9\\ud83d\\ude00\"",
        "\"\\ud800\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\xf0\x9f\x98\x80\"",
        "\t\r\n1",
        "[[[[[[]]]]]]",
        "{\"\":0}",
        "\"\x7f\"",
        "123456789012345678901234567890",
    };
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "1.e5",
        "0x1",
        "NaN",
        "Infinity",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12",
        "\"a\nb\"",
        "\"\t\"",
        "'a'",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{1:2}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "1 2",
        "[1]]",
        "\"\xff\"",
        "\"\xc3\"",
        "\"\xed\xa0\x80\"",
        "\"\xc0\xaf\"",
        "\"\xf4\x90\x80\x80\"",
        ("\xef\xbb\xbf"
         "1"),
        "/**/1",
        "[1}",
        "{\"a\":1]",
        "\"\\",
        "\"\\u",
        "-a",
        "1a",
        "--1",
        "1.2.3",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!accepts(good[i], strlen(good[i])))
            fail_msg("refused: %s (%s)", good[i], error.message);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (accepts(bad[i], strlen(bad[i]))) fail_msg("accepted: %s", bad[i]);
    assert_false(accepts("\"a\0b\"", 5));
}

static void walking(void **state) {
    (void)state;
    pith__json *j = scan("{\"n\": [1, -2, 9223372036854775807, -9223372036854775808], "
                         "\"s\\u0041\": \"x\\u00e9\\ud83d\\ude00\\n\","
                         " \"lone\": \"\\udc00a\\ud800\", \"t\": true, \"f\": false, \"z\": null, "
                         "\"raw\": {\"a\" : [1, \"]\"]} , "
                         "\"d\": 2.5}");
    static const int64_t want[] = { 1, -2, INT64_MAX, INT64_MIN };
    pith_str key;
    int seen = 0;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        seen++;
        if (pith__str_is(key, "n")) {
            size_t i = 0;
            for (pith__json_array(j); pith__json_next_item(j); i++)
                assert_int_equal(pith__json_int(j), want[i]);
            assert_int_equal(i, 4);
        } else if (pith__str_is(key, "sA")) {
            assert_true(pith__str_is(pith__json_string(j), "x\xc3\xa9\xf0\x9f\x98\x80\n"));
        } else if (pith__str_is(key, "lone")) {
            assert_true(pith__str_is(pith__json_string(j), "\xef\xbf\xbd"
                                                           "a\xef\xbf\xbd"));
        } else if (pith__str_is(key, "t") || pith__str_is(key, "f")) {
            assert_int_equal(pith__json_peek(j), PITH_JSON_BOOL);
            assert_int_equal(pith__json_bool(j), key.data[0] == 't');
        } else if (pith__str_is(key, "z")) {
            assert_true(pith__json_null(j));
        } else if (pith__str_is(key, "raw")) {
            assert_false(pith__json_null(j));
            assert_true(pith__str_is(pith__json_raw(j), "{\"a\" : [1, \"]\"]}"));
        } else if (pith__str_is(key, "d")) {
            assert_true(pith__json_double(j) == 2.5);
        } else {
            fail_msg("key %.*s", (int)key.size, key.data);
        }
    }
    pith__json_finish(j);
    assert_false(j->failed);
    assert_int_equal(seen, 8);
}

static void doubles_are_exact(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0.0",
        "0.1",
        "1e-12",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "1.7976931348623157e308",
        "5e-324",
        "2.2250738585072011e-308",
        "1e400",
        "1e-400",
        "-9.123456789012345",
        "18446744073709551615",
        "99999999999999999999",
        "0.000000000000000000000000000123456789",
        "123456789012345678e-27",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203126",
        "4503599627370496.5",
        "4503599627370497.5",
        "1e-27",
        "9999999999999999999e27",
        "-1e5",
        "1E+05",
        "0e99999",
        "3e-00002",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double got = pith__json_double(scan(texts[i])), want = strtod(texts[i], NULL);
        assert_false(json.failed);
        assert_memory_equal(&got, &want, sizeof got);
    }
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 300000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        char text[64];
        double x;
        if (i & 1) {
            uint64_t bits = random & 0x800FFFFFFFFFFFFFu;
            bits |= (uint64_t)(1023 - 60 + random % 120) << 52;
            memcpy(&x, &bits, sizeof x);
            snprintf(text, sizeof text, "%.*g", 3 + (int)(random >> 40) % 16, x);
        } else {
            snprintf(text, sizeof text, "%llu.%lluE%d", (unsigned long long)(random >> 45),
                     (unsigned long long)(random % 100000000), (int)(random >> 20 & 31) - 16);
        }
        double got = pith__json_double(scan(text)), want = strtod(text, NULL);
        if (memcmp(&got, &want, sizeof got)) fail_msg("%s: %.17g, not %.17g", text, got, want);
    }
}

static void numbers_that_do_not_fit(void **state) {
    (void)state;
    static const char *const texts[] = {
        "9223372036854775808", "-9223372036854775809", "1.0", "1e2", "\"1\"", "true"
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(pith__json_int(scan(texts[i])), 0);
        assert_int_equal(error.code, PITH_ERR_FORMAT);
    }
}

static void messages_name_the_place(void **state) {
    (void)state;
    pith__json *j = scan("{\n \"model\": {\n  \"vocab\": [1,\n 2, \"x\"]}}");
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);)
        for (pith__json_object(j); pith__json_next_key(j, &key);)
            for (pith__json_array(j); pith__json_next_item(j);) pith__json_int(j);
    assert_true(j->failed);
    assert_string_equal(error.message,
                        "t.json:4: model.vocab[2]: expected a number, found a string");
    /* Everything after the first failure returns nothing and changes nothing. */
    assert_int_equal(pith__json_int(j), 0);
    assert_true(pith__str_is(pith__json_string(j), ""));
    assert_false(pith__json_next_item(j));
    assert_false(pith__json_next_key(j, &key));
    assert_int_equal(pith__json_peek(j), PITH_JSON_END);
    pith__json_skip(j);
    pith__json_fail(j, PITH_ERR_UNSUPPORTED, "later");
    assert_string_equal(error.message,
                        "t.json:4: model.vocab[2]: expected a number, found a string");
    assert_false(accepts("{\"a\\u0000\x01\": 1}", 13));
    assert_true(strchr(error.message, '\n') == NULL);
}

static void depth_is_limited(void **state) {
    (void)state;
    char text[2 * PITH_JSON_DEPTH + 3];
    for (int depth = PITH_JSON_DEPTH; depth <= PITH_JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_int_equal(accepts(text, 2 * (size_t)depth), depth == PITH_JSON_DEPTH);
    }
}

static void every_prefix_and_flip_ends(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1.5e3, -2, true, null, {\"k\\u00e9y\": "
                               "\"v\\n\\ud83d\\ude00\"}], \"\xc3\xa9\": false}";
    size_t size = sizeof text - 1;
    for (size_t n = 0; n < size; n++) assert_false(accepts(text, n));
    char copy[sizeof text];
    for (size_t bit = 0; bit < size * 8; bit++) {
        memcpy(copy, text, size);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        accepts(copy, size);
    }
    assert_true(accepts(text, size));
}

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pith__arena_free(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_and_bad),
        cmocka_unit_test(python_numbers),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(walking),
        cmocka_unit_test(doubles_are_exact),
        cmocka_unit_test(numbers_that_do_not_fit),
        cmocka_unit_test(messages_name_the_place),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(every_prefix_and_flip_ends),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
