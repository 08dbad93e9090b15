/* test_search_mishaps.c - searches that are refused, cancelled or run out of memory. */
#include "search_test.h"

#include <limits.h>

#include "support/arena_fails.h"
#include "support/failing_alloc.h"

static void refused_index(const char *says, const void *rows, size_t count, size_t dim,
                          const pith_search_index_options *how) {
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    assert_int_equal(pith_search_index_create(&index, rows, count, dim, how, &err),
                     PITH_ERR_ARGUMENT);
    assert_null(index);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void wrong_indexes(void **state) {
    (void)state;
    const float rows[8] = { 0 };
    const int64_t good[] = { 0, 1, 2 }, falling[] = { 0, 2, 1 }, late[] = { 1, 1, 2 },
                  few[] = { 0, 1, 1 };
    const pith_search_index_options init = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pith_search_index_options o = init;
#define REFUSED(says, count, dim, ...)                                                             \
    (o = init, __VA_ARGS__, refused_index(says, rows, count, dim, &o))
    REFUSED("no metric", 2, 4, o.metric = 4);
    REFUSED("no metric", 2, 4, o.metric = -1);
    REFUSED("dtype 11", 2, 4, o.dtype = PITH_F64);
    REFUSED("bits", 2, 4, o.bits = 1);
    REFUSED("no first_pass", 2, 4, o.first_pass = 3);
    REFUSED("first_pass", 2, 4, o.first_pass = 1, o.dtype = PITH_I8);
    REFUSED("threads", 2, 4, o.call.threads = -1);
    REFUSED("offsets", 2, 4, o.metric = PITH_METRIC_MAXSIM);
    REFUSED("offsets", 2, 4, o.offsets = good, o.documents = 2);
    REFUSED("first_pass", 2, 4, o.metric = PITH_METRIC_MAXSIM, o.offsets = good, o.documents = 2,
            o.first_pass = 1);
    REFUSED("less than the one before", 2, 4, o.metric = PITH_METRIC_MAXSIM, o.offsets = falling,
            o.documents = 2);
    REFUSED("offsets[0]", 2, 4, o.metric = PITH_METRIC_MAXSIM, o.offsets = late, o.documents = 2);
    REFUSED("the last one, is 1, but there are 2 rows", 2, 4, o.metric = PITH_METRIC_MAXSIM,
            o.offsets = few, o.documents = 2);
    REFUSED("too many documents", 2, 4, o.metric = PITH_METRIC_MAXSIM, o.offsets = good,
            o.documents = SIZE_MAX);
    REFUSED("row_bytes is 15", 2, 4, o.row_bytes = 15);
    REFUSED("not aligned", 2, 3, o.row_bytes = 13);
    REFUSED("dim 0", 2, 0, (void)0);
    REFUSED("dim 2147483648", 1, (size_t)1 << 31, (void)0);
    REFUSED("131072", 0, ((size_t)1 << 17) + 1, o.first_pass = 1);
    REFUSED("larger than memory", SIZE_MAX / 16 + 1, 4, (void)0);
    REFUSED("larger than memory", SIZE_MAX / 32 + 1, 4, (void)0);
    REFUSED("larger than memory", SIZE_MAX, 1, o.dtype = PITH_U8);
    REFUSED("larger than memory", 2, 4, o.row_bytes = SIZE_MAX - 3);
    REFUSED("no size", 2, 4, o.call.size = 0);
    refused_index("NULL", NULL, 1, 4, NULL);
    refused_index("not aligned", (const char *)rows + 1, 1, 4, NULL);
}

/* Sizes just below the limits are taken, as far as nothing of them is read. */
static void large_indexes(void **state) {
    (void)state;
    static const float rows[4];
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index;
    static const size_t sizes[][2] = {
        { ((size_t)1 << 31) - 1, 1 }, { (size_t)1 << 31, 4 }, { ((size_t)1 << 32) + 1, 4 },
        { (size_t)1 << 29, 1 << 20 }, { 1, INT32_MAX },       { 0, INT32_MAX }
    };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(
            pith_search_index_create(&index, rows, sizes[i][0], sizes[i][1], NULL, &err), PITH_OK);
        assert_int_equal(pith_search_index_count(index), sizes[i][0]);
        pith_search_index_destroy(index);
    }
}

