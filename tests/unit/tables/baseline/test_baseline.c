/* test_baseline.c - the predictors that models are compared with: what they reach on
 * tests/data/shop, that nothing later than the question changes an answer, aggregates against plain
 * loops, trees on made-up features. */
#include "support/relational_test.h"

#include <math.h>

#include "tables/baseline/baseline.h"

static pith__baseline fit(const pith__rdb *r, const pith__rdb_task *task, pith__baseline_kind kind,
                          int threads) {
    pith_error err = PITH_ERROR_INIT;
    pith__baseline b;
    if (pith__baseline_fit(&b, r, task, kind, WORK(threads), &pith__allocator_default, &err))
        fail_msg("%s", err.message);
    return b;
}

static double answer(pith__baseline *b, uint32_t row) {
    pith_error err = PITH_ERROR_INIT;
    double x;
    if (pith__baseline_answer(&x, b, &row, 1, WORK(0), &err)) fail_msg("%s", err.message);
    return x;
}

/* ---- what they reach ---- */

/* The ladder of scikit-learn's trees over hand-made features of the same kind: 0.500, 0.752, 0.528,
 * 0.576, 0.780. */
static void shop_ladder(void **state) {
    (void)state;
    static const double least[] = { 0.4999, 0.745, 0.49, 0.57, 0.77 },
                        most[] = { 0.5001, 0.76, 0.54, 0.60, 0.79 };
    pith_database *db = test_database(SHOP);
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) {
        pith_error err = PITH_ERROR_INIT;
        pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
        if (pith__baseline_measure(&m, &db->rdb, &db->rdb.tasks[0], k, PITH_TEST, WORK(2),
                                   &pith__allocator_default, &err))
            fail_msg("%s", err.message);
        print_message("%s: auroc %.4f, logloss %.4f\n", pith__baseline_names[k], m.auroc[0],
                      m.logloss[0]);
        assert_int_equal(m.rows, 3600);
        assert_true(m.auroc[0] >= least[k] && m.auroc[0] <= most[k]);
    }
    pith_database_close(db);
}

/* ---- leaks ---- */

static void answer_all(double *answers, pith__baseline *all, uint32_t row) {
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) answers[k] = answer(&all[k], row);
}

/* Cells that are known too late change no bit of an answer. Counts in *changed the predictors that
 * earlier labels change. */
static void earlier_cells_count(int *changed, pith__baseline *all, pith__rdb *r, uint32_t row) {
    const pith__rdb_task *task = all[0].task;
    const int64_t asked = pith__rdb_asked_at(r, task, row);
    double before[PITH_BASELINE_COUNT], after[PITH_BASELINE_COUNT], earlier[PITH_BASELINE_COUNT];
    answer_all(before, all, row);
    spoil(r, task, row, asked, false);
    answer_all(after, all, row);
    spoil(r, task, row, asked, false);
    spoil(r, task, row, asked, true);
    answer_all(earlier, all, row);
    spoil(r, task, row, asked, true);
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) {
        if (memcmp(&before[k], &after[k], sizeof *before) != 0)
            fail_msg("%s, row %u: %.17g became %.17g", pith__baseline_names[k], row, before[k],
                     after[k]);
        changed[k] += earlier[k] != before[k];
    }
}

/* Asks 200 rows from the middle to the end. Earlier labels, which are features of the entity and
 * the aggregates alone, must change at least so many answers: trees do not see small changes. */
static void leaks(pith__rdb *r, const pith__rdb_task *task, int least) {
    const uint32_t rows = r->tables[task->table].rows;
    pith__baseline all[PITH_BASELINE_COUNT];
    int changed[PITH_BASELINE_COUNT] = { 0 };
    make_writable(r);
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) all[k] = fit(r, task, (pith__baseline_kind)k, 2);
    for (uint32_t i = 0; i < 200; i++)
        earlier_cells_count(changed, all, r, rows / 2 + i * (rows / 2 / 200));
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) {
        print_message("%s: earlier labels change %d of 200\n", pith__baseline_names[k], changed[k]);
        const bool reads = k == PITH_BASELINE_ENTITY || k == PITH_BASELINE_AGGREGATES;
        assert_true(reads ? changed[k] >= least : !changed[k]);
        pith__baseline_free(&all[k]);
    }
}

