/* test_relational_tasks.c - questions that windows and queries make, and targets that are classes
 * and ranks: their labels against plain counts, what a model learns of them, that nothing later
 * counts, and the messages for wrong ones. */
#include "support/relational_test.h"

#include <math.h>

#include "tables/baseline/baseline.h"
#include "tables/network/trainer.h"

#define SPLIT                                                                                      \
    "\"split\": {\"kind\": \"time\", \"train_until\": \"2023-05-30T15:13:52\", "                   \
    "\"validation_until\": "                                                                       \
    "\"2023-09-15T21:08:56\"}"
#define DAYS                                                                                       \
    "(WITH RECURSIVE days(t) AS (SELECT '2022-06-01 00:00:00' UNION ALL SELECT datetime(t, '+30 "  \
    "days') FROM days "                                                                            \
    "WHERE t < '2023-10-25') SELECT t FROM days)"
#define COUNT                                                                                      \
    "SELECT c.customer_id AS anchor, t AS time, (SELECT count(*) FROM orders o WHERE "             \
    "o.customer_id = c.customer_id "                                                               \
    "AND o.ordered_at > t AND o.ordered_at <= datetime(t, '+30 days'))"
/* Whether few pieces are ordered, or else of what; asked when the order itself may be seen. Some
 * labels are missing. */
#define PIECES                                                                                     \
    "SELECT order_id AS anchor, datetime(ordered_at, '+1 second') AS time, CASE WHEN order_id % "  \
    "10 = 0 THEN NULL "                                                                            \
    "WHEN quantity < 3 THEN "                                                                      \
    "'few' ELSE category END AS target FROM orders JOIN products USING (product_id)"

static const char tasks[] =
    "\"returned\": {\"anchor_table\": \"orders\", \"target_column\": \"returned\", " SPLIT "},"
    "\"quantity\": {\"anchor_table\": \"orders\", \"target_column\": \"quantity\", " SPLIT "},"
    "\"rank\": {\"anchor_table\": \"orders\", \"target_column\": \"quantity\", \"rank\": "
    "true, " SPLIT "},"
    "\"window\": {\"anchor_table\": \"customers\", \"window\": {\"table\": \"orders\", "
    "\"aggregate\": \"count\", "
    "\"seconds\": 2592000, \"every_seconds\": 2592000, \"from\": \"2022-06-01\", \"until\": "
    "\"2023-11-25\"}, " SPLIT "},"
    "\"query\": {\"anchor_table\": \"customers\", \"query\": \"" COUNT
    " AS target, datetime(t, '+30 days') AS known_at FROM "
    "customers c JOIN " DAYS "\", \"target_stype\": \"numerical\", " SPLIT "},"
    "\"delay\": {\"anchor_table\": \"customers\", \"query\": \"" COUNT
    " > 0 AS target FROM customers c JOIN " DAYS
    "\", \"target_stype\": \"boolean\", \"known_delay_seconds\": 2592000, " SPLIT "},"
    "\"pieces\": {\"anchor_table\": \"orders\", \"query\": \"" PIECES
    "\", \"target_stype\": \"categorical\", " SPLIT "},"
    "\"category\": {\"anchor_table\": \"products\", \"target_column\": \"category\", \"split\": "
    "{\"kind\": \"hash\"}}";

/* Makes the shop with these tasks; the database is at path if that is not NULL. */
static pith_status make(const char *list, const char *path, pith_error *err) {
    static char text[20000], schema[400];
    pith_database_options options = PITH_DATABASE_OPTIONS_INIT;
    FILE *f = fopen(SHOP "/schema.json", "rb");
    text[fread(text, 1, 10000, f)] = 0;
    fclose(f);
    char *at = strstr(text, "\"tasks\"");
    snprintf(at, sizeof text - (size_t)(at - text), "\"tasks\": {%s}}", list);
    test_put("tasks.json", text);
    snprintf(schema, sizeof schema, "%s/tasks.json", test_directory());
    options.schema = schema;
    f = fopen(path ? path : "/dev/null", "wb");
    const pith_status status = pith_database_make(SHOP, &options, WRITER(test_write_file, f), err);
    fclose(f);
    return status;
}

