/* Lines of JSON objects: what is accepted is what Jansson accepts, for documents that were damaged
 * at random; texts are its texts; members are kept as they were written; a fault has its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/base/text_input.h"
#include "cli/input/json_line.h"

#include <cmocka.h> /* it has a macro `fail` */

/* What the files of the command need of the rest of it. */

void *grow(void *memory, size_t size) {
    void *grown = realloc(memory, size ? size : 1);
    if (!grown) abort();
    return grown;
}

void *grow_for(void *items, size_t count, size_t item_bytes) {
    return grow(items, (count + 1) * item_bytes);
}

static json_line line;
static bytes kept;
static pith_str text;
static char name[] = "text";
static const char *const fields[] = { name };

static bool take(const char *data, size_t size) {
    kept.size = 0;
    return json_line_texts(&line, &text, (pith_str){ data, size }, fields, 1, &kept);
}

static void assert_text(pith_str got, const char *data, size_t size) {
    assert_int_equal(got.size, size);
    if (size) assert_memory_equal(got.data, data, size);
}

/* ---- beside Jansson ---- */

static const char *const seeds[] = {
    "{\"text\": \"a cat\", \"n\": [1, 2.5e-3, -0, {\"deep\": [null, true, false]}], \"id\": \"\"}",
    "{\"text\": \"\\ud83d\\ude00 \\u00e9 \\u0000\\n\\t\\\"\\\\\\/\\b\\f\\r\", \"\\u0001\": {}}",
    "{\"\\u0074ext\":\"x\", \"a\": [1, [2, [3, [4, {\"x\": {\"y\": [\"z\"]}}]]]]}",
    "  {\"na\xC3\xAFve\" :\t\"\xF0\x9F\x98\x80\xE2\x82\xAC\" , \"text\":\"\xC3\xA9\"}\r\n",
    "{\"text\": 1, \"text\": \"2\", \"n\": 99999999999999999999, \"text\": \"last\"}",
    "{\"text\": \"\", \"a\":{\"b\":{\"c\":[0,{\"d\":1e9}]}}}",
    "[{\"text\": \"a\"}]",
    "\"text\"",
    "nul",
};
enum { SEEDS = sizeof seeds / sizeof *seeds };

static uint32_t state_of_chance = 1;
static uint32_t chance(uint32_t below) {
    state_of_chance = state_of_chance * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)state_of_chance * below) >> 32);
}

/* Whether Jansson refuses what JSON allows: halves of surrogate pairs, NUL in a key, numbers beyond
 * a double. */
static bool is_own_limit(const json_error_t *fault) {
    return strstr(fault->text, "invalid Unicode") || strstr(fault->text, "NUL byte") ||
           strstr(fault->text, "too big") || strstr(fault->text, "overflow");
}

static void compare(const char *data, size_t size) {
    json_error_t fault;
    json_t *object =
        json_loadb(data, size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY, &fault);
    const json_t *wanted = json_object_get(object, name);
    const bool good = take(data, size);
    if (object || !is_own_limit(&fault)) {
        if (good != json_is_string(wanted))
            fail_msg("%.*s: %s, Jansson: %s", (int)size, data, line.message, fault.text);
        if (good) assert_text(text, json_string_value(wanted), json_string_length(wanted));
        if (!good)
            assert_int_equal(json_is_object(object),
                             !strncmp(line.message, "the field ", 10) ||
                                 !strncmp(line.message, "there is no ", 12));
    }
    if (good && object) { /* what is kept, closed, is the same object but for its last comma */
        assert_true(kept.size > 0);
        if (kept.data[kept.size - 1] == ',') kept.size--;
        bytes_add(&kept, "}", 1);
        json_t *again =
            json_loadb(kept.data, kept.size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &fault);
        assert_true(json_equal(again, object));
        json_decref(again);
    }
    json_decref(object);
}