static void nothing_later_counts(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    leaks(&db->rdb, &db->rdb.tasks[0], 150);
    pith_database_close(db);
}

/* A label that is known 60 days after its row. */
static void labels_wait(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    ((pith__rdb_column *)db->rdb.tables[2].columns)[db->rdb.tasks[0].column].known_delay =
        60 * 86400;
    leaks(&db->rdb, &db->rdb.tasks[0], 150);
    pith_database_close(db);
}

/* ---- small databases ---- */

/* Makes and opens a database of people and their visits, with a task that the text describes. */
static pith_database *visits(const char *task) {
    static char text[200000], schema[2000];
    uint32_t x = 1;
    char *p = text;
    test_clean();
    p += sprintf(p, "person,town\n");
    for (int i = 0; i < 60; i++) p += sprintf(p, "%d,%c\n", i, 'a' + i % 7);
    test_put("people.csv", text);
    p = text;
    p += sprintf(p, "person,place,at,asked,amount,kind,again\n");
    for (int i = 0; i < 3000; i++) {
        x = x * 1664525 + 1013904223;
        const uint32_t person = (x >> 8 & 63) * (x >> 20 & 63) >> 6, day = (uint32_t)i / 9;
        const uint32_t amount = (x >> 16 & 63) + person * 3;
        const int again = (person * 7 + (x >> 26 & 7)) % 11 < 5;
        p +=
            sprintf(p, "%u,%u,%04u-%02u-%02u,%04u-%02u-%02uT12:00:00,%u,%c,%d\n", person,
                    amount % 5, 2020 + day / 336, day / 28 % 12 + 1, day % 28 + 1, 2020 + day / 336,
                    day / 28 % 12 + 1, day % 28 + 1, amount, "xyz"[amount % 3], again);
    }
    test_put("visits.csv", text);
    test_put("places.csv", "place,size\n0,3\n1,\n2,8\n3,1\n4,9\n");
    snprintf(schema, sizeof schema,
             "{\"tables\": {\"people\": {\"file\": \"people.csv\", \"primary_key\": \"person\", "
             "\"columns\": "
             "{\"person\": {\"stype\": \"identifier\"}, \"town\": {\"stype\": \"categorical\"}}}, "
             "\"places\": {\"file\": "
             "\"places.csv\", \"primary_key\": \"place\", \"columns\": {\"place\": {\"stype\": "
             "\"identifier\"}, "
             "\"size\": {\"stype\": \"numerical\"}}}, \"visits\": {\"file\": \"visits.csv\", "
             "\"temporal_column\": "
             "\"at\", \"columns\": {\"person\": {\"stype\": \"identifier\", \"foreign_key\": "
             "\"people.person\"}, "
             "\"place\": {\"stype\": \"identifier\", \"foreign_key\": \"places.place\"}, \"at\": "
             "{\"stype\": "
             "\"timestamp\"}, \"asked\": {\"stype\": \"timestamp\"}, \"amount\": {\"stype\": "
             "\"numerical\"}, \"kind\": "
             "{\"stype\": \"categorical\"}, \"again\": {\"stype\": \"boolean\"}}}}, \"tasks\": "
             "{\"t\": {%s}}}",
             task);
    test_put("schema.json", schema);
    pith_database *db = test_database(test_directory());
    test_clean();
    rmdir(test_directory());
    return db;
}

#define BY_TIME                                                                                    \
    "\"split\": {\"kind\": \"time\", \"train_until\": \"2020-08-01\", \"validation_until\": "      \
    "\"2020-10-01\"}"

