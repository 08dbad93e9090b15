/* test_pool.c - the pool of freed blocks, by itself and behind an account. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/account.h"
#include "support/failing_alloc.h"

enum { KIB = 1 << 10 };

static uint64_t counted(pith__account *a, pith__counter which) {
    return pith__counted(&a->counters, which);
}

static pith__account *begin(pith__account *a, counter *c, size_t limit, size_t blocks,
                            size_t bytes) {
    pith_allocator host = { count_alloc, count_free, c };
    pith__account_init(a, &host, limit, 0);
    assert_int_equal(pith__account_begin_pool(a, blocks, bytes, NULL), PITH_OK);
    return a;
}

static void *take(pith__account *a, size_t bytes) { return a->allocator.alloc(a, bytes); }
static void give(pith__account *a, void *block) { a->allocator.free(a, block); }

/* A freed block answers a request of its size, and nothing of the host is asked. */
static void test_hit(void **state) {
    (void)state;
    counter c = { 0 };
    pith__account a;
    begin(&a, &c, 0, 4, 1 << 20);
    void *first = take(&a, 64 * KIB);
    give(&a, first);
    long calls = c.calls;
    assert_int_equal(pith__pool_count(&a.pool), 1);
    assert_ptr_equal(take(&a, 64 * KIB), first);
    assert_int_equal(c.calls, calls);
    assert_int_equal(counted(&a, PITH_COUNT_pool_hits), 1);
    assert_int_equal(counted(&a, PITH_COUNT_pool_misses), 1);
    assert_int_equal(counted(&a, PITH_COUNT_allocations), 1);
    assert_int_equal(pith__pool_count(&a.pool), 0);
    give(&a, first);
    pith__account_end(&a);
    assert_int_equal(c.live, 0);
    assert_int_equal(a.held, 0);
}

#ifndef PITH_SANITIZED
/* The smallest block that is large enough, and none that is much too large. */
static void test_fit(void **state) {
    (void)state;
    counter c = { 0 };
    pith__account a;
    begin(&a, &c, 0, 8, 1 << 20);
    void *blocks[] = { take(&a, 100 * KIB), take(&a, 80 * KIB), take(&a, 84 * KIB) };
    for (int i = 0; i < 3; i++) give(&a, blocks[i]);
    assert_ptr_equal(take(&a, 79 * KIB), blocks[1]);
    assert_ptr_equal(take(&a, 79 * KIB), blocks[2]);
    void *own = take(&a, 79 * KIB); /* 100 is more than 79 and a quarter */
    assert_ptr_not_equal(own, blocks[0]);
    assert_ptr_equal(take(&a, 81 * KIB), blocks[0]);
    give(&a, own);
    for (int i = 0; i < 3; i++) give(&a, blocks[i]);
    void *small = take(&a, 8 * KIB); /* of small requests, four times is near enough */
    assert_true(small != own && small != blocks[0] && small != blocks[1] && small != blocks[2]);
    give(&a, small);
    void *smaller = take(&a, 2 * KIB);
    assert_ptr_equal(smaller, small);
    give(&a, smaller);
    smaller = take(&a, 2 * KIB - 64);
    assert_ptr_not_equal(smaller, small);
    give(&a, smaller);
    pith__account_end(&a);
    assert_int_equal(c.live, 0);
}
#endif

