/* test_search.c - what pith_search finds, against the definition in plain C: the same rows in the
 * same order with the same bits. The test runs at every instruction set level
 * (tests/CMakeLists.txt), which makes these bits the same. */
#include "search_test.h"

#include <pthread.h>

static const struct {
    int dtype, bits;
} kinds[] = { { PITH_F32, 0 }, { PITH_F16, 0 }, { PITH_I8, 0 }, { PITH_U8, 0 }, { PITH_U8, 1 } };
static const size_t dims[] = { 1, 2, 7, 15, 16, 17, 31, 48, 100, 129 };

/* Searches with several numbers of hits, queries per call and threads. */
static void check_set(const set *s, const char *what) {
    static const size_t wanted_hits[] = { 0, 1, 3, 10, 1000 };
    pith_search_index *index = set_index(s);
    pith_hit *all = calloc(s->queries * s->count + 1, sizeof *all);
    for (size_t q = 0; q < s->queries; q++) set_order(all + q * s->count, s, s->query + q * s->dim);
    for (size_t n = 0; n < COUNT(wanted_hits); n++) {
        const size_t k = wanted_hits[n], have = k < s->count ? k : s->count;
        pith_hit *hits = calloc(s->queries * k + 1, sizeof *hits);
        pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
        options.call.threads = 1 + (int)(n % 3);
        search(hits, index, s->query, s->queries, k, &options);
        for (size_t q = 0; q < s->queries; q++)
            assert_hits(hits + q * k, all + q * s->count, have, k, what);
        if (s->queries) {
            search(hits, index, s->query, 1, k, NULL);
            assert_hits(hits, all, have, k, what);
        }
        free(hits);
    }
    assert_int_equal(pith_search_index_count(index), s->count);
    free(all);
    pith_search_index_destroy(index);
}

static void plain_and_special(void **state) {
    (void)state;
    char what[100];
    for (size_t t = 0; t < COUNT(kinds); t++) {
        for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
            for (size_t d = 0; d < COUNT(dims); d++) {
                const size_t count = (size_t)random_below(d % 3 ? 60 : 700),
                             queries = (size_t)random_below(d % 4 ? 8 : 80);
                set s =
                    set_make(kinds[t].dtype, kinds[t].bits, metric, count, dims[d], queries, d % 2);
                snprintf(what, sizeof what, "dtype %d bits %d metric %d dim %zu count %zu",
                         kinds[t].dtype, kinds[t].bits, metric, dims[d], count);
                check_set(&s, what);
                set_free(s);
            }
        }
    }
}

/* Many blocks, and more parts than threads. */
static void many_rows(void **state) {
    (void)state;
    set s = set_make(PITH_F32, 0, PITH_METRIC_DOT, 40000, 16, 3, 0);
    check_set(&s, "many rows");
    set_free(s);
}

static void near_double(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT(kinds); t++) {
        for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
            set s = set_make(kinds[t].dtype, kinds[t].bits, metric, 200, 384, 5, 0);
            pith_search_index *index = set_index(&s);
            pith_hit hits[5 * 200];
            search(hits, index, s.query, 5, 200, NULL);
            for (size_t i = 0; i < COUNT(hits); i++) {
                const float *q = s.query + i / 200 * s.dim;
                const double want = set_score_double(&s, q, (size_t)hits[i].index);
                double size = 0; /* of the sum's terms, by which rounding is measured */
                for (size_t c = 0; c < s.dim; c++)
                    size += fabs(set_value(&s, (size_t)hits[i].index, c) * q[c]);
                if (metric != PITH_METRIC_DOT) size = fmax(1, fabs(want));
                assert_true(fabs(hits[i].score - want) <= 4e-7 * size);
            }
            pith_search_index_destroy(index);
            set_free(s);
        }
    }
}

static void ties(void **state) {
    (void)state;
    for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
        set s = set_make(PITH_F32, 0, metric, 5000, 3, 2, 0);
        for (size_t r = 0; r < s.count; r++) {
            float *row = (float *)(void *)((char *)s.rows + r * s.row_bytes);
            for (size_t i = 0; i < 3; i++) row[i] = (float)((r * 7 + i) % 3) - 1.0f;
        }
        check_set(&s, "ties");
        set_free(s);
    }
    const float zeros[] = { 0.0f, -0.0f, 0.0f, -0.0f }, one = 1;
    const set s = { .rows = (void *)(uintptr_t)zeros,
                    .count = 4,
                    .dim = 1,
                    .row_bytes = 4,
                    .how = { .dtype = PITH_F32 } };
    set dot = s;
    dot.how = (pith_search_index_options)PITH_SEARCH_INDEX_OPTIONS_INIT;
    dot.how.metric = PITH_METRIC_DOT;
    pith_search_index *index = set_index(&dot);
    pith_hit hits[4];
    search(hits, index, &one, 1, 4, NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(hits[i].index, i); /* -0 equals 0 */
    pith_search_index_destroy(index);
}