/* Questions that are asked after the label of their own row is known: it must not count. */
static void own_label(void **state) {
    (void)state;
    pith_database *db = visits("\"anchor_table\": \"visits\", \"target_column\": \"again\", "
                               "\"observation_time_column\": \"asked\", " BY_TIME);
    pith__rdb *r = &db->rdb;
    leaks(r, &r->tasks[0], 150);
    pith_database_close(db);
    db = visits(
        "\"anchor_table\": \"visits\", \"target_column\": \"amount\", \"observation_time_column\": "
        "\"asked\", " BY_TIME);
    leaks(&db->rdb, &db->rdb.tasks[0], 150);
    pith_database_close(db);
}

/* Windows: their labels are known when they end. */
static void windows_wait(void **state) {
    (void)state;
    static const char *const aggregates[] = { "\"count\"", "\"sum\", \"column\": \"amount\"",
                                              "\"any\"" };
    for (int i = 0; i < 3; i++) {
        char task[500];
        snprintf(task, sizeof task,
                 "\"anchor_table\": \"people\", \"window\": {\"table\": \"visits\", \"aggregate\": "
                 "%s, \"seconds\": "
                 "864000, \"every_seconds\": 432000, \"from\": \"2020-02-01\", \"until\": "
                 "\"2020-12-01\"}, %s",
                 aggregates[i], BY_TIME);
        pith_database *db = visits(task);
        leaks(&db->rdb, &db->rdb.tasks[0], 20);
        pith_database_close(db);
    }
}

/* Without times a row's own label, and the labels beyond the training part, change nothing; nor
 * does what training rows learn from tell them their own label. */
static void no_times(void **state) {
    (void)state;
    pith_database *db =
        visits("\"anchor_table\": \"visits\", \"target_column\": \"again\", \"split\": {\"kind\": "
               "\"hash\"}");
    pith__rdb *r = &db->rdb;
    pith__rdb_task *task = &r->tasks[0];
    uint8_t *labels;
    make_writable(r);
    task->time_column = -1;
    labels = (uint8_t *)r->tables[task->table].columns[task->column].data;
    pith__baseline b = fit(r, task, PITH_BASELINE_AGGREGATES, 1),
                   entity = fit(r, task, PITH_BASELINE_ENTITY, 1);
    int changed = 0;
    for (uint32_t row = 0; row < 300; row++) {
        const double before = answer(&b, row), of_entity = answer(&entity, row);
        for (uint32_t i = 0; i < r->tables[task->table].rows; i++)
            labels[i] ^= i == row || pith__rdb_split(r, task, i) != PITH_TRAIN;
        assert_true(answer(&b, row) == before && answer(&entity, row) == of_entity);
        for (uint32_t i = 0; i < r->tables[task->table].rows; i++) labels[i] ^= 1;
        changed += answer(&b, row) != before;
        for (uint32_t i = 0; i < r->tables[task->table].rows; i++)
            labels[i] ^= i != row && pith__rdb_split(r, task, i) == PITH_TRAIN;
    }
    assert_true(changed > 200);
    pith__baseline_free(&b);
    pith__baseline_free(&entity);
    pith_database_close(db);
}

/* ---- aggregates against plain loops ---- */

