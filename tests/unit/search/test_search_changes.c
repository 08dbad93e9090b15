/* test_search_changes.c - an index that changes: after rows were added and removed at random, it
 * finds what an index over the same rows in the order of their ids finds, to the bit, and its file
 * is the same. */
#include "search_test.h"

#include <pthread.h>

#include "index_use.h"

enum { POOL = 900, IDS = 700, QUERIES = 3 };

static const struct {
    int dtype, bits, pass;
} kinds[] = { { PITH_F32, 0, 0 }, { PITH_F32, 0, 1 }, { PITH_F32, 0, 2 },
              { PITH_F16, 0, 0 }, { PITH_F16, 0, 1 }, { PITH_F16, 0, 2 },
              { PITH_I8, 0, 0 },  { PITH_U8, 0, 0 },  { PITH_U8, 1, 0 } };

/* What should be in an index: for each of IDS ids, which ascend, the row of the pool that it has,
 * or -1. */
typedef struct mirror {
    set pool;
    int64_t ids[IDS];
    int row[IDS];
    int64_t largest; /* id so far; -1: none */
} mirror;

static size_t mirror_count(const mirror *m) {
    size_t count = 0;
    for (int i = 0; i < IDS; i++) count += m->row[i] >= 0;
    return count;
}

/* The rows that should be there, by id: a set, and the ids. */
static set mirror_rows(const mirror *m, int64_t *ids) {
    set s = m->pool;
    s.count = 0;
    s.rows = malloc(IDS * s.row_bytes + 1);
    for (int i = 0; i < IDS; i++) {
        if (m->row[i] < 0) continue;
        memcpy((char *)s.rows + s.count * s.row_bytes,
               (const char *)m->pool.rows + (size_t)m->row[i] * s.row_bytes, s.row_bytes);
        ids[s.count++] = m->ids[i];
    }
    return s;
}

/* index finds what one made anew finds. */
static void check_hits(const pith_search_index *index, const mirror *m, const char *what) {
    static const size_t wanted[] = { 1, 7, 40, IDS + 5 };
    static int64_t ids[IDS];
    static pith_hit hits[QUERIES * (IDS + 5)], good[QUERIES * (IDS + 5)];
    set s = mirror_rows(m, ids);
    pith_search_index *fresh = set_index(&s);
    assert_int_equal(pith_search_index_count(index), s.count);
    for (size_t n = 0; n < COUNT(wanted); n++) {
        const size_t k = wanted[n];
        pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
        options.call.threads = 1 + (int)(n % 3);
        options.rescore = (int)(n % 2) * 2;
        search(good, fresh, s.query, QUERIES, k, &options);
        search(hits, index, s.query, QUERIES, k, &options);
        for (size_t i = 0; i < QUERIES * k; i++)
            if (good[i].index >= 0) good[i].index = ids[good[i].index];
        assert_hits(hits, good, QUERIES * k, QUERIES * k, what);
    }
    pith_search_index_destroy(fresh);
    free(s.rows);
}