static void test_damaged(void **state) {
    (void)state;
    static const char marks[] = "{}[],:\"\\/u0123456789abcdefDF.-+eEntrls \n\t\x01\x10";
    for (int i = 0; i < SEEDS; i++) compare(seeds[i], strlen(seeds[i]));
    for (int i = 0; i < 200000; i++) {
        char damaged[600];
        const char *seed = seeds[chance(SEEDS)];
        size_t size = strlen(seed);
        memcpy(damaged, seed, size);
        for (uint32_t edits = 1 + chance(3); edits && size; edits--) {
            const size_t at = chance((uint32_t)size), kind = chance(8);
            if (kind == 0) {
                size = at; /* cut */
            } else if (kind < 4) {
                damaged[at] = marks[chance(sizeof marks - 1)];
            } else if (kind < 6) {
                memmove(damaged + at, damaged + at + 1, --size - at);
            } else {
                memmove(damaged + at + 1, damaged + at, size - at);
                damaged[at] = marks[chance(sizeof marks - 1)];
                size++;
            }
        }
        /* Lines were checked before they are scanned. */
        compare(damaged, pith_text_valid((pith_str){ damaged, size }));
    }
}

/* ---- messages ---- */

static void test_messages(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        { "[]", "this is not a JSON object" },
        { "", "this is not a JSON object" },
        { "{}", "there is no field 'text'; the object is empty" },
        { "{\"id\": 1, \"b\\u0065\": 2}", "there is no field 'text'; the object has id, be" },
        { "{\"text\": [\"a\"]}", "the field 'text' holds an array, not a string" },
        { "{\"text\": -1}", "the field 'text' holds a number, not a string" },
        { "{\"text\": nul}", "text: an unknown word" },
        { "{\"text\": \"a\"", "text: the text ends inside" },
        { "{\"text\": \"a\" 1}", "text: expected a comma or the end" },
        { "{\"text\": \"a\"}}", "there is more text after the value" },
        { "{\"text\": }", "text: expected a value" },
        { "{\"text\":", "text: the text ends where a value should be" },
        { "{\"a\": [1, {\"b\": 01}]}", "a[1].b: a malformed number" },
        { "{\"a\": \"\\x\"}", "a: a bad escape in a string" },
        { "{\"a\": \"\t\"}", "a: a control character in a string" },
        { "{\"a\": \"b", "a: a string is not closed" },
        { "{1: 2}", "expected a key" },
        { "{\"a\" 2}", "a: expected a colon" },
        { "{\"\xC2\x85\": x}", "\\xc2\\x85: expected a value" },
        { "{\"text\": \"\\ud800\"}",
          "the field 'text' has half of a surrogate pair, which is not a "
          "character (--invalid replace puts U+FFFD in its place)" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(take(rows[i][0], strlen(rows[i][0])));
        assert_string_equal(line.message, rows[i][1]);
    }
    assert_false(take("{\"text\": \"\0\"}", 13)); /* which Jansson passes over in places */
    assert_string_equal(line.message, "text: a control character in a string");
    assert_false(take("{\"text\": \"a\"\0}", 14));
    assert_string_equal(line.message, "text: expected a comma or the end");
    line.replace = true;
    assert_true(take("{\"text\": \"\\ud800\"}", 18));
    assert_text(text, "\xEF\xBF\xBD", 3);
    line.replace = false;
}

/* A path that does not fit is cut; of 256 levels, the object is one. */
static void test_bounds(void **state) {
    (void)state;
    enum { DEPTH = 256 };
    bytes long_key = { NULL, 0, 0 };
    bytes_print(&long_key, "{\"");
    for (int i = 0; i < 400; i++) bytes_print(&long_key, "\xE2\x82\xAC");
    bytes_print(&long_key, "\": {\"a\": x}}");
    assert_false(take(long_key.data, long_key.size));
    free(long_key.data);
    assert_int_equal(pith_text_valid((pith_str){ line.message, strlen(line.message) }),
                     strlen(line.message));
    assert_non_null(strstr(line.message, "\xE2\x82\xAC.a: expected a value"));
    assert_true(strlen(line.message) < 300);
    for (size_t depth = DEPTH - 1; depth <= DEPTH; depth++) {
        char nested[2 * DEPTH + 32] = "{\"text\": \"a\", \"b\": ";
        const size_t begin = strlen(nested);
        memset(nested + begin, '[', depth);
        memset(nested + begin + depth, ']', depth);
        strcpy(nested + begin + 2 * depth, "}");
        assert_int_equal(take(nested, strlen(nested)), depth < DEPTH);
        if (depth == DEPTH) assert_non_null(strstr(line.message, "nested deeper than 256 levels"));
    }
}