/* By numbers that are worked out by hand. */
static void by_hand(void **state) {
    (void)state;
    const float rows[4][2] = { { 3, 4 }, { 0, 0 }, { NAN, 1 }, { -3, -4 } }, query[] = { 6, 8 },
                zero[] = { 0, 0 };
    set s = { .rows = (void *)(uintptr_t)rows, .count = 4, .dim = 2, .row_bytes = 8 };
    pith_hit hits[5];
    static const pith_hit wanted[3][4] = { { { 0, 1 }, { 1, 0 }, { 3, -1 }, { 2, NAN } },
                                           { { 0, 50 }, { 1, 0 }, { 3, -50 }, { 2, NAN } },
                                           { { 0, 5 }, { 1, 10 }, { 3, 15 }, { 2, NAN } } };
    for (int metric = 0; metric < 3; metric++) {
        s.how = (pith_search_index_options)PITH_SEARCH_INDEX_OPTIONS_INIT;
        s.how.metric = metric;
        pith_search_index *index = set_index(&s);
        search(hits, index, query, 1, 5, NULL);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(hits[i].index, wanted[metric][i].index);
            assert_true(isnan(hits[i].score) == isnan(wanted[metric][i].score));
            if (!isnan(hits[i].score))
                assert_true(fabsf(hits[i].score - wanted[metric][i].score) < 1e-6f);
        }
        assert_int_equal(hits[4].index, -1);
        assert_true(isnan(hits[4].score));
        if (metric == 0) {
            search(hits, index, zero, 1, 1, NULL);
            assert_true(hits[0].index == 0 && hits[0].score == 0);
        }
        pith_search_index_destroy(index);
    }
}

/* Rows lie further apart than 2^32 bytes: they are zero pages that nobody has written to, but for
 * two of them. */
static void far_apart(void **state) {
    (void)state;
    const size_t row_bytes = (size_t)1 << 20, count = 4200;
    char *rows = mmap(NULL, row_bytes * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rows == MAP_FAILED) skip(); /* the address space is limited */
    const float value[3] = { 1, 2, 3 };
    memcpy(rows + 4199 * row_bytes, value, sizeof value);
    memcpy(rows + 2050 * row_bytes, value, sizeof value);
    set s = { .rows = rows,
              .count = count,
              .dim = 3,
              .row_bytes = row_bytes,
              .how = PITH_SEARCH_INDEX_OPTIONS_INIT };
    s.how.metric = PITH_METRIC_DOT;
    pith_search_index *index = set_index(&s);
    pith_hit hits[3];
    search(hits, index, value, 1, 3, NULL);
    assert_true(hits[0].index == 2050 && hits[1].index == 4199 && hits[2].index == 0);
    assert_true(hits[0].score == 14 && hits[1].score == 14 && hits[2].score == 0);
    pith_search_index_destroy(index);
    munmap(rows, row_bytes * count);
}

/* ---- first passes ---- */

static void candidates(void **state) {
    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
            for (int pass = PITH_FIRST_PASS_INT8; pass <= PITH_FIRST_PASS_BINARY; pass++) {
                set s = set_make(dtype ? PITH_F16 : PITH_F32, 0, metric, 1200, 130, 70, 0);
                pith_hit *all = calloc(s.count, sizeof *all), hits[70 * 10], again[70 * 10];
                pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
                size_t found = 0;
                s.how.first_pass = pass;
                s.query[9 * s.dim + 3] = NAN; /* is compared exactly; its neighbours are not */
                pith_search_index *index = set_index(&s);
                assert_true(pith_search_index_bytes(index) > s.count * s.dim / 8);
                options.call.threads = 2;
                search(hits, index, s.query, 70, 10, &options);
                for (size_t q = 0; q < s.queries; q++) {
                    set_order(all, &s, s.query + q * s.dim);
                    for (size_t i = 0; i < 10; i++) {
                        const pith_hit h = hits[q * 10 + i];
                        assert_true(same_float(
                            h.score, set_score(&s, s.query + q * s.dim, (size_t)h.index)));
                        for (size_t j = 0; j < 10; j++) found += all[j].index == h.index;
                    }
                    if (q == 9) assert_hits(hits + q * 10, all, 10, 10, "a query with NaN");
                    search(again, index, s.query + q * s.dim, 1, 10, NULL);
                    assert_hits(again, hits + q * 10, 10, 10, "alone");
                }
                /* Random vectors have no structure: the worst that can happen to signs. */
                if (found < (pass == PITH_FIRST_PASS_INT8 ? 690u : 250u))
                    fail_msg("recall %zu of 700", found);
                options.rescore = 300;
                search(again, index, s.query, 70, 10, &options);
                options.exact = 1, options.rescore = 0;
                search(hits, index, s.query, 70, 10, &options);
                assert_hits(again, hits, 700, 700, "all are candidates");
                free(all);
                pith_search_index_destroy(index);
                set_free(s);
            }
        }
    }
}

/* Rows that cannot be rounded are the last candidates; rows of zeros, and of one size, are not in
 * the way. */
