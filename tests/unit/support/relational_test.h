/* relational_test.h - databases for tests: made of tests/data/shop, or of tables that a test
 * writes. */
#ifndef PITH_TESTS_RELATIONAL_TEST_H
#define PITH_TESTS_RELATIONAL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/work.h"
#include "pith/pith.h"
#include "pith/tables.h"
#include "tables/database/database.h"

#define SHOP PITH_TEST_DATA "/shop"

/* A call on so many threads, as the API takes it and as the library passes it on. */
#define CALL(number) (&(pith_call){ .size = sizeof(pith_call), .threads = (number) })
#define WORK(number) (&(pith__work){ .threads = (number) })
#define WRITER(function, to) (&(pith_writer){ .write = (function), .user = (to) })

static inline int32_t test_write_file(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

/* A directory of its own for the test program. */
static inline const char *test_directory(void) {
    static char path[256];
    if (!*path) {
        snprintf(path, sizeof path, "%s/relational-%d", PITH_BINARY_DIR, (int)getpid());
        mkdir(path, 0700);
    }
    return path;
}

static inline void test_put(const char *name, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", test_directory(), name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static inline void test_clean(void) {
    char line[400];
    snprintf(line, sizeof line, "rm -rf '%s'", test_directory());
    assert_int_equal(system(line), 0);
    mkdir(test_directory(), 0700);
}

/* Makes the database of a directory as a file of the name, and returns the status. */
static inline pith_status test_make(const char *source, const char *path, pith_error *err) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    const pith_status status = pith_database_make(source, NULL, WRITER(test_write_file, f), err);
    fclose(f);
    return status;
}

/* Opens the database of a directory. */
static inline pith_database *test_database(const char *source) {
    pith_error err = PITH_ERROR_INIT;
    pith_database *db;
    char path[400];
    snprintf(path, sizeof path, "%s.rdb", test_directory());
    if (test_make(source, path, &err)) fail_msg("%s", err.message);
    if (pith_database_open(&db, path, NULL, &err)) fail_msg("%s", err.message);
    unlink(path);
    return db;
}

/* ---- leaks ---- */

/* Changes a cell; the second time it is what it was. Times stay, since they decide which rows are
 * later. */
static inline void spoil_cell(const pith__rdb *r, const pith__rdb_column *c, uint32_t row) {
    if (c->stype == PITH_STYPE_NUMERICAL) /* a quarter more or less; a null stays NaN */
        ((uint64_t *)c->data)[row] ^= (uint64_t)1 << 50;
    else if (c->stype == PITH_STYPE_TIMESTAMP)
        return;
    else if (c->stype == PITH_STYPE_BOOLEAN)
        ((uint8_t *)c->data)[row] ^= 1;
    else
        /* another text */
        ((uint32_t *)c->data)[row] ^= (((const uint32_t *)c->data)[row] | 1) < r->string_count;
}

/* Spoils every cell that is known at or after `asked`, except those of the seed that are not the
 * target; or, if earlier is set, the target cells known before. */
static inline void spoil(pith__rdb *r, const pith__rdb_task *task, uint32_t seed, int64_t asked,
                         bool earlier) {
    for (uint32_t t = 0; t < r->table_count; t++) {
        for (uint32_t row = 0; row < r->tables[t].rows; row++) {
            const int64_t time = pith__rdb_row_time(r, t, row);
            for (uint32_t c = 0; c < r->tables[t].column_count; c++) {
                const bool target = t == task->table && c == task->column;
                const int64_t known = pith__rdb_known_at(r, t, c, row);
                const bool own = t == task->table && row == seed && !target;
                const bool late = time >= asked || known >= asked;
                if (earlier ? target && !late : late && !own && time != PITH_TIME_ALWAYS)
                    spoil_cell(r, &r->tables[t].columns[c], row);
            }
        }
    }
}

/* A copy of a database's columns, which may be written. */
static inline void make_writable(pith__rdb *r) {
    for (uint32_t t = 0; t < r->table_count; t++)
        for (uint32_t c = 0; c < r->tables[t].column_count; c++) {
            pith__rdb_column *column = &r->tables[t].columns[c];
            const size_t size = r->tables[t].rows * pith__rdb_value_bytes(column->stype);
            void *copy = pith__arena_alloc(&r->arena, size);
            memcpy(copy, column->data, size);
            column->data = copy;
        }
}

#endif
