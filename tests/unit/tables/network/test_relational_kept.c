/* test_relational_kept.c - what a model keeps of its database, and baselines as bytes: opened over
 * the same database they answer as before to the last bit, for every kind of target; broken in
 * thousands of ways, with their checksums made right again, they are an error or answer; every
 * failed allocation is an error. */
#include "support/relational_test.h"

#include "base/checksum.h"
#include "tables/baseline/baseline.h"
#include "tables/database/rdb_file.h"
#include "tables/database/rdb_keep.h"
#include "tables/network/trainer.h"

enum { BYTES_MOST = 1 << 21, ASKED = 40, MUTANTS = 1500 };
static const char *const tasks[] = { "late", "price", "place", "kind", "soon" };
enum { TASKS = 5 };

/* Bytes that grow. */
typedef struct test_bytes {
    uint8_t *data;
    size_t size;
} test_bytes;

static int32_t bytes_take(void *user, const void *data, size_t size) {
    test_bytes *b = user;
    assert_true(b->size + size <= BYTES_MOST);
    if (!b->data) b->data = malloc(BYTES_MOST);
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

/* 300 parcels of 20 shops, with a question of each kind. */
static pith_database *parcels(void) {
    static char text[1 << 16];
    size_t n = (size_t)snprintf(text, sizeof text, "id,shop,at,late,price,kind,note\n");
    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "p%d,%d,2024-%02d-%02d,%s,%d.5,%s,note %d\n", i, i * 7 % 20,
                              1 + i / 28, 1 + i % 28, i * i % 7 < 3 ? "yes" : "no", i * 37 % 90,
                              i % 5 < 2   ? "red"
                              : i % 5 < 4 ? "green"
                                          : "blue",
                              i % 11);
    test_put("parcels.csv", text);
    n = (size_t)snprintf(text, sizeof text, "id,town\n");
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,town %d\n", i, i % 6);
    test_put("shops.csv", text);
#define SPLIT                                                                                      \
    "\"split\": {\"kind\": \"time\", \"train_until\": \"2024-06-01\", \"validation_until\": "      \
    "\"2024-08-01\"}}"
#define TASK(name, column, more)                                                                   \
    "\"" name "\": {\"anchor_table\": \"parcels\", \"target_column\": \"" column "\", " more SPLIT
    test_put(
        "schema.json",
        "{\"name\": \"post\", \"tables\": {\"shops\": {\"file\": \"shops.csv\", \"primary_key\": "
        "\"id\", "
        "\"columns\": {\"id\": {\"stype\": \"identifier\"}, \"town\": {\"stype\": "
        "\"categorical\"}}}, "
        "\"parcels\": {\"file\": \"parcels.csv\", \"primary_key\": \"id\", \"temporal_column\": "
        "\"at\", "
        "\"columns\": {\"id\": {\"stype\": \"identifier\"}, \"shop\": {\"stype\": \"identifier\", "
        "\"foreign_key\": \"shops.id\"}, \"at\": {\"stype\": \"timestamp\"}, \"late\": {\"stype\": "
        "\"boolean\"}, "
        "\"price\": {\"stype\": \"numerical\"}, \"kind\": {\"stype\": \"categorical\"}, "
        "\"note\": {\"stype\": \"text\"}}}}, \"tasks\": {" TASK("late", "late", "") ", " TASK(
            "price", "price",
            "") ", " TASK("place", "price",
                          "\"rank\": true, ") ", " TASK("kind", "kind",
                                                        "") ", \"soon\": {\"anchor_table\": "
                                                            "\"shops\", \"window\": "
                                                            "{\"table\": \"parcels\", "
                                                            "\"aggregate\": \"count\", "
                                                            "\"seconds\": 864000, "
                                                            "\"every_seconds\": 864000, \"from\": "
                                                            "\"2024-02-01\", \"until\": "
                                                            "\"2024-10-01\"}, " SPLIT "}}");
    return test_database(test_directory());
}

static pith_relational *model_of(const pith_database *db, const char *task) {
    static const char config[] =
        "{\"dim\": 16, \"heads\": 1, \"ff\": 16, \"blocks\": 1, \"batch\": 4, \"cells\": 80, "
        "\"width\": 5, \"steps\": 3, \"warmup\": 1}";
    pith_error err = PITH_ERROR_INIT;
    pith_relational *model;
    double loss;
    if (pith_relational_create(&model, db, task, config, 3, NULL, &err) ||
        pith_relational_train(&loss, model, 3, CALL(1), &err))
        fail_msg("%s", err.message);
    return model;
}

static int answer(float *answers, pith_relational *model) {
    pith_error err = PITH_ERROR_INIT;
    pith_relational_state state = PITH_RELATIONAL_STATE_INIT;
    uint32_t rows[ASKED];
    for (uint32_t i = 0; i < ASKED; i++) rows[i] = i * 3;
    pith_relational_get_state(&state, model);
    if (pith_relational_predict(answers, model, rows, ASKED, CALL(1), &err))
        fail_msg("%s", err.message);
    return ASKED * state.outputs;
}

