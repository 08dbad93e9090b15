/* The command's scanner of JSON lines beside the library's: the same values, and the same words for
 * the same faults, for documents that were damaged at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/base/cut_text.c"
#include "../../cli/base/safe_text.c"
#include "../../cli/input/json_scan.c"
#include "base/formats/json.h"
#include "base/unicode/utf8.h"

#include <cmocka.h> /* it has a macro `fail` */

/* What the scanner takes from the rest of the command. */

void *grow(void *memory, size_t size) {
    void *grown = realloc(memory, size ? size : 1);
    if (!grown) abort();
    return grown;
}

void list_add(string_list *list, const char *item) {
    list->items = grow(list->items, (list->count + 1) * sizeof *list->items);
    list->items[list->count++] = item;
}

void bytes_print(bytes *b, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert_true(n >= 0 && (size_t)n < sizeof text);
    b->data = grow(b->data, b->size + (size_t)n + 1);
    memcpy(b->data + b->size, text, (size_t)n);
    b->size += (size_t)n;
}

static const char *const seeds[] = {
    "{\"text\": \"a cat\", \"n\": [1, 2.5e-3, -0, {\"deep\": [null, true, false]}], \"embedding\": "
    "\"\"}",
    "{\"ids\": [101, 2023, 102, -5, 2147483648, 9223372036854775807, 99999999999999999999, 1.5, "
    "07]}",
    "[1, [2, [3, [4, {\"x\": {\"y\": [\"z\"]}}]]]]",
    "{\"\\u0074ext\": \"\\ud83d\\ude00 \\ud800 \\u00e9 \\n\\t\\\"\\\\\\/\\b\\f\\r\", "
    "\"\\u0001\\u0085k\": {}, \"\": "
    "[]}",
    "  {\"na\xC3\xAFve\" :\t\"\xF0\x9F\x98\x80\xE2\x82\xAC\" , "
    "\"a\":{\"b\":{\"c\":[0,{\"d\":1e9}]}}}\r\n",
    "\"just text\"",
    "-12",
    "nul",
};
enum { SEEDS = sizeof seeds / sizeof *seeds };

static uint32_t state_of_chance = 1;
static uint32_t chance(uint32_t below) {
    state_of_chance = state_of_chance * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)state_of_chance * below) >> 32);
}

typedef struct both {
    json_scan mine;
    pith__json theirs;
    pith__arena arena;
    pith_error err;
    string_list decoded;
} both;

static void both_begin(both *b, pith_str text) {
    b->err = (pith_error)PITH_ERROR_INIT;
    b->decoded = (string_list){ NULL, 0 };
    pith__arena_init(&b->arena, &pith__allocator_default);
    json_scan_begin(&b->mine, text, &b->decoded);
    pith__json_init(&b->theirs, text, NULL, &b->arena, &b->err);
}

static void both_end(both *b) {
    json_scan_end(&b->mine);
    pith__json_finish(&b->theirs);
    assert_int_equal(b->mine.failed, b->theirs.failed);
    if (b->mine.failed) assert_string_equal(b->mine.message, b->err.message);
    for (size_t i = 0; i < b->decoded.count; i++) free((char *)(uintptr_t)b->decoded.items[i]);
    free(b->decoded.items);
    pith__arena_free(&b->arena);
}

static void same(pith_str a, pith_str b) {
    assert_int_equal(a.size, b.size);
    if (a.size) assert_memory_equal(a.data, b.data, a.size);
}