static pith_database *shop(void) {
    pith_error err = PITH_ERROR_INIT;
    pith_database *db;
    char path[400];
    snprintf(path, sizeof path, "%s.rdb", test_directory());
    if (make(tasks, path, &err) || pith_database_open(&db, path, NULL, &err))
        fail_msg("%s", err.message);
    unlink(path);
    return db;
}

static const pith__rdb_task *task_named(const pith__rdb *r, const char *name) {
    for (uint32_t i = 0; i < r->task_count; i++)
        if (r->tasks[i].name.size == strlen(name) &&
            !memcmp(r->tasks[i].name.data, name, strlen(name)))
            return &r->tasks[i];
    fail_msg("no task %s", name);
    return NULL;
}

static const pith__rdb_link *link_of(const pith__rdb *r, uint32_t table) {
    for (uint32_t i = 0; i < r->link_count; i++)
        if (r->links[i].child == table) return &r->links[i];
    return NULL;
}

/* A window and a query for the same count give the same labels, and both are right. */
static void labels(void **state) {
    (void)state;
    pith_database *db = shop();
    const pith__rdb *r = &db->rdb;
    const uint32_t tables[] = { task_named(r, "window")->table, task_named(r, "query")->table,
                                task_named(r, "delay")->table };
    const int64_t *ordered = r->tables[2].columns[0].data;
    const uint32_t *customers = r->links[0].up;
    for (int k = 0; k < 3; k++) {
        const pith__rdb_table *t = &r->tables[tables[k]];
        const uint32_t *up = link_of(r, tables[k])->up;
        const int64_t *times = t->columns[0].data;
        assert_int_equal(t->rows, 19000);
        for (uint32_t row = 0; row < t->rows; row += 97) {
            int count = 0;
            for (uint32_t o = 0; o < 24000; o++)
                count += customers[o] == up[row] && ordered[o] > times[row] &&
                         ordered[o] <= times[row] + 2592000;
            if (k < 2)
                assert_true(((const double *)t->columns[1].data)[row] == count);
            else
                assert_int_equal(((const uint8_t *)t->columns[1].data)[row], count > 0);
            assert_true(pith__rdb_known_at(r, tables[k], 1, row) == times[row] + 2592000);
        }
    }
    const pith__rdb_task *pieces = task_named(r, "pieces");
    int missing = 0;
    for (uint32_t row = 0; row < 24000; row++)
        missing += pith__rdb_is_null(&r->tables[pieces->table].columns[1], row);
    assert_int_equal(missing, 2400);
    pith_database_close(db);
}

/* Labels that are known only after their part has ended are in none. */
static void late_labels(void **state) {
    (void)state;
    pith_database *db = shop();
    const pith__rdb *r = &db->rdb;
    const pith__rdb_task *task = task_named(r, "window");
    int parts[4] = { 0 };
    for (uint32_t row = 0; row < r->tables[task->table].rows; row++) {
        const int part = pith__rdb_split(r, task, row);
        const int64_t ends = pith__rdb_known_at(r, task->table, 1, row);
        parts[part]++;
        if (part == PITH_TRAIN) assert_true(ends < task->train_until);
        if (part == PITH_VALIDATION) assert_true(ends < task->validation_until);
    }
    assert_int_equal(parts[PITH_NO_SPLIT], 2000); /* two times whose windows reach into the next
                                                     part */
    pith_database_close(db);
}