static pith_database *opened(const test_bytes *bytes) {
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = NULL;
    char path[400];
    snprintf(path, sizeof path, "%s.kept", test_directory());
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(bytes->data, 1, bytes->size, f), bytes->size);
    fclose(f);
    (void)pith_database_open(&db, path, NULL, &err);
    unlink(path);
    return db;
}

static void same_answers(void **unused) {
    (void)unused;
    for (int t = 0; t < TASKS; t++) {
        pith_error err = PITH_ERROR_INIT;
        pith_database *db = parcels(), *later = parcels();
        pith_relational *model = model_of(db, tasks[t]), *again;
        test_bytes kept = { NULL, 0 }, saved = { NULL, 0 };
        float before[ASKED * 3], after[ASKED * 3];
        assert_int_equal(pith_relational_keep(model, NULL, WRITER(bytes_take, &kept), &err),
                         PITH_OK);
        assert_int_equal(pith_relational_save(model, NULL, WRITER(bytes_take, &saved), &err),
                         PITH_OK);
        pith_database *own = opened(&kept);
        assert_non_null(own);
        /* What the file says of its own rows does not count. */
        for (uint32_t c = 0; c < later->rdb.tables[1].column_count; c++)
            later->rdb.tables[1].columns[c].mean += 5;
        assert_int_equal(pith_database_follow(later, own, NULL, &err), PITH_OK);
        pith_database_close(own);
        assert_int_equal(pith_relational_load(&again, later, saved.data, saved.size, NULL, &err),
                         PITH_OK);
        for (int32_t k = -1; k < PITH_BASELINE_COUNT; k++) {
            test_bytes baseline = { NULL, 0 };
            assert_int_equal(pith_relational_answer_by(model, k, CALL(1), &err), PITH_OK);
            if (k >= 0) {
                assert_int_equal(
                    pith_relational_save_baseline(model, NULL, WRITER(bytes_take, &baseline), &err),
                    PITH_OK);
                assert_int_equal(pith_relational_load_baseline(again, baseline.data, baseline.size,
                                                               CALL(1), &err),
                                 PITH_OK);
            }
            const int n = answer(before, model);
            assert_int_equal(answer(after, again), n);
            assert_memory_equal(before, after, (size_t)n * sizeof *before);
            free(baseline.data);
        }
        pith_relational_destroy(again);
        pith_relational_destroy(model);
        pith_database_close(db);
        pith_database_close(later);
        free(kept.data);
        free(saved.data);
    }
}

/* ---- hostile bytes ---- */

static uint64_t state = 11;
static uint64_t draw(uint64_t n) { return (pith__random_next(&state) >> 32) * n >> 32; }

static void break_some(test_bytes *to, const test_bytes *from, size_t head) {
    static const uint64_t odd[] = { 0,          1,          2,          63,    64,
                                    0x7FFFFFFF, 0xFFFFFFFF, 1ull << 40, ~0ull, 0x7FF8000000000000 };
    memcpy(to->data, from->data, from->size);
    to->size = draw(8) ? from->size : head + draw(from->size - head);
    for (uint64_t k = 1 + draw(3); k-- > 0;) {
        const uint64_t value = draw(2) ? odd[draw(sizeof odd / sizeof *odd)] : draw(300);
        const size_t size = draw(2) ? 4 : 8;
        memcpy(to->data + head + draw((from->size - head) / size - 1) * size, &value, size);
    }
}

static void mutants_of_baselines(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = parcels();
    pith_relational *model = model_of(db, "kind");
    float answers[ASKED * 3];
    int good = 0;
    for (int32_t k = 1; k < PITH_BASELINE_COUNT; k++) {
        test_bytes whole = { NULL, 0 }, broken = { malloc(BYTES_MOST), 0 };
        assert_int_equal(pith_relational_answer_by(model, k, CALL(1), &err), PITH_OK);
        assert_int_equal(
            pith_relational_save_baseline(model, NULL, WRITER(bytes_take, &whole), &err), PITH_OK);
        for (int i = 0; i < MUTANTS / 4; i++) {
            break_some(&broken, &whole, 24);
            if (broken.size < 8) continue;
            const uint64_t hash = pith__hash_of(broken.data, broken.size - 8);
            memcpy(broken.data + broken.size - 8, &hash, 8);
            if (pith_relational_load_baseline(model, broken.data, broken.size, CALL(1), &err))
                continue;
            answer(answers, model);
            good++;
        }
        free(whole.data);
        free(broken.data);
    }
    print_message("%d of %d still answer\n", good, MUTANTS);
    assert_true(good > 0);
    pith_relational_destroy(model);
    pith_database_close(db);
}