/* Reads a value of each, by its kind, containers to some depth; deeper ones are passed over. */
static void both_value(both *b, int depth) {
    pith_str mine, theirs;
    pith__json_kind kind = pith__json_peek(&b->theirs);
    char first = json_scan_peek(&b->mine);
    assert_int_equal(!first, kind == PITH_JSON_END);
    if (kind == PITH_JSON_OBJECT && depth < 3) {
        json_scan_object(&b->mine);
        pith__json_object(&b->theirs);
        for (;;) {
            bool more = pith__json_next_key(&b->theirs, &theirs);
            assert_int_equal(json_scan_key(&b->mine, &mine), more);
            if (!more) return;
            same(mine, theirs);
            both_value(b, depth + 1);
        }
    } else if (kind == PITH_JSON_ARRAY && depth < 3) {
        json_scan_array(&b->mine);
        pith__json_array(&b->theirs);
        for (;;) {
            bool more = pith__json_next_item(&b->theirs);
            assert_int_equal(json_scan_item(&b->mine), more);
            if (!more) return;
            both_value(b, depth + 1);
        }
    } else if (kind == PITH_JSON_NUMBER || chance(8) == 0) {
        assert_true(json_scan_int(&b->mine) == pith__json_int(&b->theirs));
    } else if (kind == PITH_JSON_STRING || chance(8) == 0) {
        same(json_scan_string(&b->mine), pith__json_string(&b->theirs));
    } else if (kind != PITH_JSON_ARRAY && chance(8) == 0) {
        json_scan_array(&b->mine);
        pith__json_array(&b->theirs);
    } else {
        mine = json_scan_skip(&b->mine);
        theirs = pith__json_raw(&b->theirs);
        same(mine, theirs);
    }
}

static void compare(pith_str text) {
    both *b = grow(NULL, sizeof *b);
    both_begin(b, text);
    json_scan_skip(&b->mine);
    pith__json_skip(&b->theirs);
    both_end(b);
    both_begin(b, text);
    both_value(b, 0);
    both_end(b);
    free(b);
}

static void test_damaged(void **state) {
    (void)state;
    static const char marks[] = "{}[],:\"\\/u0123456789abcdefDF.-+eEntrls \n\t\x01\x10";
    for (int i = 0; i < SEEDS; i++) compare((pith_str){ seeds[i], strlen(seeds[i]) });
    for (int i = 0; i < 200000; i++) {
        char text[600];
        const char *seed = seeds[chance(SEEDS)];
        size_t size = strlen(seed);
        memcpy(text, seed, size);
        for (uint32_t edits = 1 + chance(4); edits && size; edits--) {
            size_t at = chance((uint32_t)size), kind = chance(4);
            if (kind == 0) {
                size = at; /* cut */
            } else if (kind == 1) {
                text[at] = marks[chance(sizeof marks)];
            } else if (kind == 2) {
                memmove(text + at, text + at + 1, --size - at);
            } else {
                memmove(text + at + 1, text + at, size - at);
                text[at] = marks[chance(sizeof marks)];
                size++;
            }
        }
        size = pith__utf8_valid_prefix(text, size); /* lines were checked before they are scanned */
        compare((pith_str){ text, size });
    }
}

/* Paths and places that do not fit a message. */
static void test_long_paths(void **state) {
    (void)state;
    static const char *const parts[] = { "k", "\\u0001\\u0085\\u0000x", "na\xC3\xAFve",
                                         "\xE2\x82\xAC\xE2\x82\xAC" };
    for (size_t repeat = 1; repeat < 400; repeat += 7) {
        for (size_t part = 0; part < 4; part++) {
            for (int levels = 1; levels <= 3; levels++) {
                bytes text = { NULL, 0, 0 };
                for (int level = 0; level < levels; level++) {
                    bytes_print(&text, "{\"");
                    for (size_t i = 0; i < repeat; i++) bytes_print(&text, "%s", parts[part]);
                    bytes_print(&text, "\":");
                }
                bytes_print(&text, "1x");
                compare((pith_str){ text.data, text.size });
                free(text.data);
            }
        }
    }
}

static void test_depth(void **state) {
    (void)state;
    char text[2 * JSON_SCAN_DEPTH + 2];
    for (size_t depth = JSON_SCAN_DEPTH - 1; depth <= JSON_SCAN_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        compare((pith_str){ text, 2 * depth });
        compare((pith_str){ text, depth });
    }
    compare((pith_str){ NULL, 0 });
    compare((pith_str){ "{\"a\0b\": \"\0\"}", 12 });
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_damaged),
                                        cmocka_unit_test(test_long_paths),
                                        cmocka_unit_test(test_depth) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
