/* test_relational.c - what a context holds, and that nothing later than the question changes an
 * answer; that training has the same bits for any number of threads, and after it was interrupted;
 * gradients against differences. */
#include "support/relational_test.h"

#include <math.h>

#include "tables/network/trainer.h"

#define SMALL "{\"steps\": 12, \"warmup\": 4, \"batch\": 10, \"cells\": 200, \"width\": 12}"

static pith_relational *make_model(pith_database *db, const char *config) {
    pith_error err = PITH_ERROR_INIT;
    pith_relational *r;
    if (pith_relational_create(&r, db, "returned", config, 7, NULL, &err))
        fail_msg("%s", err.message);
    return r;
}

static void train(pith_relational *r, int64_t steps, int threads) {
    pith_error err = PITH_ERROR_INIT;
    double loss;
    if (pith_relational_train(&loss, r, steps, CALL(threads), &err)) fail_msg("%s", err.message);
}

/* ---- leaks ---- */

/* Seeds from the middle and the end of the orders. */
static uint32_t some_row(uint32_t i) { return 8000 + i * 79; }

/* Cells that are known too late change no bit of the answer about a row. Returns whether earlier
 * ones change it. */
static bool earlier_cells_count(pith_relational *model, pith__rdb *r, uint32_t row) {
    pith_error err = PITH_ERROR_INIT;
    const int64_t asked = pith__rdb_asked_at(r, &r->tasks[0], row);
    float before, after, earlier;
    assert_int_equal(pith__trainer_answer(&before, model, &row, 1, WORK(1), &err), PITH_OK);
    spoil(r, &r->tasks[0], row, asked, false);
    assert_int_equal(pith__trainer_answer(&after, model, &row, 1, WORK(1), &err), PITH_OK);
    spoil(r, &r->tasks[0], row, asked, false);
    if (memcmp(&before, &after, sizeof before) != 0)
        fail_msg("row %u: %.9g became %.9g", row, before, after);
    spoil(r, &r->tasks[0], row, asked, true);
    assert_int_equal(pith__trainer_answer(&earlier, model, &row, 1, WORK(1), &err), PITH_OK);
    spoil(r, &r->tasks[0], row, asked, true);
    return earlier != before;
}

static void nothing_later_counts(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    pith__rdb *r = &db->rdb;
    make_writable(r);
    pith_relational *model = make_model(db, SMALL);
    int changed = 0, with_siblings = 0;
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t row = some_row(i);
        const int64_t asked = pith__rdb_asked_at(r, &r->tasks[0], row);
        changed += earlier_cells_count(model, r, row);
        for (uint32_t k = 0, any = 0; k < r->link_count && !any; k++) {
            const pith__rdb_link *link = &r->links[k];
            const uint32_t first = link->down[link->begin[link->up[row]]];
            any = pith__rdb_row_time(r, link->child, first) < asked;
            with_siblings += any;
        }
    }
    assert_int_equal(changed, with_siblings); /* those with earlier rows in their context, and no
                                                 others */
    assert_true(changed > 150);
    pith_relational_destroy(model);
    pith_database_close(db);
}

/* A label that is known 60 days after its row is in no context before. */
static void labels_wait(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    pith__rdb *r = &db->rdb;
    make_writable(r);
    pith__rdb_column *target = &r->tables[2].columns[r->tasks[0].column];
    target->known_delay = 60 * 86400;
    pith_relational *model = make_model(db, SMALL);
    int changed = 0;
    for (uint32_t i = 0; i < 200; i++) changed += earlier_cells_count(model, r, some_row(i));
    assert_true(changed > 150);
    pith_relational_destroy(model);
    pith_database_close(db);
}

/* ---- bits ---- */

typedef struct memory {
    char *data;
    size_t size;
} memory;

static int32_t memory_write(void *user, const void *data, size_t size) {
    memory *m = user;
    m->data = realloc(m->data, m->size + size);
    memcpy(m->data + m->size, data, size);
    m->size += size;
    return 0;
}

static memory saved(const pith_relational *r) {
    memory m = { NULL, 0 };
    assert_int_equal(pith_relational_save(r, NULL, WRITER(memory_write, &m), NULL), PITH_OK);
    return m;
}

static void same_bits(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = test_database(SHOP);
    pith_relational *one = make_model(db, SMALL), *many = make_model(db, SMALL), *resumed;
    train(one, 12, 1);
    memory want = saved(one), got;
    for (int i = 0; i < 12; i++) { /* saved and loaded after each step, with another number of
                                      threads */
        train(many, 1, 1 + i % 4);
        got = saved(many);
        pith_relational_destroy(many);
        assert_int_equal(pith_relational_load(&resumed, db, got.data, got.size, NULL, &err),
                         PITH_OK);
        many = resumed;
        if (i < 11) free(got.data);
    }
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.data, want.data, want.size);
    /* An answer does not depend on those beside it. */
    uint32_t rows[50];
    float alone[50], together[50];
    for (uint32_t i = 0; i < 50; i++) {
        rows[i] = some_row(i * 4);
        assert_int_equal(pith_relational_predict(&alone[i], one, &rows[i], 1, CALL(1), &err),
                         PITH_OK);
    }
    assert_int_equal(pith_relational_predict(together, one, rows, 50, CALL(3), &err), PITH_OK);
    assert_memory_equal(alone, together, sizeof alone);
    /* Damage is found. */
    for (size_t at = 0; at < want.size; at += want.size / 50) {
        want.data[at] ^= 4;
        assert_int_not_equal(pith_relational_load(&resumed, db, want.data, want.size, NULL, &err),
                             PITH_OK);
        want.data[at] ^= 4;
    }
    assert_int_not_equal(pith_relational_load(&resumed, db, want.data, want.size - 1, NULL, &err),
                         PITH_OK);
    free(want.data);
    free(got.data);
    pith_relational_destroy(one);
    pith_relational_destroy(many);
    pith_database_close(db);
}