/* ---- members ---- */

static void assert_kept(const char *source, const char *wanted) {
    assert_true(take(source, strlen(source)));
    assert_text((pith_str){ kept.data, kept.size }, wanted, strlen(wanted));
}

static void test_kept(void **state) {
    (void)state;
    static const char *const dropped[] = { "begin", NULL };
    const char *names[] = { "id", "n" };
    const string_list list = { names, 2 };
    assert_kept("{\"id\" : 1.50,  \"text\": \"\\u0061\" }",
                "{\"id\" : 1.50,  \"text\": \"\\u0061\",");
    assert_kept("\xEF\xBB\xBF{\"text\":\"a\"}", "{\"text\":\"a\",");
    line.added = "embedding";
    assert_kept("{\"embedding\": [1], \"text\": \"a\"}", "{ \"text\": \"a\",");
    assert_kept("{\"text\": \"a\", \"embeddin\\u0067\": 0}", "{\"text\": \"a\",");
    line.dropped = dropped;
    assert_kept("{\"begin\": 0, \"text\": \"a\", \"id\": 1, \"id\": 2}",
                "{ \"text\": \"a\", \"id\": 1, \"id\": 2,");
    line.kept = &list;
    assert_kept("{\"text\": \"a\", \"n\":\n 1e400, \"id\": \"\\ud800\"}",
                "{ \"n\":\n 1e400, \"id\": \"\\ud800\",");
    assert_kept("{\"text\": \"a\"}", "{");
    json_line_free(&line);
    json_line_init(&line, false);
}

/* ---- ids ---- */

static void test_ids(void **state) {
    (void)state;
    static const struct {
        const char *source, *message; /* NULL: ids 7 and 2147483647, or one of them */
        size_t count;
        bool single;
    } rows[] = {
        { "[7, 2147483647]", NULL, 2, false },
        { " {\"a\": [], \"ids\": [7,2147483647]}", NULL, 2, false },
        { "7", NULL, 1, true },
        { "[]", NULL, 0, false },
        { "7", "expected an array, found a number", 0, false },
        { "[7, -1]", "[1]: -1 is not a token id", 0, false },
        { "[2147483648]", "[0]: 2147483648 is not a token id", 0, false },
        { "[99999999999999999999]", "[0]: 99999999999999999999 is too large", 0, false },
        { "[7.0]", "[0]: 7.0 is not a whole number", 0, false },
        { "[\"7\"]", "[0]: expected a number, found a string", 0, false },
        { "{\"id\": [7]}", "there is no field 'ids'", 0, false },
        { "[7] 8", "there is more text after the value", 0, false },
        { "-1", "-1 is not a token id", 0, true },
    };
    int32_t *ids = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 0;
        const pith_str source = { rows[i].source, strlen(rows[i].source) };
        const bool good = json_line_ids(&line, &ids, &count, source, rows[i].single);
        assert_int_equal(good, !rows[i].message);
        if (rows[i].message) assert_string_equal(line.message, rows[i].message);
        if (!good) continue;
        assert_int_equal(count, rows[i].count);
        if (count > 0) assert_int_equal(ids[0], 7);
        if (count > 1) assert_int_equal(ids[1], INT32_MAX);
    }
    free(ids);
}

static int setup(void **state) {
    (void)state;
    json_line_init(&line, false);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_line_free(&line);
    free(kept.data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_bounds),  cmocka_unit_test(test_kept),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