static void odd_candidates(void **state) {
    (void)state;
    for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++) {
        float rows[40][2];
        const float query[] = { 1, 0.5f };
        for (int i = 0; i < 40; i++) {
            rows[i][0] = i < 10   ? NAN
                         : i < 20 ? INFINITY
                         : i < 30 ? 0.0f
                                  : (float)(i - 20) * 0.125f;
            rows[i][1] = i < 30 ? 0.0f : (float)(i % 3) * 0.25f;
        }
        set s = { .rows = rows,
                  .count = 40,
                  .dim = 2,
                  .row_bytes = 8,
                  .how = PITH_SEARCH_INDEX_OPTIONS_INIT };
        s.how.metric = metric, s.how.first_pass = PITH_FIRST_PASS_INT8;
        pith_search_index *index = set_index(&s);
        pith_hit hits[2], exact[40], best[2];
        search(hits, index, query, 1, 2, NULL);
        set_order(exact, &s, query);
        for (size_t i = 0, n = 0; i < 40 && n < 2; i++)
            if (exact[i].index >= 20) best[n++] = exact[i];
        assert_hits(hits, best, 2, 2, "odd rows");
        pith_search_index_destroy(index);
    }
}

/* ---- documents ---- */

static float document_score(const set *s, size_t document, const float *query, size_t rows) {
    float sum = 0;
    if (s->how.offsets[document] == s->how.offsets[document + 1]) return -INFINITY;
    for (size_t q = 0; q < rows; q++) {
        float most = -INFINITY;
        for (int64_t r = s->how.offsets[document]; r < s->how.offsets[document + 1]; r++) {
            const float score = set_score(s, query + q * s->dim, (size_t)r);
            if (isnan(score) || isnan(most))
                most = NAN;
            else if (score > most)
                most = score;
        }
        sum += most;
    }
    return sum;
}

static void documents(void **state) {
    (void)state;
    enum { DOCUMENTS = 300, QUERIES = 4, K = 20 };
    static const size_t ends[QUERIES + 1] = { 0, 1, 1, 70, 73 };
    for (size_t t = 0; t < COUNT(kinds); t++) {
        int64_t offsets[DOCUMENTS + 1] = { 0 };
        for (int i = 0; i < DOCUMENTS; i++)
            offsets[i + 1] = offsets[i] + (i == 7 ? 200 : random_below(6));
        set s = set_make(kinds[t].dtype, kinds[t].bits, PITH_METRIC_MAXSIM,
                         (size_t)offsets[DOCUMENTS], 33, 73, t % 2 == 0);
        s.how.offsets = offsets, s.how.documents = DOCUMENTS;
        pith_search_index *index = set_index(&s);
        assert_int_equal(pith_search_index_count(index), DOCUMENTS);
        pith_hit hits[QUERIES * K], all[DOCUMENTS], one[K];
        pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
        options.query_offsets = ends;
        for (options.call.threads = 1; options.call.threads < 4; options.call.threads++) {
            search(hits, index, s.query, QUERIES, K, &options);
            for (size_t q = 0; q < QUERIES; q++) {
                for (size_t d = 0; d < DOCUMENTS; d++)
                    all[d] =
                        (pith_hit){ (int64_t)d, document_score(&s, d, s.query + ends[q] * s.dim,
                                                               ends[q + 1] - ends[q]) };
                qsort(all, DOCUMENTS, sizeof *all, hit_order);
                assert_hits(hits + q * K, all, K, K, "documents");
            }
        }
        search(one, index, s.query, 1, K, NULL); /* a query of one row */
        assert_hits(one, hits, K, K, "one row");
        pith_search_index_destroy(index);
        set_free(s);
    }
}

/* ---- threads ---- */

typedef struct visitor {
    const set *s;
    const pith_search_index *index;
    pith_hit hits[50];
} visitor;

static void *visit(void *context) {
    visitor *v = context;
    pith_error err = PITH_ERROR_INIT;
    pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
    options.call.threads = 2;
    for (int i = 0; i < 10; i++)
        if (pith_search(v->hits, v->index, v->s->query, 5, 10, &options, &err)) return v;
    return NULL;
}

static void shared(void **state) {
    (void)state;
    for (int pass = PITH_FIRST_PASS_NONE; pass <= PITH_FIRST_PASS_BINARY; pass++) {
        set s = set_make(PITH_F32, 0, PITH_METRIC_COSINE, 5000, 64, 5, 0);
        s.how.first_pass = pass;
        pith_search_index *index = set_index(&s);
        pthread_t threads[4];
        visitor visitors[4];
        for (int i = 0; i < 4; i++) {
            visitors[i] = (visitor){ .s = &s, .index = index };
            assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            void *failed;
            pthread_join(threads[i], &failed);
            assert_null(failed);
            assert_hits(visitors[i].hits, visitors[0].hits, 50, 50, "shared");
        }
        pith_search_index_destroy(index);
        set_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_special), cmocka_unit_test(many_rows),
        cmocka_unit_test(near_double),       cmocka_unit_test(ties),
        cmocka_unit_test(by_hand),           cmocka_unit_test(far_apart),
        cmocka_unit_test(candidates),        cmocka_unit_test(odd_candidates),
        cmocka_unit_test(documents),         cmocka_unit_test(shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