/* Its file is that of an index that was built of the same rows at once. */
static void check_file(pith_search_index **index, const mirror *m, bool stay_open,
                       const char *what) {
    static int64_t ids[IDS];
    set s = mirror_rows(m, ids);
    pages p = { .rows = s.rows,
                .ids = ids,
                .row_bytes = s.row_bytes,
                .count = s.count,
                .page = 1 + (size_t)random_below(300) };
    pith_search_index *fresh = build(&p, &s), *opened = NULL;
    pith_error err = PITH_ERROR_INIT;
    file_bytes one = save(*index), two = save(fresh);
    if (one.size != two.size || memcmp(one.data, two.data, one.size))
        fail_msg("%s: the file is another one", what);
    if (pith_search_index_open_memory(&opened, one.data, one.size, s.dim, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(pith_search_index_metric(opened), s.how.metric);
    check_hits(opened, m, what);
    file_bytes again = save(opened);
    assert_true(again.size == one.size && !memcmp(again.data, one.data, one.size));
    free(again.data);
    if (stay_open) { /* its next change reads the rows */
        pith_search_index_destroy(*index);
        *index = opened;
        keep(one.data);
    } else {
        pith_search_index_destroy(opened);
        free(one.data);
    }
    free(two.data);
    pith_search_index_destroy(fresh);
    free(s.rows);
}

static void add_some(pith_search_index *index, mirror *m, size_t row_bytes) {
    const size_t count = (size_t)random_below(random_below(4) ? 20 : 400);
    const size_t stride = m->pool.row_bytes;
    int64_t *ids = calloc(count + 1, sizeof *ids);
    char *rows = calloc(count + 1, stride);
    pith_call call = PITH_CALL_INIT;
    pith_error err = PITH_ERROR_INIT;
    call.threads = 1 + random_below(2);
    for (size_t i = 0; i < count; i++) {
        const int at = random_below(IDS), row = random_below(POOL);
        ids[i] = m->ids[at];
        m->row[at] = row;
        if (ids[i] > m->largest) m->largest = ids[i];
        memcpy(rows + i * row_bytes, (const char *)m->pool.rows + (size_t)row * stride,
               row_bytes < stride ? row_bytes : stride);
    }
    if (pith_search_index_add(index, rows, ids, count, &call, &err)) fail_msg("%s", err.message);
    free(ids);
    free(rows);
}

static void remove_some(pith_search_index *index, mirror *m) {
    const size_t count = (size_t)random_below(random_below(4) ? 20 : 600);
    int64_t *ids = calloc(count + 1, sizeof *ids);
    pith_error err = PITH_ERROR_INIT;
    size_t there = 0, removed = 77;
    for (size_t i = 0; i < count; i++) {
        const int at = random_below(IDS);
        ids[i] = random_below(9) ? m->ids[at] : m->ids[at] - 1; /* one that there never was */
        if (ids[i] != m->ids[at]) continue;
        there += m->row[at] >= 0;
        m->row[at] = -1;
    }
    if (pith_search_index_remove(index, &removed, ids, count, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(removed, there);
    free(ids);
}

static void at_random(void **state) {
    (void)state;
    static const size_t dims[] = { 5, 33, 130, 1500 };
    char what[100];
    for (size_t t = 0; t < COUNT(kinds); t++) {
        for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
            const size_t dim = dims[(t + (size_t)metric) % COUNT(dims)];
            mirror m = { .pool = set_make(kinds[t].dtype, kinds[t].bits, metric, POOL, dim, QUERIES,
                                          metric != PITH_METRIC_DOT),
                         .largest = -1 };
            m.pool.how.first_pass = kinds[t].pass;
            for (int i = 0; i < IDS; i++) {
                m.row[i] = -1;
                m.ids[i] = (i ? m.ids[i - 1] + 2 : 0) + random_below(3) * random_below(1 << 20);
            }
            pages none = { .row_bytes = m.pool.row_bytes };
            pith_search_index *index = build(&none, &m.pool);
            size_t stride = m.pool.row_bytes;
            for (int step = 0; step < 14; step++) {
                snprintf(what, sizeof what, "kind %zu metric %d dim %zu step %d", t, metric, dim,
                         step);
                if (step == 0 || random_below(5) < 3)
                    add_some(index, &m, stride);
                else
                    remove_some(index, &m);
                check_hits(index, &m, what);
                if (step % 5 == 2) {
                    check_file(&index, &m, step > 5, what);
                    if (step > 5) stride = tight(&m.pool);
                }
            }
            for (int i = 0; i < IDS; i++) m.row[i] = -1;
            assert_int_equal(pith_search_index_remove(index, NULL, m.ids, IDS, NULL, NULL),
                             PITH_OK);
            assert_int_equal(pith_search_index_count(index), 0);
            assert_true(pith_search_index_bytes(index) < (size_t)64 << 10);
            check_hits(index, &m, what);
            assert_int_equal(mirror_count(&m), 0);
            pith_search_index_destroy(index);
            let_go();
            set_free(m.pool);
        }
    }
}

/* Many rows in many segments, and many equal scores, whose order is that of the ids although the
 * rows lie in another one. */
static void ties(void **state) {
    (void)state;
    enum { COUNT_ = 6000, DIM = 512, K = 50 };
    float *rows = calloc((size_t)COUNT_ * DIM, sizeof *rows);
    int64_t *ids = calloc(COUNT_, sizeof *ids);
    float query[DIM] = { 1, 2 };
    for (int i = 0; i < COUNT_; i++) {
        ids[i] = COUNT_ - i;
        rows[(size_t)i * DIM + (size_t)(i % 3)] = 1;
    }
    for (int pass = 0; pass < 3; pass++) {
        set s = { .rows = rows,
                  .dim = DIM,
                  .row_bytes = DIM * sizeof *rows,
                  .how = PITH_SEARCH_INDEX_OPTIONS_INIT };
        pages p = { rows, ids, s.row_bytes, COUNT_, 1000, 0, 0 };
        pith_hit hits[K];
        s.how.first_pass = pass;
        pith_search_index *index = build(&p, &s);
        search(hits, index, query, 1, K, NULL);
        for (int i = 0; i < K; i++) assert_int_equal(hits[i].index, 2 + 3 * i);
        pith_search_index_destroy(index);
    }
    free(rows);
    free(ids);
}

/* Rows without ids are numbered on. */
static void numbered(void **state) {
    (void)state;
    const float rows[] = { 1, 2, 3 }, query = 1;
    const int64_t high = 41, last = INT64_MAX;
    set s = { .dim = 1, .row_bytes = 4, .how = PITH_SEARCH_INDEX_OPTIONS_INIT };
    s.how.metric = PITH_METRIC_DOT;
    pages p = { .rows = rows, .row_bytes = 4, .count = 3, .page = 2 };
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = build(&p, &s);
    pith_hit hits[6];
    search(hits, index, &query, 1, 3, NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(hits[i].index, 2 - i);
    assert_int_equal(pith_search_index_add(index, rows, &high, 1, NULL, NULL), PITH_OK);
    assert_int_equal(pith_search_index_add(index, rows, NULL, 1, NULL, NULL), PITH_OK);
    search(hits, index, &query, 1, 6, NULL);
    static const int64_t wanted[] = { 2, 1, 0, 41, 42, -1 };
    for (int i = 0; i < 6; i++) assert_int_equal(hits[i].index, wanted[i]);
    assert_int_equal(pith_search_index_add(index, rows, &last, 1, NULL, NULL), PITH_OK);
    assert_int_equal(pith_search_index_add(index, rows, NULL, 1, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no ids are left above 9223372036854775807"));
    pith_search_index_destroy(index);
}

/* An index without ids of its own writes the file of one that was built of rows with the ids 0, 1,
 * 2, without the gaps between its rows. */
static void over_rows(void **state) {
    (void)state;
    for (int pass = 0; pass < 3; pass++) {
        set s = set_make(PITH_F16, 0, PITH_METRIC_L2, 333, 41, 2, 0);
        s.how.first_pass = pass;
        pages p = { .rows = s.rows, .row_bytes = s.row_bytes, .count = s.count, .page = 50 };
        pith_search_index *over = set_index(&s), *built = build(&p, &s);
        file_bytes one = save(over), two = save(built);
        assert_true(one.size == two.size && !memcmp(one.data, two.data, one.size));
        pith_search_index_destroy(over);
        pith_search_index_destroy(built);
        free(one.data);
        free(two.data);
        set_free(s);
    }
}

/* Documents: from rows of the caller to a file and back. */
static void documents(void **state) {
    (void)state;
    const int64_t offsets[] = { 0, 3, 3, 40, 41, 90 };
    set s = set_make(PITH_F32, 0, PITH_METRIC_MAXSIM, 90, 24, 6, 0);
    s.how.offsets = offsets, s.how.documents = 5;
    pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
    const size_t query_offsets[] = { 0, 4, 6 };
    options.query_offsets = query_offsets;
    pith_search_index *over = set_index(&s), *opened = NULL;
    pith_hit hits[14], good[14];
    file_bytes file = save(over);
    assert_int_equal(pith_search_index_open_memory(&opened, file.data, file.size, 24, NULL, NULL),
                     PITH_OK);
    search(good, over, s.query, 2, 7, &options);
    search(hits, opened, s.query, 2, 7, &options);
    assert_hits(hits, good, 14, 14, "documents");
    assert_int_equal(pith_search_index_count(opened), 5);
    assert_int_equal(pith_search_index_remove(opened, NULL, offsets, 1, NULL, NULL),
                     PITH_ERR_UNSUPPORTED);
    pith_search_index_destroy(over);
    pith_search_index_destroy(opened);
    free(file.data);
    set_free(s);
}

typedef struct reader {
    const pith_search_index *index;
    const set *s;
    const pith_hit *good;
} reader;

static void *read_it(void *context) {
    const reader *r = context;
    for (int i = 0; i < 20; i++) {
        pith_hit hits[8];
        search(hits, r->index, r->s->query, 2, 4, NULL);
        assert_hits(hits, r->good, 8, 8, "at once");
        file_bytes file = save(r->index);
        free(file.data);
    }
    return NULL;
}

/* Any number of threads search and save at once. */
static void at_once(void **state) {
    (void)state;
    set s = set_make(PITH_F32, 0, PITH_METRIC_COSINE, 2000, 64, 2, 0);
    s.how.first_pass = PITH_FIRST_PASS_INT8;
    pages p = { .rows = s.rows, .row_bytes = s.row_bytes, .count = s.count, .page = 700 };
    pith_search_index *index = build(&p, &s);
    pith_hit good[8];
    pthread_t threads[3];
    search(good, index, s.query, 2, 4, NULL);
    reader r = { index, &s, good };
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_it, &r), 0);
    for (size_t i = 0; i < COUNT(threads); i++) pthread_join(threads[i], NULL);
    pith_search_index_destroy(index);
    set_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_random), cmocka_unit_test(ties),      cmocka_unit_test(numbered),
        cmocka_unit_test(over_rows), cmocka_unit_test(documents), cmocka_unit_test(at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