/* Trains on a task, and returns its measures on the test rows. */
static pith_relational_metrics learn(const pith_database *db, const char *task, int steps,
                                     pith_relational **model) {
    pith_error err = PITH_ERROR_INIT;
    pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
    char config[200];
    double loss;
    snprintf(config, sizeof config, "{\"steps\": %d, \"warmup\": 10, \"width\": 8, \"cells\": 100}",
             steps);
    if (pith_relational_create(model, db, task, config, 3, NULL, &err) ||
        pith_relational_train(&loss, *model, steps, CALL(2), &err) ||
        pith_relational_evaluate(&m, *model, PITH_SPLIT_OF_TEST, CALL(2), &err))
        fail_msg("%s", err.message);
    return m;
}

static void classes(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = shop();
    pith_relational *model;
    pith_relational_state about = PITH_RELATIONAL_STATE_INIT;
    const pith_relational_metrics m = learn(db, "category", 80, &model);
    pith_relational_get_state(&about, model);
    assert_int_equal(about.target, PITH_TARGET_CLASS);
    assert_int_equal(about.outputs, 8);
    print_message("classes: accuracy %.3f, macro f1 %.3f, logloss %.3f\n", m.accuracy, m.macro_f1,
                  m.logloss[0]);
    assert_true(m.accuracy > 0.9 && m.macro_f1 > 0.9 && m.logloss[0] < m.constant_logloss / 3 &&
                isnan(m.auroc[0]));
    float answers[3 * 8], alone[8];
    const uint32_t rows[] = { 7, 4000, 12 };
    assert_int_equal(pith_relational_predict(answers, model, rows, 3, CALL(2), &err), PITH_OK);
    assert_int_equal(pith_relational_predict(alone, model, rows + 1, 1, CALL(1), &err), PITH_OK);
    assert_memory_equal(alone, answers + 8, sizeof alone);
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < 8; k++) sum += answers[i * 8 + k];
        assert_true(fabs(sum - 1) < 1e-5);
    }
    const pith_str first = pith_relational_class(model, 0),
                   second = pith_relational_class(model, 1);
    assert_true(first.size && memcmp(first.data, second.data, first.size) < 0 &&
                !memchr(first.data, ' ', first.size));
    assert_null(pith_relational_class(model, 8).data);
    pith_relational_destroy(model);
    /* The baselines of classes: trees see the order, and so are right. */
    pith_relational_metrics trees, entity, constant;
    const pith__rdb_task *task = task_named(&db->rdb, "pieces");
    assert_int_equal(pith__baseline_measure(&constant, &db->rdb, task, PITH_BASELINE_CONSTANT,
                                            PITH_TEST, WORK(2), &pith__allocator_default, &err),
                     PITH_OK);
    assert_int_equal(pith__baseline_measure(&entity, &db->rdb, task, PITH_BASELINE_ENTITY,
                                            PITH_TEST, WORK(2), &pith__allocator_default, &err),
                     PITH_OK);
    assert_int_equal(pith__baseline_measure(&trees, &db->rdb, task, PITH_BASELINE_PARENTS,
                                            PITH_TEST, WORK(2), &pith__allocator_default, &err),
                     PITH_OK);
    assert_true(fabs(constant.logloss[0] - constant.constant_logloss) < 1e-9);
    print_message("pieces: constant %.3f, entity %.3f, trees %.3f\n", constant.logloss[0],
                  entity.logloss[0], trees.logloss[0]);
    assert_true(entity.logloss[0] <= constant.logloss[0] + 0.01);
    assert_true(trees.logloss[0] < 0.05 && trees.accuracy > 0.99);
    pith_database_close(db);
}

