/* test_database.c - databases made of tables: values, keys, links, statistics, damage, and the
 * messages for bad input. */
#include "support/relational_test.h"

#include <math.h>

#include "base/formats/csv.h"
#include "base/str.h"

static void shop_is_read(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    const pith__rdb *r = &db->rdb;
    assert_int_equal(r->table_count, 3);
    assert_int_equal(r->tables[2].rows, 24000);
    assert_int_equal(r->column_count, 8);
    assert_int_equal(r->link_count, 2);
    for (uint32_t i = 0; i < r->link_count; i++) {
        const pith__rdb_link *link = &r->links[i];
        uint32_t seen = 0;
        for (uint32_t p = 0; p < r->tables[link->parent].rows; p++) {
            for (uint32_t k = link->begin[p]; k < link->begin[p + 1]; k++, seen++) {
                assert_int_equal(link->up[link->down[k]], p);
                if (k > link->begin[p])
                    assert_true(pith__rdb_row_time(r, 2, link->down[k]) >=
                                pith__rdb_row_time(r, 2, link->down[k - 1]));
            }
        }
        assert_int_equal(seen, 24000);
        assert_int_equal(link->dangling, 0);
    }
    int parts[4] = { 0 };
    double sum = 0;
    const pith__rdb_column *quantity = &r->tables[2].columns[1];
    for (uint32_t i = 0; i < 24000; i++) {
        parts[pith__rdb_split(r, &r->tasks[0], i)]++;
        if (pith__rdb_split(r, &r->tasks[0], i) == PITH_TRAIN)
            sum += ((const double *)quantity->data)[i];
    }
    assert_int_equal(parts[PITH_TRAIN], 16800);
    assert_int_equal(parts[PITH_TEST], 3600);
    assert_true(r->tables[1].columns[1].log && !quantity->log);
    /* Its mean is that of the rows of training alone. */
    assert_true(fabs(quantity->mean - sum / 16800) < 1e-12);
    pith_database_close(db);
}

static void same_bytes(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    char paths[2][400], line[900];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s-%d.rdb", test_directory(), i);
        assert_int_equal(test_make(SHOP, paths[i], &err), PITH_OK);
    }
    snprintf(line, sizeof line, "cmp '%s' '%s'", paths[0], paths[1]);
    assert_int_equal(system(line), 0);
    /* A byte of damage anywhere is found. */
    for (long at = 0; at < 5764352; at += 500009) {
        pith_database *db;
        FILE *f = fopen(paths[1], "r+b");
        fseek(f, at, SEEK_SET);
        const int c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 1, f);
        fclose(f);
        assert_int_not_equal(pith_database_open(&db, paths[1], NULL, &err), PITH_OK);
        f = fopen(paths[1], "r+b");
        fseek(f, at, SEEK_SET);
        fputc(c, f);
        fclose(f);
    }
    unlink(paths[0]);
    unlink(paths[1]);
}

static void bad_input(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *columns, *message;
    } cases[] = {
        { "id\n1\n2\n1\n", "x\n1\n", "\"x\": {\"stype\": \"text\"}",
          "a.csv: row 3, column 'id': the key '1' is also that of row 1" },
        { "id\n1\n", "x,y\n1,2\n3\n", "\"x\": {\"stype\": \"text\"}",
          "b.csv: row 2 has 1 cells, but the header has 2" },
        { "id\n1\n", "x\n\"1\n", "\"x\": {\"stype\": \"text\"}",
          "b.csv: row 1, column 'x': the quotation mark" },
        { "id\n1\n", "x\n\"1\"2\n", "\"x\": {\"stype\": \"text\"}",
          "b.csv: row 1, column 'x': text follows" },
        { "id\n1\n", "x\n1\nu\n", "\"x\": {\"stype\": \"numerical\"}",
          "b.csv: row 2, column 'x': 'u' is no finite number" },
        { "id\n1\n", "x\n2021-02-29\n", "\"x\": {\"stype\": \"timestamp\"}",
          "b.csv: row 1, column 'x': '2021-02-29' is no date" },
        { "id\n1\n", "x\n1\n", "\"x\": {\"stype\": \"number\"}",
          "'number' is no stype; there are identifier" },
        { "id\n1\n", "x\n1\n", "\"y\": {\"stype\": \"text\"}", "b.csv has no column 'y'" },
        { "id\n1\n", "x\n1\n", "\"x\": {\"stype\": \"identifier\", \"foreign_key\": \"c.id\"}",
          "goes to 'c', which is no table" },
        { "id\n1\n", "x\n\xff\n", "\"x\": {\"stype\": \"text\"}",
          "b.csv: line 2: the text is not UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_error err = PITH_ERROR_INIT;
        char schema[1000];
        test_clean();
        test_put("a.csv", cases[i].a);
        test_put("b.csv", cases[i].b);
        snprintf(schema, sizeof schema,
                 "{\"tables\": {\"a\": {\"file\": \"a.csv\", \"primary_key\": \"id\", \"columns\": "
                 "{\"id\": {\"stype\": "
                 "\"identifier\"}}}, \"b\": {\"file\": \"b.csv\", \"columns\": {%s}}}}",
                 cases[i].columns);
        test_put("schema.json", schema);
        assert_int_not_equal(test_make(test_directory(), "/dev/null", &err), PITH_OK);
        if (!strstr(err.message, cases[i].message)) fail_msg("case %zu: %s", i, err.message);
    }
}