/* ---- what a cell reads ---- */

/* Whether cell i reads cell j, by definition. */
static bool reads(const pith__pack *p, int kind, uint32_t i, uint32_t j) {
    const pith__cell *a = &p->cells[i], *b = &p->cells[j];
    if (a->sequence != b->sequence) return false;
    if (1 << kind == PITH_ATTEND_COLUMN) return a->table == b->table && a->column == b->column;
    if (1 << kind == PITH_ATTEND_FULL) return true;
    const bool up = 1 << kind == PITH_ATTEND_FEATURE;
    if (up ? a->place == b->place : i == j) return true;
    for (uint32_t e = 0; e < p->edge_count; e++)
        if ((up ? p->edges[e].child : p->edges[e].parent) == a->place &&
            (up ? p->edges[e].parent : p->edges[e].child) == b->place)
            return true;
    return false;
}

static void lists_of_keys(void **state) {
    (void)state;
    pith_database *db = test_database(SHOP);
    pith_relational *model = make_model(db, SMALL);
    pith__arena arena;
    pith__pack pack;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_true(pith__pack_begin(&pack, &arena, 5, &model->config.sample));
    for (uint32_t i = 0; i < 5; i++)
        pith__pack_add(&pack, &db->rdb, &db->rdb.tasks[0], some_row(40 * i), &model->config.sample);
    assert_true(pith__pack_list(&pack, &arena, 15));
    for (int k = 0; k < PITH_ATTEND_KINDS; k++) {
        const pith__key_list *list = &pack.lists[k];
        for (uint32_t i = 0; i < pack.cell_count; i++) {
            uint32_t *from = list->keys + list->begin[i],
                     count = list->begin[i + 1] - list->begin[i], there = 0;
            for (uint32_t j = 0; j < pack.cell_count; j++) there += reads(&pack, k, i, j);
            assert_int_equal(count, there);
            for (uint32_t j = 0; j < count; j++) {
                assert_true(reads(&pack, k, i, from[j]));
                for (uint32_t h = 0; h < j; h++) assert_int_not_equal(from[h], from[j]);
            }
        }
    }
    pith__arena_free(&arena);
    pith_relational_destroy(model);
    pith_database_close(db);
}

/* Ages that differ by a twentieth are told apart by one of the numbers, whatever they are. */
static void ages(void **state) {
    (void)state;
    int64_t times[2] = { 0, 0 };
    const pith__rdb_column c = {
        .stype = PITH_STYPE_TIMESTAMP, .data = times, .mean = 0, .sd = 1e12
    };
    float a[PITH_TIME_FEATURES], b[PITH_TIME_FEATURES];
    for (int64_t day = 1; day < 4000; day += 1 + day / 3) {
        /* By whole weeks, so that neither the hour nor the weekday says it. */
        const int64_t more = (day / 20 / 7 + 1) * 7 * 86400;
        times[1] = more;
        pith__rdb_time_features(a, &c, 0, day * 86400 + more, false);
        pith__rdb_time_features(b, &c, 1, day * 86400 + more, false);
        float most = 0;
        for (int i = 7; i < PITH_TIME_FEATURES; i++) most = fmaxf(most, fabsf(a[i] - b[i]));
        assert_true(most > 0.25f);
    }
    pith__rdb_time_features(a, &c, 0, 6 * 3600, false);
    assert_true(fabs(a[1] - 0) < 1e-6 && fabs(a[2] - 1) < 1e-6);
    assert_true(fabs(a[7] - log2(7) / 8) < 1e-6 &&
                fabs(a[15] - cos(2 * 3.141592653589793 * log2(7))) < 1e-5);
    pith__rdb_time_features(b, &c, 0, -6 * 3600, false);
    assert_true(fabs(a[7] + b[7]) < 1e-6 && fabs(a[8] - b[8]) < 1e-6);
    pith__rdb_time_features(a, &c, 0, INT64_MAX, false);
    for (int i = 7; i < PITH_TIME_FEATURES; i++) assert_true(a[i] == 0);
}

/* Without the year two times of the same age, hour, weekday and day of the year look the same. */
static void ages_without_years(void **state) {
    (void)state;
    int64_t times[2] = { 0, (int64_t)31556952 * 400 }; /* 400 years are whole weeks */
    const pith__rdb_column c = {
        .stype = PITH_STYPE_TIMESTAMP, .data = times, .mean = 1e9, .sd = 1e9
    };
    float a[2][PITH_TIME_FEATURES], b[2][PITH_TIME_FEATURES];
    for (int i = 0; i < 2; i++) {
        pith__rdb_time_features(a[i], &c, (uint32_t)i, times[i] + 86400, true);
        pith__rdb_time_features(b[i], &c, (uint32_t)i, times[i] + 86400, false);
    }
    assert_true(a[0][0] == 0 && a[1][0] == 0 && fabsf(b[0][0] - b[1][0]) > 1);
    for (int i = 1; i < PITH_TIME_FEATURES; i++)
        assert_true(fabsf(a[0][i] - a[1][i]) < 1e-4f && a[0][i] == b[0][i]);
    pith__rdb_time_features(a[0], &c, 0, INT64_MAX, true);
    assert_true(a[0][0] == b[0][0]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_later_counts),
                                        cmocka_unit_test(labels_wait),
                                        cmocka_unit_test(same_bits),
                                        cmocka_unit_test(lists_of_keys),
                                        cmocka_unit_test(ages),
                                        cmocka_unit_test(ages_without_years) };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    test_clean();
    rmdir(test_directory());
    return failures;
}