static void ranks(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = shop();
    pith__target target;
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    const pith__rdb_task *task = task_named(&db->rdb, "rank");
    assert_int_equal(pith__target_make(&target, &db->rdb, task, NULL, &arena, &err), PITH_OK);
    assert_int_equal(target.kind, PITH_TARGET_RANK);
    double sum = 0;
    int n = 0;
    for (uint32_t i = 0; i < 24000; i++) {
        if (pith__rdb_split(&db->rdb, task, i) != PITH_TRAIN) continue;
        const double share = pith__target_truth(&target, i);
        assert_true(fabs(pith__target_answer(&target, pith__target_scaled(&target, i)) - share) <
                    1e-9);
        sum += share;
        n++;
    }
    assert_true(fabs(sum / n - 0.5) < 1e-9);
    pith__arena_free(&arena);
    pith_relational *model;
    const pith_relational_metrics m = learn(db, "query", 120, &model);
    print_message("query: mae %.3f, constant %.3f, spearman %.3f\n", m.mae[0], m.constant_mae,
                  m.spearman[0]);
    assert_true(m.spearman[0] > 0.3 && m.spearman[1] < m.spearman[0] && m.mae[0] < m.constant_mae);
    pith_relational_destroy(model);
    learn(db, "rank", 3, &model);
    float answers[50];
    uint32_t rows[50];
    for (uint32_t i = 0; i < 50; i++) rows[i] = 20000 + i;
    assert_int_equal(pith_relational_predict(answers, model, rows, 50, CALL(2), &err), PITH_OK);
    for (int i = 0; i < 50; i++) assert_true(answers[i] >= 0 && answers[i] <= 1);
    pith_relational_destroy(model);
    pith_database_close(db);
}

/* 200 rows of each kind of task: nothing that is known later changes a bit of an answer. */
static void nothing_later_counts(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = shop();
    pith__rdb *r = &db->rdb;
    static const char *const names[] = { "quantity", "rank", "window", "query", "delay", "pieces" };
    make_writable(r);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const pith__rdb_task *task = task_named(r, names[k]);
        const uint32_t all = r->tables[task->table].rows;
        pith_relational *model;
        int changed = 0;
        if (pith_relational_create(&model, db, names[k], "{\"cells\": 300, \"width\": 8}", 7, NULL,
                                   &err))
            fail_msg("%s", err.message);
        for (uint32_t i = 0; i < 200; i++) {
            float before[PITH_TARGET_CLASSES], after[PITH_TARGET_CLASSES],
                earlier[PITH_TARGET_CLASSES];
            const uint32_t row = all / 3 + i * (all * 2 / 3 / 200);
            const int64_t asked = pith__rdb_asked_at(r, task, row);
            const size_t size = (size_t)model->target.outputs * sizeof *before;
            assert_int_equal(pith__trainer_answer(before, model, &row, 1, WORK(1), &err), PITH_OK);
            spoil(r, task, row, asked, false);
            assert_int_equal(pith__trainer_answer(after, model, &row, 1, WORK(1), &err), PITH_OK);
            spoil(r, task, row, asked, false);
            if (memcmp(before, after, size) != 0) fail_msg("task %s, row %u", names[k], row);
            spoil(r, task, row, asked, true);
            assert_int_equal(pith__trainer_answer(earlier, model, &row, 1, WORK(1), &err), PITH_OK);
            spoil(r, task, row, asked, true);
            changed += memcmp(before, earlier, size) != 0;
        }
        print_message("%s: earlier labels change %d of 200\n", names[k], changed);
        assert_true(changed > 150);
        pith_relational_destroy(model);
    }
    pith_database_close(db);
}

#define QUERY(sql, more)                                                                           \
    "\"t\": {\"anchor_table\": \"customers\", \"query\": \"" sql "\", " more SPLIT "}"
#define BOOLEAN "\"target_stype\": \"boolean\", "