static void refused_search(const char *says, const pith_search_index *index, const float *queries,
                           size_t count, size_t k, const pith_search_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_hit hits[4];
    assert_int_equal(pith_search(hits, index, queries, count, k, options, &err), PITH_ERR_ARGUMENT);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void wrong_searches(void **state) {
    (void)state;
    const int64_t offsets[] = { 0, 1, 2 };
    const size_t falling[] = { 0, 2, 1 }, ends[] = { 0, 1 };
    pith_search_options o = PITH_SEARCH_OPTIONS_INIT;
    set s = set_make(PITH_F32, 0, PITH_METRIC_DOT, 2, 4, 2, 0);
    pith_search_index *index = set_index(&s);
    o.call.threads = -1;
    refused_search("threads", index, s.query, 1, 2, &o);
    o.call.threads = 0, o.rescore = -1;
    refused_search("rescore", index, s.query, 1, 2, &o);
    o.rescore = 0, o.query_offsets = ends;
    refused_search("query_offsets", index, s.query, 1, 2, &o);
    o.query_offsets = NULL;
    refused_search("NULL", index, NULL, 1, 2, &o);
    refused_search("larger than memory", index, s.query, SIZE_MAX / 16, 2, &o);
    refused_search("larger than memory", index, s.query, 2, SIZE_MAX, &o);
    refused_search("larger than memory", index, s.query, SIZE_MAX / 16 + 2, 1, &o);
    o.call.size = 0;
    refused_search("no size", index, s.query, 1, 2, &o);
    assert_int_equal(pith_search(NULL, index, NULL, 0, 10, NULL, NULL), PITH_OK);
    assert_int_equal(pith_search(NULL, index, s.query, 2, 0, NULL, NULL), PITH_OK);
    pith_search_index_destroy(index);
    s.how.metric = PITH_METRIC_MAXSIM, s.how.offsets = offsets, s.how.documents = 2;
    index = set_index(&s);
    o = (pith_search_options)PITH_SEARCH_OPTIONS_INIT;
    o.query_offsets = falling;
    refused_search("less than the one before", index, s.query, 2, 1, &o);
    pith_search_index_destroy(index);
    set_free(s);
    pith_search_index_destroy(NULL);
}

static void nothing_to_find(void **state) {
    (void)state;
    pith_search_index *index;
    pith_hit hits[3];
    const float query[4] = { 1 };
    const int64_t zero = 0;
    for (int pass = 0; pass < 4; pass++) {
        pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
        if (pass == 3) how.metric = PITH_METRIC_MAXSIM, how.offsets = &zero;
        how.first_pass = pass % 3;
        assert_int_equal(pith_search_index_create(&index, NULL, 0, 4, &how, NULL), PITH_OK);
        search(hits, index, query, 1, 3, NULL);
        assert_hits(hits, NULL, 0, 3, "an empty index");
        pith_search_index_destroy(index);
    }
}

/* What a failing request of memory leaves behind: nothing, and an index that works. */
static void out_of_memory(void **state) {
    (void)state;
    const int64_t offsets[] = { 0, 10, 600 };
    for (int kind = 0; kind < 5; kind++) {
        counter c = { .fail_at = 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_hit hits[3 * 5], good[3 * 5];
        set s = set_make(kind == 1 ? PITH_F16 : PITH_F32, 0,
                         kind == 1 ? PITH_METRIC_L2 : PITH_METRIC_COSINE, 600, 40, 3, 0);
        s.how.first_pass = kind < 3 ? kind : 0;
        if (kind == 1) s.how.first_pass = PITH_FIRST_PASS_INT8;
        if (kind == 4)
            s.how.metric = PITH_METRIC_MAXSIM, s.how.offsets = offsets, s.how.documents = 2;
        s.how.call.allocator = &allocator;
        s.how.row_bytes = s.row_bytes;
        pith_search_index *index = NULL;
        pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
        options.call.threads = 1;
        long failures = 0;
        for (pith_status status = PITH_ERR_MEMORY; status; failures++) {
            pith_error err = PITH_ERROR_INIT;
            c.calls = 0;
            c.fail_at = failures + 1;
            status = pith_search_index_create(&index, s.rows, s.count, s.dim, &s.how, &err);
            assert_true(status == PITH_OK || status == PITH_ERR_MEMORY);
            if (status) assert_int_equal(c.live, 0);
            if (status) assert_non_null(strstr(err.message, "out of memory"));
        }
        assert_true(failures >= (s.how.first_pass ? 3 : 2));
        c.fail_at = 0;
        search(good, index, s.query, 3, 5, &options);
        const long held = c.live;
        failures = 0;
        for (pith_status status = PITH_ERR_MEMORY; status; failures++) {
            pith_error err = PITH_ERROR_INIT;
            c.calls = 0;
            c.fail_at = failures + 1;
            status = pith_search(hits, index, s.query, 3, 5, &options, &err);
            assert_true(status == PITH_OK || status == PITH_ERR_MEMORY);
            if (status) assert_non_null(strstr(err.message, "out of memory"));
            assert_int_equal(c.live, held);
        }
        assert_true(failures >= 2);
        assert_hits(hits, good, 15, 15, "after failures");
        pith_search_index_destroy(index);
        assert_int_equal(c.live, 0);
        set_free(s);
    }
}

/* Makes an index of the set and searches it while one request of an arena is refused. */
static void work_refused(const void *context) {
    set s = *(const set *)context;
    static pith_hit good[20], hits[20];
    counter c = { .freed = arena_fails_freed };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
    options.call.threads = 1;
    s.how.call.allocator = &allocator, s.how.row_bytes = s.row_bytes, s.how.call.threads = 1;
    pith_status status = pith_search_index_create(&index, s.rows, s.count, s.dim, &s.how, &err);
    if (!status) status = pith_search(hits, index, s.query, 4, 5, &options, &err);
    if (!arena_fails.fail_at) memcpy(good, hits, sizeof good);
    if (!status) assert_hits(hits, good, 20, 20, "no request was refused");
    pith_search_index_destroy(index);
    const pith_status wanted = arena_fails.fail_at ? PITH_ERR_MEMORY : PITH_OK;
    if (status == wanted && c.live == 0 && arena_fails.refused == (wanted != PITH_OK)) return;
    arena_fails_show();
    fail_msg("status %d, '%s', %ld leak", (int)status, err.message, (long)c.live);
}

/* Every place that asks an arena. */
static void out_of_arenas(void **state) {
    (void)state;
    const int64_t offsets[] = { 0, 10, 700 };
    size_t places = 0;
    for (int kind = 0; kind < 5; kind++) {
        set s = set_make(kind == 1   ? PITH_F16
                         : kind == 3 ? PITH_U8
                                     : PITH_F32,
                         kind == 3, PITH_METRIC_COSINE, 700, 40, 4, 0);
        if (kind < 3) s.how.first_pass = kind;
        if (kind == 4)
            s.how.metric = PITH_METRIC_MAXSIM, s.how.offsets = offsets, s.how.documents = 2;
        places += arena_fails_each(work_refused, &s);
        set_free(s);
    }
    print_message("%zu places\n", places);
    assert_true(places > 20); /* compilers make one place of several calls that are alike */
}

static void cancelled(void **state) {
    (void)state;
    volatile int stop = 1;
    pith_error err = PITH_ERROR_INIT;
    pith_hit hits[4];
    set s = set_make(PITH_F32, 0, PITH_METRIC_COSINE, 100, 8, 1, 0);
    pith_search_index *index = NULL;
    s.how.call.cancel = &stop, s.how.first_pass = PITH_FIRST_PASS_INT8,
    s.how.row_bytes = s.row_bytes;
    assert_int_equal(pith_search_index_create(&index, s.rows, 100, 8, &s.how, &err),
                     PITH_ERR_CANCELLED);
    assert_null(index);
    s.how.call.cancel = NULL;
    index = set_index(&s);
    pith_search_options options = PITH_SEARCH_OPTIONS_INIT;
    options.call.cancel = &stop;
    assert_int_equal(pith_search(hits, index, s.query, 1, 4, &options, &err), PITH_ERR_CANCELLED);
    stop = 0;
    search(hits, index, s.query, 1, 4, &options);
    pith_search_index_destroy(index);
    set_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_indexes),  cmocka_unit_test(large_indexes),
        cmocka_unit_test(wrong_searches), cmocka_unit_test(nothing_to_find),
        cmocka_unit_test(out_of_memory),  cmocka_unit_test(out_of_arenas),
        cmocka_unit_test(cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
