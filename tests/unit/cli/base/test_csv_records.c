/* Rows that come line by line are those that the parser of whole tables finds, for random texts;
 * their objects are JSON with the same cells; a row that is bad does not touch those behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/base/csv_records.h"

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

static uint32_t state_of_chance = 1;
static uint32_t chance(uint32_t below) {
    state_of_chance = state_of_chance * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)state_of_chance * below) >> 32);
}

/* What was found in a text: a line for each row, its object or "bad: " and why. */
static bytes found;

/* False: the file is at fault. */
static bool take_rows(csv_records *r) {
    char why[600];
    bool faulty = false;
    while (!faulty) {
        const size_t from = found.size;
        const csv_found what = csv_records_next(r, &found, false, why, sizeof why);
        if (what == CSV_NONE) return true;
        faulty = what == CSV_FAULT;
        if (what != CSV_ROW) assert_int_equal(found.size, from);
        if (what != CSV_ROW) bytes_print(&found, "%s: %.200s", faulty ? "fault" : "bad", why);
        bytes_add(&found, "\n", 1);
    }
    return false;
}

/* Gives the text line by line; the last line may lack its end. */
static void read_rows(pith_str text, char usual) {
    csv_records r;
    csv_records_open(&r, usual);
    found.size = 0;
    bool good = true;
    for (size_t at = 0; good && at < text.size;) {
        const char *stop = memchr(text.data + at, '\n', text.size - at);
        const size_t end = stop ? (size_t)(stop - text.data) : text.size, from = r.text.size;
        bytes_add(&r.text, text.data + at, end - at);
        at = end + (stop != NULL);
        if (csv_records_line(&r, from)) good = take_rows(&r);
    }
    if (good && csv_records_waiting(&r)) take_rows(&r);
    csv_records_close(&r);
    bytes_add(&found, "", 1);
}

/* ---- beside the parser of tables ---- */

static void compare_row(const pith__text_table *table, size_t row, const char *line, size_t size) {
    json_t *object = json_loadb(line, size, 0, NULL);
    if (!object) fail_msg("row %zu: %.*s is no JSON", row + 1, (int)size, line);
    assert_int_equal(json_object_size(object), table->columns);
    for (size_t i = 0; i < table->columns; i++) {
        char name[20];
        const pith_str cell = table->cells[row * table->columns + i];
        snprintf(name, sizeof name, "%.*s", (int)table->names[i].size, table->names[i].data);
        const json_t *value = json_object_get(object, name);
        assert_int_equal(json_string_length(value), cell.size);
        assert_memory_equal(json_string_value(value), cell.size ? cell.data : "", cell.size);
    }
    json_decref(object);
}

static void compare(pith_str text) {
    pith__text_table table = { .path = "t" };
    pith_error err = PITH_ERROR_INIT;
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    read_rows(text, ',');
    if (!pith__csv_parse(&table, text, ',', "t", NULL, &arena, &err)) {
        const char *line = found.data;
        for (size_t row = 0; row < table.rows; row++) {
            const size_t size = strcspn(line, "\n");
            compare_row(&table, row, line, size);
            line += size + 1;
        }
        if (*line) fail_msg("'%.*s': more rows: %s", (int)text.size, text.data, line);
    }
    pith__arena_free(&arena);
}

static void test_random(void **state) {
    (void)state;
    static const char marks[] = "a,\"\n\",\r b\\;\t\xC3\xA9";
    static const char *const headers[] = { "a,b\n", "a\n",
                                           "\xEF\xBB\xBF"
                                           "a,b,c\r\n",
                                           "\"a\",\"b\nb\"\r" };
    for (int i = 0; i < 200000; i++) {
        char text[80];
        size_t size = strlen(strcpy(text, headers[chance(4)]));
        for (uint32_t more = chance(40); more; more--) {
            const uint32_t kind = chance(sizeof marks - 2);
            text[size++] = marks[kind];
            if (marks[kind] == '\xC3') text[size++] = '\xA9';
        }
        if ((unsigned char)text[size - 1] == 0xC3) size--;
        compare((pith_str){ text, pith_text_valid((pith_str){ text, size }) });
    }
}

/* ---- rows that are bad ---- */

static void assert_rows(const char *text, size_t size, char usual, const char *wanted) {
    read_rows((pith_str){ text, size }, usual);
    assert_string_equal(found.data, wanted);
}
#define ROWS(text, wanted) assert_rows(text, sizeof text - 1, ',', wanted)

static void test_bad(void **state) {
    (void)state;
    ROWS("a,b\n1,2\n3\n4,5,6\n7,8\n",
         "{\"a\":\"1\",\"b\":\"2\"}\nbad: the row has 1 cell, but the header has 2\n"
         "bad: the row has 3 cells, but the header has 2\n{\"a\":\"7\",\"b\":\"8\"}\n");
    ROWS("a,b\nx\0y,2\n3,4\n",
         "bad: column \"a\": there is a NUL byte\n{\"a\":\"3\",\"b\":\"4\"}\n");
    ROWS("a,b\n1,x\xFF\n3,4\n", "bad: column \"b\": not UTF-8 at byte 2 (--invalid replace puts "
                                "U+FFFD in its place)\n{\"a\":\"3\",\"b\":\"4\"}\n");
    ROWS("a\n\"x\ny\n", "bad: the quotation mark that opens the cell is never closed\n");
    ROWS("a\n\"x\"y\n", "{\"a\":\"xy\"}\n"); /* as spreadsheets read it */
    ROWS("a,a\n", "fault: the header, column 2: another one has the same name\n");
    ROWS("", "");
    ROWS("\n\n", "");
    assert_rows("a\tb\n1,2\t3\n", 10, '\t', "{\"a\":\"1,2\",\"b\":\"3\"}\n");
    ROWS("a;b\n1,2;3\n", "{\"a\":\"1,2\",\"b\":\"3\"}\n");
}

static int teardown(void **state) {
    (void)state;
    free(found.data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_bad) };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