static void plain_aggregate(double *want, const pith__feature_list *l, const pith__feature_group *g,
                            uint32_t seed) {
    const pith__rdb *r = l->rdb;
    const pith__rdb_column *c =
        g->column == PITH_RDB_NONE ? NULL : &r->tables[g->table].columns[g->column];
    const int64_t asked = pith__rdb_asked_at(r, l->task, seed);
    uint32_t parent = seed, rows = 0;
    int64_t latest = INT64_MIN;
    double x[4000];
    for (int i = 0; i < g->ups; i++)
        parent = parent == PITH_RDB_NONE ? parent : r->links[g->up[i]].up[parent];
    for (int k = 0; k < PITH_FEATURE_MOST; k++) want[k] = NAN;
    if (parent == PITH_RDB_NONE) return;
    const pith__rdb_link *down = &r->links[g->down];
    for (uint32_t child = 0; child < r->tables[down->child].rows; child++) {
        uint32_t row = child;
        if (down->up[child] != parent || pith__rdb_row_time(r, down->child, child) >= asked)
            continue;
        if (g->over != PITH_RDB_NONE) row = r->links[g->over].up[child];
        if (row == PITH_RDB_NONE) continue;
        if (g->target && (row == seed || pith__rdb_known_at(r, g->table, g->column, row) >= asked))
            continue;
        latest = pith__rdb_row_time(r, down->child, child);
        if (c && pith__rdb_is_null(c, row)) continue;
        x[rows++] = c ? pith__feature_cell(c, row) : 0;
    }
    if (!c || g->target) want[c ? 1 : 0] = rows;
    if (!c && rows) want[1] = (double)(asked - latest);
    if (!c || !rows) return;
    double sum = 0, squares = 0, least = x[0], greatest = x[0];
    for (uint32_t i = 0; i < rows; i++) {
        sum += x[i];
        least = fmin(least, x[i]);
        greatest = fmax(greatest, x[i]);
    }
    for (uint32_t i = 0; i < rows; i++) squares += (x[i] - sum / rows) * (x[i] - sum / rows);
    if (g->category[0]) {
        uint32_t most = 0, distinct = 0;
        for (uint32_t i = 0; i < rows; i++) {
            uint32_t same = 0, before = 0;
            for (uint32_t k = 0; k < rows; k++)
                same += x[k] == x[i], before += k < i && x[k] == x[i];
            distinct += !before;
            most = same > most ? same : most;
        }
        want[0] = most; /* how often the most frequent one is there: several may be it */
        want[1] = x[rows - 1];
        want[2] = distinct;
    } else if (g->count == 3) {
        want[0] = sum / rows;
        want[1] = rows;
        want[2] = x[rows - 1];
    } else {
        const double all[] = {
            sum / rows, least, greatest, sqrt(squares / rows), x[rows - 1], sum
        };
        memcpy(want, all, sizeof all);
    }
}

static void aggregates_are_right(void **state) {
    (void)state;
    pith_database *db = visits("\"anchor_table\": \"visits\", \"target_column\": \"amount\", "
                               "\"observation_time_column\": \"asked\", " BY_TIME);
    const pith__rdb *r = &db->rdb;
    pith__feature_list list;
    pith__feature_seeds seeds;
    pith__target target;
    pith__arena arena;
    uint32_t rows[100];
    int compared = 0;
    for (uint32_t i = 0; i < 100; i++) rows[i] = (i * 1237) % 3000;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__target_make(&target, r, &r->tasks[0], NULL, &arena, NULL), PITH_OK);
    assert_int_equal(pith__features_list(&list, &target, PITH_FEATURE_AGGREGATES, &arena, NULL),
                     PITH_OK);
    assert_true(pith__feature_seeds_make(&seeds, r, &r->tasks[0], rows, 100, NULL, &arena));
    for (size_t n = 0; n < list.group_count; n++) {
        const pith__feature_group *g = &list.groups[n];
        double *got = pith__arena_array(&arena, 100 * (size_t)g->count, sizeof *got),
               want[PITH_FEATURE_MOST];
        assert_true(pith__feature_values(got, &list, g, &seeds, &arena));
        for (size_t i = 0; i < 100 && g->down != PITH_RDB_NONE; i++) {
            plain_aggregate(want, &list, g, rows[i]);
            for (int k = g->category[0]; k < g->count; k++, compared++) {
                const double x = got[(size_t)k * 100 + i];
                if (isnan(x) != isnan(want[k]) || fabs(x - want[k]) > 1e-5 * (1 + fabs(want[k])))
                    fail_msg("group %zu, row %u, column %d: %.9g, not %.9g", n, rows[i], k, x,
                             want[k]);
            }
        }
    }
    print_message("%d numbers\n", compared);
    assert_true(compared > 2000);
    pith__arena_free(&arena);
    pith_database_close(db);
}

/* ---- trees ---- */