/* The block that was freed longest ago goes first: by count, then by bytes. */
static void test_eviction(void **state) {
    (void)state;
    counter c = { 0 };
    pith__account a;
    begin(&a, &c, 0, 3, 100 * KIB);
    void *blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = take(&a, 8 * KIB);
    for (int i = 0; i < 4; i++) give(&a, blocks[i]);
    assert_int_equal(pith__pool_count(&a.pool), 3);
    assert_int_equal(counted(&a, PITH_COUNT_pool_evictions), 1);
    give(&a, take(&a, 95 * KIB)); /* pushes all small ones out */
    assert_int_equal(pith__pool_count(&a.pool), 1);
    assert_int_equal(counted(&a, PITH_COUNT_pool_evictions), 4);
    give(&a, take(&a, 200 * KIB)); /* is larger than the pool */
    assert_int_equal(pith__pool_count(&a.pool), 1);
    assert_int_equal(counted(&a, PITH_COUNT_pool_evictions), 4);
    size_t held = a.held;
    assert_true(pith__account_trim(&a.allocator) >= 95 * KIB);
    assert_true(a.held <= held - 95 * KIB);
    assert_int_equal(pith__pool_count(&a.pool), 0);
    pith__account_end(&a);
    assert_int_equal(c.live, 0);
}

/* Small blocks are the host's, and a pool of no blocks or bytes keeps nothing. */
static void test_none(void **state) {
    (void)state;
    static const struct {
        size_t blocks, bytes, request;
    } rows[] = { { 4, 1 << 20, 200 }, { 0, 1 << 20, 64 * KIB }, { 4, 0, 64 * KIB } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        counter c = { 0 };
        pith__account a;
        begin(&a, &c, 0, rows[i].blocks, rows[i].bytes);
        for (int n = 0; n < 5; n++) give(&a, take(&a, rows[i].request));
        assert_int_equal(counted(&a, PITH_COUNT_allocations), 5);
        assert_int_equal(counted(&a, PITH_COUNT_pool_hits), 0);
        assert_int_equal(counted(&a, PITH_COUNT_pool_misses), 0);
        pith__account_end(&a);
        assert_int_equal(c.live, 0);
    }
}

/* Pooled blocks count as held, but never stand in the way of a request. */
static void test_limit(void **state) {
    (void)state;
    counter c = { 0 };
    pith__account a;
    begin(&a, &c, 100 * KIB, 4, 1 << 20);
    give(&a, take(&a, 60 * KIB));
    assert_true(a.held > 60 * KIB);
    assert_true(pith__account_room(&a.allocator) > 98 * KIB);
    void *other = take(&a, 80 * KIB);
    assert_non_null(other);
    assert_int_equal(pith__pool_count(&a.pool), 0);
    assert_true(a.peak <= 100 * KIB);
    assert_null(take(&a, 30 * KIB));
    give(&a, other);
    pith__account_end(&a);
    assert_int_equal(c.live, 0);
}

/* If the host has no more, the pool's blocks go back to it first. */
static void test_host_is_short(void **state) {
    (void)state;
    counter c = { 0 };
    pith__account a;
    begin(&a, &c, 0, 4, 1 << 20);
    give(&a, take(&a, 60 * KIB));
    c.limit = 100 * KIB;
    void *other = take(&a, 80 * KIB);
    assert_non_null(other);
    give(&a, other);
    pith__account_end(&a);
    assert_int_equal(c.live, 0);
}

static void *churn(void *account) {
    unsigned seed = 1;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245u + 12345u;
        size_t bytes = 4 * KIB + (seed >> 16) % (12 * KIB);
        char *block = take(account, bytes);
        memset(block, i, bytes);
        give(account, block);
        if (i % 500 == 0) pith__account_trim(&((pith__account *)account)->allocator);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 8 };
    counter c = { 0 };
    pith__account a;
    pthread_t threads[THREADS];
    begin(&a, &c, 0, 6, 64 * KIB);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &a), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(counted(&a, PITH_COUNT_pool_hits) + counted(&a, PITH_COUNT_pool_misses),
                     THREADS * 3000);
    pith__account_end(&a);
    assert_int_equal(a.held, 0);
    assert_int_equal(c.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hit),
#ifndef PITH_SANITIZED
        cmocka_unit_test(test_fit),
#endif
        cmocka_unit_test(test_eviction), cmocka_unit_test(test_none),
        cmocka_unit_test(test_limit),    cmocka_unit_test(test_host_is_short),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