static void wrong_tasks(void **state) {
    (void)state;
    static const struct {
        const char *task, *message;
    } cases[] = {
        { QUERY("SELECT 1 AS anchor, '2022-01-01' AS time", BOOLEAN), "gives no column 'target'" },
        { QUERY("SELECT 1 AS anchor, '2022-01-01' AS time, 1 AS target, 2 AS more", BOOLEAN),
          "gives a column 'more'" },
        { QUERY("SELECT 1 AS anchor, '2022-01-01' AS time, 1 AS target UNION ALL SELECT 'nobody', "
                "'2022-01-01', 0",
                BOOLEAN),
          "the query of task 't': row 2, column 'anchor': 'nobody' is no row of table "
          "'customers'" },
        { QUERY("SELECT 1 AS anchor, 'soon' AS time, 1 AS target", BOOLEAN),
          "row 1, column 'asked_at': 'soon' is no date" },
        { QUERY("SELECT 1 AS anchor, NULL AS time, 1 AS target", BOOLEAN),
          "row 1, column 'time': it is null" },
        { QUERY("SELECT 1 AS anchor, '2022-01-01' AS time, 'x' AS target", BOOLEAN),
          "row 1, column 'target': 'x' is no boolean" },
        { QUERY("SELECT 1 AS anchor, '2022-01-01' AS time, x'00' AS target", BOOLEAN),
          "column 'target': the cell is a blob" },
        { QUERY("SELECT 1 AS anchor FROM nowhere", BOOLEAN),
          "the query of task 't': no such table: nowhere" },
        { QUERY("SELECT 1; SELECT 2", BOOLEAN), "is not one SELECT alone" },
        { QUERY("DELETE FROM orders", BOOLEAN), "begins neither with SELECT nor with WITH" },
        { QUERY("WITH x AS (SELECT 1) DELETE FROM orders", BOOLEAN),
          "the query of task 't': not authorized" },
        { QUERY("ATTACH 'x' AS y", BOOLEAN), "begins neither with SELECT nor with WITH" },
        { QUERY("SELECT 1", ""), "has a query and needs a target_stype" },
        { QUERY("SELECT 1", "\"target_stype\": \"text\", "),
          "targets are boolean, numerical or categorical" },
        { QUERY("SELECT 1", BOOLEAN "\"rank\": true, "),
          "asks for a rank, but its target is boolean" },
        { QUERY("SELECT 1", BOOLEAN "\"target_column\": \"country\", "),
          "one of target_column, window and query" },
        { "\"t\": {\"anchor_table\": \"orders\", \"target_column\": \"returned\", "
          "\"known_delay_seconds\": 5, " SPLIT "}",
          "known_delay_seconds goes with a query" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_error err = PITH_ERROR_INIT;
        assert_int_not_equal(make(cases[i].task, NULL, &err), PITH_OK);
        if (!strstr(err.message, cases[i].message)) fail_msg("case %zu: %s", i, err.message);
    }
    /* Classes are counted when a model is made. */
    static const char *const counts[] = { "1", "o.order_id % 65" }, *const messages[] = {
        "only 1 categories", "more than 64 categories"
    };
    for (int i = 0; i < 2; i++) {
        pith_error err = PITH_ERROR_INIT;
        pith_database *db;
        pith_relational *model;
        char path[400], text[600];
        snprintf(path, sizeof path, "%s/x.rdb", test_directory());
        snprintf(text, sizeof text,
                 "\"t\": {\"anchor_table\": \"orders\", \"query\": \"SELECT order_id AS anchor, "
                 "ordered_at AS time, %s AS "
                 "target FROM orders o\", \"target_stype\": \"categorical\", " SPLIT "}",
                 counts[i]);
        if (make(text, path, &err) || pith_database_open(&db, path, NULL, &err))
            fail_msg("%s", err.message);
        assert_int_not_equal(pith_relational_create(&model, db, "t", NULL, 0, NULL, &err), PITH_OK);
        if (!strstr(err.message, messages[i])) fail_msg("%s", err.message);
        pith_database_close(db);
        unlink(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels),      cmocka_unit_test(late_labels),
        cmocka_unit_test(wrong_tasks), cmocka_unit_test(classes),
        cmocka_unit_test(ranks),       cmocka_unit_test(nothing_later_counts)
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    test_clean();
    rmdir(test_directory());
    return failures;
}