/* Yes if exactly one of two numbers is large: no split alone helps. A category decides the rest. */
static void trees_learn(void **state) {
    (void)state;
    enum { ROWS = 3000, TRAIN = 2000 };
    static uint8_t columns[3][ROWS];
    static double truths[ROWS];
    uint8_t *bins[] = { columns[0], columns[1], columns[2] };
    const bool category[] = { false, false, true };
    const double start = 0;
    uint32_t x = 5;
    for (int i = 0; i < ROWS; i++) {
        for (int f = 0; f < 3; f++)
            columns[f][i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24) % (f == 2 ? 20 : 250);
        const bool odd = columns[2][i] * 7 % 5 < 1; /* categories that are no range */
        truths[i] = odd || (columns[0][i] > 100) != (columns[1][i] > 170);
    }
    const pith__forest_data data = { bins,  category,     3,      1,     PITH_FOREST_BOOLEAN,
                                     TRAIN, ROWS - TRAIN, truths, &start };
    pith__forest forest;
    pith__arena arena;
    int right = 0;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_true(pith__forest_grow(&forest, &data, 2, WORK(2), &arena));
    for (int i = TRAIN; i < ROWS; i++) {
        const uint8_t row[] = { columns[0][i], columns[1][i], columns[2][i] };
        double z = 0;
        pith__forest_answer(&z, &forest, row);
        right += (z > 0) == (truths[i] > 0);
    }
    print_message("%d of %d right, depth %d, %d trees\n", right, ROWS - TRAIN, forest.depth,
                  forest.rounds);
    assert_true(right > 950);
    pith__arena_free(&arena);
}

static void bins_cover(void **state) {
    (void)state;
    double room[PITH_BINS], values[1000];
    pith__feature_bins bins = { .cuts = room };
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    for (int i = 0; i < 1000; i++) values[i] = i * i;
    assert_true(pith__feature_bins_make(&bins, values, 1000, false, NULL, &arena));
    int counts[PITH_BINS] = { 0 };
    for (int i = 0; i < 1000; i++) counts[pith__feature_bin_of(&bins, i * i)]++;
    assert_int_equal(bins.count, 254);
    for (int i = 1; i <= bins.count; i++) assert_true(counts[i] >= 3 && counts[i] <= 5);
    assert_int_equal(pith__feature_bin_of(&bins, NAN), 0);
    assert_int_equal(pith__feature_bin_of(&bins, -1), 1);
    assert_int_equal(pith__feature_bin_of(&bins, 1e300), 254);
    for (int i = 0; i < 1000; i++) values[i] = i % 3 ? 7 : i % 2 ? 4 : NAN;
    assert_true(pith__feature_bins_make(&bins, values, 1000, true, NULL, &arena));
    assert_int_equal(pith__feature_bin_of(&bins, 7), 1);
    assert_int_equal(pith__feature_bin_of(&bins, 4), 2);
    assert_int_equal(pith__feature_bin_of(&bins, 5), 3);
    pith__arena_free(&arena);
}

static void same_bits(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    pith__baseline one = fit(&db->rdb, &db->rdb.tasks[0], PITH_BASELINE_AGGREGATES, 1);
    pith__baseline many = fit(&db->rdb, &db->rdb.tasks[0], PITH_BASELINE_AGGREGATES, 3);
    uint32_t rows[300];
    double together[300];
    for (uint32_t i = 0; i < 300; i++) rows[i] = 100 + i * 79;
    assert_int_equal(pith__baseline_answer(together, &many, rows, 300, WORK(0), NULL), PITH_OK);
    for (uint32_t i = 0; i < 300; i++) {
        const double alone = answer(&one, rows[i]);
        assert_memory_equal(&alone, &together[i], sizeof alone);
    }
    pith__baseline_free(&one);
    pith__baseline_free(&many);
    pith_database_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(bins_cover),
                                        cmocka_unit_test(trees_learn),
                                        cmocka_unit_test(aggregates_are_right),
                                        cmocka_unit_test(no_times),
                                        cmocka_unit_test(own_label),
                                        cmocka_unit_test(windows_wait),
                                        cmocka_unit_test(nothing_later_counts),
                                        cmocka_unit_test(labels_wait),
                                        cmocka_unit_test(same_bits),
                                        cmocka_unit_test(shop_ladder) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