/* Runs a shell command in the test's directory, where b.csv is, and makes the database. */
static void packed_as(const char *command, pith_status wanted, const char *message) {
    pith_error err = PITH_ERROR_INIT;
    char line[700];
    test_clean();
    test_put("a.csv", "id\n1\n");
    test_put("b.csv", "v\n1\n2\n");
    test_put("schema.json",
             "{\"tables\": {\"b\": {\"file\": \"b.csv.gz\", \"columns\": {\"v\": {\"stype\": "
             "\"numerical\"}}}}}");
    snprintf(line, sizeof line, "cd '%s' && %s", test_directory(), command);
    assert_int_equal(system(line), 0);
    assert_int_equal(test_make(test_directory(), "/dev/null", &err), wanted);
    if (message && !strstr(err.message, message)) fail_msg("%s: %s", command, err.message);
}

static void packed_files(void **state) {
    (void)state;
    packed_as("gzip b.csv", PITH_OK, NULL);
    /* two members */
    packed_as("{ printf 'v\\n1\\n' | gzip; printf '2\\n' | gzip -1; } > b.csv.gz", PITH_OK, NULL);
    packed_as("gzip b.csv && head -c 20 b.csv.gz > c && mv c b.csv.gz", PITH_ERR_FORMAT,
              "it ends at byte 20");
    packed_as("gzip b.csv && printf '\\001' | dd of=b.csv.gz bs=1 seek=$(($(stat -c %s b.csv.gz) - "
              "8)) conv=notrunc "
              "2>/dev/null",
              PITH_ERR_FORMAT, "b.csv.gz is a damaged gzip file: incorrect data check");
    packed_as("gzip b.csv && echo more >> b.csv.gz", PITH_ERR_FORMAT, "incorrect header check");
}

/* What the command reads cell by cell: text behind a closing quotation mark belongs to the cell. */
static void cells(void **state) {
    (void)state;
    static const struct {
        const char *text;
        pith__csv_after after;
    } wanted[] = { { "ab\"c", PITH_CSV_CELL }, { "x \"y\"", PITH_CSV_ROW_END },
                   { "", PITH_CSV_CELL },      { "two\nlines", PITH_CSV_ROW_END },
                   { "last", PITH_CSV_CELL },  { "", PITH_CSV_ROW_END } };
    pith__arena arena;
    pith_str cell;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__csv_scan s = pith__csv_begin(
        PITH_STR("\xEF\xBB\xBF\"a\"b\"c,\"x \"\"y\"\"\"\r\n,\"two\nlines\"\r\n\nlast,"), ',');
    s.loose = true;
    s.arena = &arena;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        while (pith__csv_blank(&s)) {}
        assert_int_equal(pith__csv_next(&s, &cell), wanted[i].after);
        assert_true(pith__str_is(cell, wanted[i].text));
    }
    assert_true(s.at == s.end);
    s = pith__csv_begin(PITH_STR("\"a\"b"), ',');
    assert_int_equal(pith__csv_next(&s, &cell), PITH_CSV_FAULT);
    s = pith__csv_begin(PITH_STR("\"a"), ',');
    s.loose = true;
    assert_int_equal(pith__csv_next(&s, &cell), PITH_CSV_FAULT);
    pith__arena_free(&arena);
}

/* Quotes, CRLF, nulls, dangling keys, keys of two columns, gzip. */
static void odd_tables(void **state) {
    (void)state;
    test_clean();
    test_put("a.csv",
             "\xEF\xBB\xBFid,hour,note\r\n1,x,\"a \"\"b\"\",\nc\"\r\n1,y,\r\n\r\n2,x,z\r\n");
    test_put("b.csv", "p,q,v\n1,y,1.5\n2,y,NA\n,x,-3e2\n1,x,7\n");
    test_put("schema.json", "{\"tables\": {\"a\": {\"file\": \"a.csv\", \"primary_key\": [\"id\", "
                            "\"hour\"], \"columns\": {\"id\": "
                            "{\"stype\": \"identifier\"}, \"hour\": {\"stype\": \"identifier\"}, "
                            "\"note\": {\"stype\": \"text\"}}}, "
                            "\"b\": {\"file\": \"b.csv.gz\", \"columns\": {\"p\": {\"stype\": "
                            "\"identifier\"}, \"q\": {\"stype\": "
                            "\"identifier\"}, \"v\": {\"stype\": \"numerical\"}}, "
                            "\"foreign_keys\": [{\"columns\": [\"p\", \"q\"], "
                            "\"table\": \"a\", \"references\": [\"id\", \"hour\"]}]}}}");
    char line[400];
    snprintf(line, sizeof line, "gzip -9 '%s/b.csv'", test_directory());
    assert_int_equal(system(line), 0);
    pith_database *db = test_database(test_directory());
    const pith__rdb *r = &db->rdb;
    const uint32_t note = ((const uint32_t *)r->tables[0].columns[0].data)[0];
    const char text[] = "a \"b\",\nc";
    assert_int_equal(r->string_begin[note + 1] - r->string_begin[note], strlen(text));
    assert_memory_equal(r->string_bytes + r->string_begin[note], text, strlen(text));
    assert_true(pith__rdb_is_null(&r->tables[0].columns[0], 1));
    const uint32_t up[] = { 1, PITH_RDB_NONE, PITH_RDB_NONE, 0 };
    assert_memory_equal(r->links[0].up, up, sizeof up);
    assert_int_equal(r->links[0].dangling, 1);
    assert_int_equal(r->links[0].nulls, 1);
    const double *v = r->tables[1].columns[0].data;
    assert_true(v[0] == 1.5 && isnan(v[1]) && v[2] == -300 && v[3] == 7);
    pith_database_close(db);
    test_clean();
    rmdir(test_directory());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells),     cmocka_unit_test(shop_is_read), cmocka_unit_test(same_bytes),
        cmocka_unit_test(bad_input), cmocka_unit_test(packed_files), cmocka_unit_test(odd_tables)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
