/* test_tables_stop.c - calls about tables that are ended early: by a deadline, a flag or a
 * function, before they begin and in their midst. Handles and files stay what they were. */
#include "support/relational_test.h"

#include "base/os/clock.h"
#include "base/str.h"
#include "tables/database/stoppable_sort.h"

#define CONFIG "{\"steps\": 6, \"warmup\": 2, \"batch\": 10, \"cells\": 120, \"width\": 8}"

typedef struct test_bytes {
    uint8_t *data;
    size_t size;
} test_bytes;

static int32_t bytes_take(void *user, const void *data, size_t size) {
    test_bytes *b = user;
    b->data = realloc(b->data, b->size + size + 1);
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

static void bytes_same(const test_bytes *a, const test_bytes *b) {
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* What the calls need. */
typedef struct fixture {
    pith_database *db, *later, *kept;
    pith_relational *model;
    test_bytes saved, baseline;
    char path[400], kept_path[400];
} fixture;

static void fixture_make(fixture *f) {
    pith_error err = PITH_ERROR_INIT;
    test_bytes kept = { NULL, 0 };
    *f = (fixture){ .db = NULL };
    snprintf(f->path, sizeof f->path, "%s/shop.rdb", test_directory());
    snprintf(f->kept_path, sizeof f->kept_path, "%s/kept.rdb", test_directory());
    if (test_make(SHOP, f->path, &err) || pith_database_open(&f->db, f->path, NULL, &err) ||
        pith_database_open(&f->later, f->path, NULL, &err) ||
        pith_relational_create(&f->model, f->db, "returned", CONFIG, 7, NULL, &err) ||
        pith_relational_save(f->model, NULL, WRITER(bytes_take, &f->saved), &err) ||
        pith_relational_keep(f->model, NULL, WRITER(bytes_take, &kept), &err) ||
        pith_relational_answer_by(f->model, 1, NULL, &err) ||
        pith_relational_save_baseline(f->model, NULL, WRITER(bytes_take, &f->baseline), &err) ||
        pith_relational_answer_by(f->model, -1, NULL, &err))
        fail_msg("%s", err.message);
    FILE *file = fopen(f->kept_path, "wb");
    assert_int_equal(fwrite(kept.data, 1, kept.size, file), kept.size);
    fclose(file);
    free(kept.data);
    assert_int_equal(pith_database_open(&f->kept, f->kept_path, NULL, &err), PITH_OK);
}

static void fixture_free(fixture *f) {
    pith_relational_destroy(f->model);
    pith_database_close(f->kept);
    pith_database_close(f->later);
    pith_database_close(f->db);
    free(f->saved.data);
    free(f->baseline.data);
    test_clean();
}

/* ---- the calls ---- */

static pith_status call_draft(fixture *f, const pith_call *call, pith_error *err) {
    test_bytes out = { NULL, 0 };
    const pith_status status = pith_database_draft(SHOP, call, WRITER(bytes_take, &out), err);
    (void)f;
    free(out.data);
    return status;
}

static pith_status call_make(fixture *f, const pith_call *call, pith_error *err) {
    pith_database_options o = PITH_DATABASE_OPTIONS_INIT;
    test_bytes out = { NULL, 0 };
    o.call = *call;
    o.call.size = sizeof o;
    const pith_status status = pith_database_make(SHOP, &o, WRITER(bytes_take, &out), err);
    (void)f;
    free(out.data);
    return status;
}

static pith_status call_open(fixture *f, const pith_call *call, pith_error *err) {
    pith_database *db = NULL;
    const pith_status status = pith_database_open(&db, f->path, call, err);
    assert_true(!db == (status != PITH_OK));
    pith_database_close(db);
    return status;
}

static pith_status call_describe(fixture *f, const pith_call *call, pith_error *err) {
    test_bytes out = { NULL, 0 };
    const pith_status status = pith_database_describe(f->db, call, WRITER(bytes_take, &out), err);
    assert_true(!out.size == (status != PITH_OK));
    free(out.data);
    return status;
}

static pith_status call_follow(fixture *f, const pith_call *call, pith_error *err) {
    return pith_database_follow(f->later, f->kept, call, err);
}

static pith_status call_create(fixture *f, const pith_call *call, pith_error *err) {
    pith_relational *model = NULL;
    const pith_status status =
        pith_relational_create(&model, f->db, "returned", CONFIG, 7, call, err);
    assert_true(!model == (status != PITH_OK));
    pith_relational_destroy(model);
    return status;
}

static pith_status call_load(fixture *f, const pith_call *call, pith_error *err) {
    pith_relational *model = NULL;
    const pith_status status =
        pith_relational_load(&model, f->db, f->saved.data, f->saved.size, call, err);
    assert_true(!model == (status != PITH_OK));
    pith_relational_destroy(model);
    return status;
}

static pith_status call_train(fixture *f, const pith_call *call, pith_error *err) {
    double loss;
    return pith_relational_train(&loss, f->model, 1, call, err);
}

static pith_status call_evaluate(fixture *f, const pith_call *call, pith_error *err) {
    pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
    return pith_relational_evaluate(&m, f->model, PITH_SPLIT_OF_VALIDATION, call, err);
}

static void take_rise(void *user, pith_str table, pith_str column, double rise) {
    (void)table, (void)column, (void)rise;
    ++*(int *)user;
}

static pith_status call_importance(fixture *f, const pith_call *call, pith_error *err) {
    int count = 0;
    const pith_status status =
        pith_relational_importance(f->model, PITH_SPLIT_OF_TEST, 8, call, take_rise, &count, err);
    assert_true(!count == (status != PITH_OK));
    return status;
}

static pith_status call_predict(fixture *f, const pith_call *call, pith_error *err) {
    uint32_t rows[40];
    float answers[40];
    for (uint32_t i = 0; i < 40; i++) rows[i] = 9000 + i;
    return pith_relational_predict(answers, f->model, rows, 40, call, err);
}

static pith_status call_measure(fixture *f, const pith_call *call, pith_error *err) {
    pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
    return pith_baseline_evaluate(&m, f->model, 4, PITH_SPLIT_OF_TEST, call, err);
}

static pith_status call_answer_by(fixture *f, const pith_call *call, pith_error *err) {
    const pith_status status = pith_relational_answer_by(f->model, 1, call, err);
    pith_relational_answer_by(f->model, -1, NULL, NULL);
    return status;
}

static pith_status call_load_baseline(fixture *f, const pith_call *call, pith_error *err) {
    const pith_status status =
        pith_relational_load_baseline(f->model, f->baseline.data, f->baseline.size, call, err);
    pith_relational_answer_by(f->model, -1, NULL, NULL);
    return status;
}

/* ---- what is written ---- */

static int32_t bytes_count(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return 0;
}

static pith_status call_save(fixture *f, const pith_call *call, pith_error *err) {
    test_bytes out = { NULL, 0 };
    const pith_status status = pith_relational_save(f->model, call, WRITER(bytes_take, &out), err);
    free(out.data);
    return status;
}

static pith_status call_keep(fixture *f, const pith_call *call, pith_error *err) {
    size_t written = 0;
    return pith_relational_keep(f->model, call, WRITER(bytes_count, &written), err);
}

static pith_status call_save_baseline(fixture *f, const pith_call *call, pith_error *err) {
    size_t written = 0;
    pith_error first = PITH_ERROR_INIT;
    if (pith_relational_load_baseline(f->model, f->baseline.data, f->baseline.size, NULL, &first))
        fail_msg("%s", first.message);
    const pith_status status =
        pith_relational_save_baseline(f->model, call, WRITER(bytes_count, &written), err);
    if (!status) assert_int_equal(written, f->baseline.size);
    pith_relational_answer_by(f->model, -1, NULL, NULL);
    return status;
}

static pith_status call_export(fixture *f, const pith_call *call, pith_error *err) {
    size_t written = 0;
    return pith_relational_export(f->model, call, WRITER(bytes_count, &written), err);
}

/* ---- looks at a model ---- */

static void input_count(void *user, const char *name, const pith_tensor *value) {
    (void)name, (void)value;
    ++*(int *)user;
}

static pith_status call_inputs(fixture *f, const pith_call *call, pith_error *err) {
    static const uint32_t rows[] = { 9000, 9001, 9002 };
    int count = 0;
    const pith_status status =
        pith_relational_inputs(f->model, rows, 3, call, input_count, &count, err);
    if (!status) assert_true(count > 0);
    return status;
}

static pith_status call_part(fixture *f, const pith_call *call, pith_error *err) {
    size_t count = 0;
    const pith_status status =
        pith_relational_part(NULL, NULL, &count, f->model, PITH_SPLIT_OF_TEST, call, err);
    if (!status) assert_true(count > 0);
    return status;
}

static pith_status call_find_row(fixture *f, const pith_call *call, pith_error *err) {
    uint32_t row = 0;
    const pith_status status =
        pith_relational_find_row(&row, f->model, pith__str_of("77"), call, err);
    if (!status) assert_int_equal(row, 77);
    return status;
}

static pith_status call_start_from(fixture *f, const pith_call *call, pith_error *err) {
    return pith_relational_start_from(f->model, f->saved.data, f->saved.size, call, err);
}

static pith_status call_config(fixture *f, const pith_call *call, pith_error *err) {
    pith_str config = { NULL, 0 };
    const pith_status status =
        pith_relational_config(&config, f->saved.data, f->saved.size, call, err);
    if (!status) assert_true(pith__str_is(config, CONFIG));
    return status;
}

static const struct {
    const char *name;
    pith_status (*run)(fixture *f, const pith_call *call, pith_error *err);
    bool again; /* it may be run several times, and takes well below a second */
} calls[] = {
    { "draft", call_draft, true },
    { "make", call_make, true },
    { "open", call_open, true },
    { "describe", call_describe, true },
    { "create", call_create, true },
    { "load", call_load, true },
    { "train", call_train, false },
    { "evaluate", call_evaluate, false },
    { "importance", call_importance, true },
    { "predict", call_predict, true },
    { "measure", call_measure, false },
    { "answer by", call_answer_by, true },
    { "load baseline", call_load_baseline, true },
    { "save", call_save, true },
    { "keep", call_keep, true },
    { "save baseline", call_save_baseline, true },
    { "export", call_export, true },
    { "inputs", call_inputs, true },
    { "part", call_part, true },
    { "find row", call_find_row, true },
    { "start from", call_start_from, true },
    { "config", call_config, true },
    { "follow", call_follow, false },
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- before they begin ---- */

static int32_t stop_at_once(void *user) {
    ++*(int *)user;
    return 1;
}

static void before_they_begin(void **state) {
    (void)state;
    static const volatile int set = 1;
    int asked = 0;
    const pith_call ways[] = {
        { .size = sizeof(pith_call), .deadline_ns = 1 },
        { .size = sizeof(pith_call), .cancel = &set },
        { .size = sizeof(pith_call), .stop = stop_at_once, .user = &asked },
        { .size = sizeof(pith_call), .deadline_ns = pith_clock_now() - 1000, .threads = 2 },
    };
    const pith_status wanted[] = { PITH_ERR_DEADLINE, PITH_ERR_CANCELLED, PITH_ERR_CANCELLED,
                                   PITH_ERR_DEADLINE };
    const pith_call none = { .size = 0 };
    fixture f;
    fixture_make(&f);
    for (size_t c = 0; c < CALLS; c++) {
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            pith_error err = PITH_ERROR_INIT;
            if (calls[c].run(&f, &ways[w], &err) != wanted[w] || err.code != wanted[w])
                fail_msg("%s, way %zu: %d, %s", calls[c].name, w, err.code, err.message);
        }
        pith_error err = PITH_ERROR_INIT;
        if (calls[c].run != call_make && calls[c].run(&f, &none, &err) != PITH_ERR_ARGUMENT)
            fail_msg("%s takes a context without a size", calls[c].name);
    }
    assert_int_equal(asked, CALLS);
    /* Everything still works; a later deadline ends nothing. */
    for (size_t c = 0; c < CALLS; c++) {
        const pith_call later = { .size = sizeof later,
                                  .deadline_ns = pith_clock_now() + 3600000000000u };
        pith_error err = PITH_ERROR_INIT;
        if (calls[c].run(&f, &later, &err)) fail_msg("%s: %s", calls[c].name, err.message);
    }
    fixture_free(&f);
}

/* ---- in their midst ---- */

/* Says so when it was asked so many times; the times double. */
typedef struct countdown {
    int left, asked;
} countdown;

static int32_t stop_after(void *user) {
    countdown *c = user;
    c->asked++;
    return c->left-- <= 0;
}

static void in_their_midst(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    for (size_t c = 0; c < CALLS; c++) {
        pith_status status = PITH_ERR_CANCELLED;
        if (!calls[c].again) continue;
        for (int times = 1; status && times < 1 << 16; times *= 2) {
            countdown count = { times, 0 };
            pith_error err = PITH_ERROR_INIT;
            const pith_call call = {
                .size = sizeof call, .stop = stop_after, .user = &count, .threads = 2
            };
            status = calls[c].run(&f, &call, &err);
            if (status && status != PITH_ERR_CANCELLED)
                fail_msg("%s: %s", calls[c].name, err.message);
            /* nobody is asked again */
            if (status) assert_int_equal(count.asked, times + 1);
        }
        if (status) fail_msg("%s does not end", calls[c].name);
    }
    fixture_free(&f);
}

/* Training that is ended again and again within its steps comes to the same bits. */
static void training_goes_on(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    test_bytes want = { NULL, 0 }, got = { NULL, 0 };
    pith_database *db = test_database(SHOP);
    pith_relational *whole, *pieces;
    pith_relational_state at = PITH_RELATIONAL_STATE_INIT;
    double loss;
    int stopped = 0;
    if (pith_relational_create(&whole, db, "returned", CONFIG, 7, NULL, &err) ||
        pith_relational_create(&pieces, db, "returned", CONFIG, 7, NULL, &err) ||
        pith_relational_train(&loss, whole, 6, CALL(1), &err) ||
        pith_relational_save(whole, NULL, WRITER(bytes_take, &want), &err))
        fail_msg("%s", err.message);
    for (int times = 1; at.step < 6; times++) {
        countdown count = { times, 0 };
        const pith_call call = {
            .size = sizeof call, .stop = stop_after, .user = &count, .threads = 2
        };
        const pith_status status = pith_relational_train(&loss, pieces, 6, &call, &err);
        if (status && status != PITH_ERR_CANCELLED) fail_msg("%s", err.message);
        stopped += status != PITH_OK;
        pith_relational_get_state(&at, pieces);
    }
    assert_true(stopped > 0);
    assert_int_equal(pith_relational_save(pieces, NULL, WRITER(bytes_take, &got), &err), PITH_OK);
    bytes_same(&want, &got);
    free(want.data);
    free(got.data);
    pith_relational_destroy(whole);
    pith_relational_destroy(pieces);
    pith_database_close(db);
}

/* ---- progress ---- */

typedef struct told {
    char what[100]; /* names in the order in which they came first */
    uint64_t done, total;
    bool backwards;
} told;

static void tell(void *user, const char *what, uint64_t done, uint64_t total) {
    told *t = user;
    const bool same =
        strlen(t->what) >= strlen(what) && !strcmp(t->what + strlen(t->what) - strlen(what), what);
    if (!same && strlen(t->what) + strlen(what) + 2 < sizeof t->what)
        snprintf(t->what + strlen(t->what), sizeof t->what - strlen(t->what), "%s%s",
                 *t->what ? " " : "", what);
    t->backwards |= same && done < t->done;
    t->done = done;
    t->total = total;
}

static void progress(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    static const struct {
        pith_status (*run)(fixture *f, const pith_call *call, pith_error *err);
        const char *first, *last;
        uint64_t done;
    } wanted[] = {
        { call_draft, "rows", NULL, 0 },
        { call_make, "tables", "texts", 0 },
        { call_train, "steps", "steps", 1 },
        { call_predict, "rows", "rows", 40 },
        { call_importance, "columns", "columns", 0 },
        { call_measure, "features", "trees", 0 },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        told t = { .done = 0 };
        pith_error err = PITH_ERROR_INIT;
        const pith_call call = { .size = sizeof call, .progress = tell, .user = &t, .threads = 1 };
        if (wanted[i].run(&f, &call, &err)) fail_msg("%s", err.message);
        const char *last = strrchr(t.what, ' ');
        last = last ? last + 1 : t.what;
        if (strncmp(t.what, wanted[i].first, strlen(wanted[i].first)) != 0 || t.backwards ||
            (wanted[i].last && strcmp(last, wanted[i].last) != 0))
            fail_msg("case %zu: '%s' was told, %d", i, t.what, t.backwards);
        if (wanted[i].done) assert_int_equal(t.done, wanted[i].done);
        if (wanted[i].done) assert_int_equal(t.total, wanted[i].done);
    }
    fixture_free(&f);
}

/* ---- structs with a size ---- */

static void structs_grow(void **state) {
    (void)state;
    fixture f;
    pith_relational_state about;
    pith_relational_metrics m;
    pith_error err = PITH_ERROR_INIT;
    fixture_make(&f);
    memset(&about, 0x55, sizeof about);
    about.size = offsetof(pith_relational_state, cells);
    pith_relational_get_state(&about, f.model);
    assert_int_equal(about.size, offsetof(pith_relational_state, cells));
    assert_int_equal(about.steps, 6);
    assert_int_equal(about.outputs, 0x55555555); /* is behind what the caller has */
    about.size = 0;
    about.steps = 3;
    pith_relational_get_state(&about, f.model);
    assert_int_equal(about.steps, 3);
    m.size = 0;
    assert_int_equal(pith_baseline_evaluate(&m, f.model, 0, PITH_SPLIT_OF_TEST, NULL, &err),
                     PITH_ERR_ARGUMENT);
    memset(&m, 0x55, sizeof m);
    m.size = offsetof(pith_relational_metrics, auroc);
    assert_int_equal(pith_baseline_evaluate(&m, f.model, 0, PITH_SPLIT_OF_TEST, NULL, &err),
                     PITH_OK);
    assert_int_equal(m.rows, 3600);
    assert_int_equal(*(const unsigned char *)&m.macro_f1, 0x55);
    fixture_free(&f);
}

/* ---- writers ---- */

static int32_t write_nothing(void *user, const void *data, size_t size) {
    (void)data, (void)size;
    ++*(int *)user;
    return 1;
}

static void writers_fail(void **state) {
    (void)state;
    static const pith_writer none;
    fixture f;
    pith_error err = PITH_ERROR_INIT;
    int written = 0;
    const pith_writer *full = WRITER(write_nothing, &written);
    fixture_make(&f);
    assert_int_equal(pith_relational_answer_by(f.model, 0, NULL, &err), PITH_OK);
    const pith_status failed[] = {
        pith_database_draft(SHOP, NULL, full, &err),
        pith_database_make(SHOP, NULL, full, &err),
        pith_database_describe(f.db, NULL, full, &err),
        pith_relational_save(f.model, NULL, full, &err),
        pith_relational_keep(f.model, NULL, full, &err),
        pith_relational_save_baseline(f.model, NULL, full, &err),
        pith_relational_export(f.model, NULL, full, &err),
    };
    const pith_status missing[] = {
        pith_database_draft(SHOP, NULL, &none, &err),
        pith_database_make(SHOP, NULL, NULL, &err),
        pith_database_describe(f.db, NULL, NULL, &err),
        pith_relational_save(f.model, NULL, NULL, &err),
        pith_relational_keep(f.model, NULL, &none, &err),
        pith_relational_save_baseline(f.model, NULL, NULL, &err),
        pith_relational_export(f.model, NULL, &none, &err),
    };
    enum { WRITERS = sizeof failed / sizeof *failed };
    for (size_t i = 0; i < WRITERS; i++) {
        assert_int_equal(failed[i], PITH_ERR_IO);
        assert_int_equal(missing[i], PITH_ERR_ARGUMENT);
    }
    assert_int_equal(written, WRITERS); /* after the first piece nothing more is written */
    fixture_free(&f);
}

/* ---- sorting ---- */

typedef struct item {
    uint32_t key, place;
} item;

static int item_compare(const void *a, const void *b) {
    const item *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Equal items keep their order, however many runs are merged. */
static void sorting(void **state) {
    (void)state;
    static const size_t counts[] = { 0, 1, 32768, 32769, 100000, 300001 };
    pith__arena arena;
    pith__stop stop;
    const volatile int clear = 0, set = 1;
    pith_call call = { .size = sizeof call, .cancel = &clear };
    pith__arena_init(&arena, &pith__allocator_default);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const size_t n = counts[c];
        item *items = calloc(n + 1, sizeof *items);
        uint32_t random = 1;
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            items[i] = (item){ random >> 20, (uint32_t)i };
        }
        assert_true(pith__sort(items, n, sizeof *items, item_compare,
                               pith__stop_begin(&stop, &call), &arena));
        for (size_t i = 1; i < n; i++)
            assert_true(items[i - 1].key < items[i].key ||
                        (items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
        call.cancel = &set;
        assert_false(pith__sort(items, n, sizeof *items, item_compare,
                                pith__stop_begin(&stop, &call), &arena));
        call.cancel = &clear;
        free(items);
    }
    pith__arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_they_begin), cmocka_unit_test(in_their_midst),
        cmocka_unit_test(training_goes_on),  cmocka_unit_test(progress),
        cmocka_unit_test(structs_grow),      cmocka_unit_test(writers_fail),
        cmocka_unit_test(sorting),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(test_directory());
    return failed;
}