static void mutants_of_kept(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = parcels();
    pith_relational *model = model_of(db, "kind");
    test_bytes kept = { NULL, 0 }, saved = { NULL, 0 }, broken = { malloc(BYTES_MOST), 0 };
    float answers[ASKED * PITH_TARGET_CLASSES];
    int good = 0;
    assert_int_equal(pith_relational_keep(model, NULL, WRITER(bytes_take, &kept), &err), PITH_OK);
    assert_int_equal(pith_relational_save(model, NULL, WRITER(bytes_take, &saved), &err), PITH_OK);
    for (int i = 0; i < MUTANTS / 4; i++) {
        pith_relational *again = NULL;
        pith__rdb_header h;
        break_some(&broken, &kept, sizeof h);
        memcpy(&h, broken.data, sizeof h);
        h.bytes = broken.size;
        h.checksum = pith__hash_of(broken.data + sizeof h, broken.size - sizeof h);
        memcpy(broken.data, &h, sizeof h);
        pith_database *own = opened(&broken), *later = own ? parcels() : NULL;
        if (own && !pith_database_follow(later, own, NULL, &err) &&
            !pith_relational_load(&again, later, saved.data, saved.size, NULL, &err)) {
            answer(answers, again);
            good++;
        }
        pith_relational_destroy(again);
        pith_database_close(own);
        pith_database_close(later);
    }
    print_message("%d of %d still answer\n", good, MUTANTS / 4);
    assert_true(good > 0);
    pith_relational_destroy(model);
    pith_database_close(db);
    free(kept.data);
    free(saved.data);
    free(broken.data);
}

/* ---- memory ---- */

typedef struct test_memory {
    size_t used, calls, fail_at; /* fail_at: the call that is refused; 0: none */
} test_memory;

static void *memory_take(void *user, size_t size) {
    test_memory *m = user;
    if (++m->calls == m->fail_at) return NULL;
    m->used++;
    return malloc(size);
}

static void memory_give(void *user, void *memory) {
    ((test_memory *)user)->used -= memory != NULL;
    free(memory);
}

/* Keeps, follows, loads, learns a baseline, saves and loads it. */
static pith_status everything(const char *path, const test_bytes *kept, const test_bytes *saved,
                              test_memory *memory, pith_error *err) {
    const pith_allocator allocator = { memory_take, memory_give, memory };
    const pith_call call = { .size = sizeof call, .allocator = &allocator };
    pith_database *db = NULL, *own = NULL;
    pith_relational *model = NULL;
    test_bytes again = { NULL, 0 }, baseline = { NULL, 0 };
    char name[400];
    snprintf(name, sizeof name, "%s.kept", test_directory());
    FILE *f = fopen(name, "wb");
    assert_int_equal(fwrite(kept->data, 1, kept->size, f), kept->size);
    fclose(f);
    pith_status status = pith_database_open(&db, path, &call, err);
    if (!status) status = pith_database_open(&own, name, &call, err);
    if (!status) status = pith_database_follow(db, own, NULL, err);
    if (!status) status = pith_relational_load(&model, db, saved->data, saved->size, NULL, err);
    if (!status) status = pith_relational_keep(model, NULL, WRITER(bytes_take, &again), err);
    if (!status) status = pith_relational_answer_by(model, 1, CALL(1), err);
    if (!status)
        status = pith_relational_save_baseline(model, NULL, WRITER(bytes_take, &baseline), err);
    if (!status)
        status = pith_relational_load_baseline(model, baseline.data, baseline.size, CALL(1), err);
    pith_relational_destroy(model);
    pith_database_close(own);
    pith_database_close(db);
    unlink(name);
    free(again.data);
    free(baseline.data);
    return status;
}

static void failing_memory(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_database *db = parcels();
    pith_relational *model = model_of(db, "kind");
    test_bytes kept = { NULL, 0 }, saved = { NULL, 0 };
    test_memory memory = { 0 };
    char path[400];
    assert_int_equal(pith_relational_keep(model, NULL, WRITER(bytes_take, &kept), &err), PITH_OK);
    assert_int_equal(pith_relational_save(model, NULL, WRITER(bytes_take, &saved), &err), PITH_OK);
    snprintf(path, sizeof path, "%s/post.rdb", test_directory());
    if (test_make(test_directory(), path, &err)) fail_msg("%s", err.message);
    if (everything(path, &kept, &saved, &memory, &err)) fail_msg("%s", err.message);
    const size_t calls = memory.calls;
    assert_int_equal(memory.used, 0);
    for (size_t i = 1; i <= calls; i++) {
        memory = (test_memory){ .fail_at = i };
        assert_int_equal(everything(path, &kept, &saved, &memory, &err), PITH_ERR_MEMORY);
        assert_int_equal(memory.used, 0);
    }
    print_message("%zu allocations\n", calls);
    pith_relational_destroy(model);
    pith_database_close(db);
    free(kept.data);
    free(saved.data);
}

static int clean(void **unused) {
    (void)unused;
    test_clean();
    rmdir(test_directory());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_answers),
                                        cmocka_unit_test(mutants_of_baselines),
                                        cmocka_unit_test(mutants_of_kept),
                                        cmocka_unit_test(failing_memory) };
    return cmocka_run_group_tests(tests, NULL, clean);
}
