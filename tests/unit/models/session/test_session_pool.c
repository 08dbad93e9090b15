/* test_session_pool.c - sessions that threads borrow: who gets which, who waits, what ends; every
 * counter against a count of the test's own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/failing_alloc.h"
#include "pith/pith.h"

#define MODEL                                                                                      \
    PITH_TEST_DATA                                                                                 \
    "/operators/fed_defaults/model.onnx" /* y = x w^2 + b, [2, 3]; w [3], b [1] = 2 */

static pith_model *model;

static int open_model(void **state) {
    (void)state;
    return pith_model_open(&model, MODEL, NULL, NULL);
}

static int close_model(void **state) {
    (void)state;
    pith_model_close(model);
    return 0;
}

static pith_statistics count(void) {
    pith_statistics n = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
    return n;
}

static pith_session_pool *make_pool(int32_t sessions, int32_t idle, int32_t idle_ms) {
    pith_session_pool_options o = PITH_SESSION_POOL_OPTIONS_INIT;
    pith_session_pool *pool = NULL;
    o.sessions = sessions, o.idle = idle, o.idle_ms = idle_ms;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, NULL), PITH_OK);
    return pool;
}

static pith_session *borrow(pith_session_pool *pool) {
    pith_session *session = NULL;
    assert_int_equal(pith_session_pool_borrow(&session, pool, 0, NULL, NULL), PITH_OK);
    return session;
}

/* The one that came back last goes out first; of too many idle ones, that which waited longest
 * ends. */
static void test_order(void **state) {
    (void)state;
    pith_session *s[4], *extra = NULL;
    pith_error err = PITH_ERROR_INIT;
    pith_session_pool *pool = make_pool(4, 2, 0);
    for (int i = 0; i < 4; i++) s[i] = borrow(pool);
    assert_int_equal(pith_session_pool_borrow(&extra, pool, 0, NULL, &err), PITH_ERR_BUSY);
    assert_string_equal(err.message, "all 4 sessions of the pool are borrowed");
    assert_null(extra);
    for (int i = 0; i < 4; i++) pith_session_pool_return(pool, s[i]);
    pith_statistics n = count();
    assert_int_equal(n.sessions_made, 4);
    assert_int_equal(n.sessions_borrowed, 0);
    assert_int_equal(n.sessions_idle, 2);
    assert_int_equal(n.sessions_evicted, 2);
    assert_int_equal(n.sessions_waited, 0);
    assert_ptr_equal(borrow(pool), s[3]);
    assert_ptr_equal(borrow(pool), s[2]);
    n = count();
    assert_int_equal(n.sessions_borrowed, 2);
    assert_int_equal(n.sessions_idle, 0);
    pith_session_pool_return(pool, s[2]);
    pith_session_pool_return(pool, s[3]);
    pith_session_pool_return(pool, NULL);
    pith_session_pool_trim(pool);
    n = count();
    assert_int_equal(n.sessions_idle, 0);
    assert_int_equal(n.sessions_evicted, 2);
    pith_session *fresh = borrow(pool);
    assert_int_equal(count().sessions_made, 5);
    pith_session_pool_return(pool, fresh);
    pith_session_pool_destroy(pool);
    assert_int_equal(count().sessions_idle, 0);
    pith_session_pool_destroy(NULL);
}

/* Idle for too long: looked for at the next borrow and return. */
static void test_idle_time(void **state) {
    (void)state;
    pith_session_pool *pool = make_pool(3, 0, 30);
    pith_session *s[3];
    for (int i = 0; i < 3; i++) s[i] = borrow(pool);
    pith_session_pool_return(pool, s[0]);
    pith_session_pool_return(pool, s[1]);
    usleep(60000);
    pith_session_pool_return(pool, s[2]); /* not idle for long itself */
    pith_statistics n = count();
    assert_int_equal(n.sessions_evicted, 2);
    assert_int_equal(n.sessions_idle, 1);
    usleep(60000);
    s[0] = borrow(pool);
    n = count();
    assert_int_equal(n.sessions_evicted, 3);
    assert_int_equal(n.sessions_made, 4);
    assert_int_equal(n.sessions_borrowed, 0);
    pith_session_pool_return(pool, s[0]);
    pith_session_pool_destroy(pool);
}

/* What one user bound is not there for the next. */
static void test_bindings_end(void **state) {
    (void)state;
    pith_session_pool *pool = make_pool(1, 0, 0);
    pith_error err = PITH_ERROR_INIT;
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6] = { 0 };
    pith_tensor out,
        t = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } };
    const char *name = "x";
    pith_session *s = borrow(pool);
    assert_int_equal(pith_session_bind_input(s, "x", &t, NULL), PITH_OK);
    t.data = y;
    assert_int_equal(pith_session_bind_output(s, "y", &t, NULL), PITH_OK);
    assert_int_equal(pith_session_run(s, &out, NULL, NULL, 0, NULL, NULL), PITH_OK);
    pith_session_pool_return(pool, s);
    assert_ptr_equal(borrow(pool), s);
    assert_int_equal(pith_session_run(s, &out, NULL, NULL, 0, NULL, &err), PITH_ERR_ARGUMENT);
    memset(y, 0, sizeof y);
    t.data = x;
    assert_int_equal(pith_session_run(s, &out, &name, &t, 1, NULL, NULL), PITH_OK);
    for (int i = 0; i < 6; i++) assert_true(y[i] == 0);
    pith_session_pool_return(pool, s);
    pith_session_pool_destroy(pool);
}

typedef struct guest {
    pith_session_pool *pool;
    int64_t timeout_ms;
    pith_status status;
    pith_session *session;
    atomic_bool done;
    pthread_t thread;
    pith_error err;
} guest;

static void *wait_for_one(void *context) {
    guest *g = context;
    g->status = pith_session_pool_borrow(&g->session, g->pool, g->timeout_ms, NULL, &g->err);
    atomic_store(&g->done, true);
    return NULL;
}

static void start(guest *g, pith_session_pool *pool, int64_t timeout_ms) {
    uint64_t before = count().sessions_waited;
    *g = (guest){ .pool = pool, .timeout_ms = timeout_ms, .err = PITH_ERROR_INIT };
    assert_int_equal(pthread_create(&g->thread, NULL, wait_for_one, g), 0);
    while (count().sessions_waited == before) usleep(1000);
}

/* In the order they came; one that gives up is passed over. */
static void test_waiting(void **state) {
    (void)state;
    pith_session_pool *pool = make_pool(1, 0, 0);
    pith_session *s = borrow(pool);
    guest first, brief, last;
    start(&first, pool, -1);
    start(&brief, pool, 30);
    start(&last, pool, 600000);
    pthread_join(brief.thread, NULL);
    assert_int_equal(brief.status, PITH_ERR_BUSY);
    assert_string_equal(brief.err.message,
                        "none of the 1 sessions of the pool was returned in 30 ms");
    assert_false(atomic_load(&first.done) || atomic_load(&last.done));
    pith_session_pool_return(pool, s);
    pthread_join(first.thread, NULL);
    assert_int_equal(first.status, PITH_OK);
    assert_ptr_equal(first.session, s);
    usleep(20000);
    assert_false(atomic_load(&last.done));
    pith_session *none;
    assert_int_equal(pith_session_pool_borrow(&none, pool, 0, NULL, NULL), PITH_ERR_BUSY);
    pith_session_pool_return(pool, s);
    pthread_join(last.thread, NULL);
    assert_ptr_equal(last.session, s);
    pith_statistics n = count();
    assert_int_equal(n.sessions_waited, 3);
    assert_int_equal(n.sessions_borrowed, 2);
    assert_int_equal(n.sessions_made, 1);
    assert_int_equal(n.sessions_idle, 0);
    pith_session_pool_return(pool, s);
    pith_session_pool_destroy(pool);
}

static void test_mistakes(void **state) {
    (void)state;
    pith_session_pool_options o = PITH_SESSION_POOL_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_session_pool *pool;
    pith_session *s;
    o.sessions = 4097;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "sessions is 4097; it must be from 0 to 4096");
    o.sessions = 0, o.idle = -1;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, &err), PITH_ERR_ARGUMENT);
    o.idle = 0, o.idle_ms = -1;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, &err), PITH_ERR_ARGUMENT);
    o.call.size = 0;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_session_pool_create(&pool, model, NULL, &err), PITH_OK);
    assert_int_equal(pith_session_pool_borrow(&s, pool, -2, NULL, &err), PITH_ERR_ARGUMENT);
    pith_session_pool_destroy(pool);
}

/* ---- many threads ---- */

enum { THREADS = 12, TURNS = 200, SESSIONS = 4 };

typedef struct worker {
    pith_session_pool *pool;
    uint32_t seed;
    uint64_t borrowed, refused; /* what this thread saw */
    bool good;
} worker;

static atomic_int out_now, out_most;

static void use(worker *w, pith_session *s) {
    int now = atomic_fetch_add(&out_now, 1) + 1, most = atomic_load(&out_most);
    while (now > most && !atomic_compare_exchange_weak(&out_most, &most, now)) {}
    float v = (float)(w->seed % 100), x[6] = { v, v, v, v, v, v }, y[6];
    const char *name = "x";
    pith_tensor out,
        t = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } },
        one = { .data = y, .bytes = sizeof y, .dtype = PITH_F32, .rank = 2, .dims = { 2, 3 } };
    float wv[3] = { 3, 3, 3 };
    pith_tensor tw = {
        .data = wv, .bytes = sizeof wv, .dtype = PITH_F32, .rank = 1, .dims = { 3 }
    };
    const char *names[2] = { name, "w" };
    pith_tensor in[2] = { t, tw };
    bool bound = w->seed >> 8 & 1;
    if (bound) w->good &= !pith_session_bind_output(s, "y", &one, NULL);
    w->good &= !pith_session_run(s, &out, names, in, 2, NULL, NULL);
    for (int i = 0; i < 6 && w->good; i++) w->good = ((float *)out.data)[i] == v * 9 + 2;
    w->good &= (out.data == y) == bound;
    usleep(w->seed >> 12 & 255); /* so that others come meanwhile */
    atomic_fetch_sub(&out_now, 1);
}

static void *borrow_often(void *context) {
    static const int64_t timeouts[] = { 0, 1, 50, -1 };
    worker *w = context;
    for (int i = 0; i < TURNS && w->good; i++) {
        pith_session *s = NULL;
        w->seed = w->seed * 1664525u + 1013904223u;
        pith_status status =
            pith_session_pool_borrow(&s, w->pool, timeouts[w->seed >> 20 & 3], NULL, NULL);
        if (status == PITH_ERR_BUSY) {
            w->refused++;
            continue;
        }
        w->good = status == PITH_OK;
        if (!w->good) break;
        w->borrowed++;
        use(w, s);
        pith_session_pool_return(w->pool, s);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    pith_session_pool *pool = make_pool(SESSIONS, 3, 1);
    uint64_t borrowed = 0, refused = 0;
    atomic_store(&out_most, 0);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ pool, (uint32_t)i * 77 + 5, 0, 0, true };
        assert_int_equal(pthread_create(&threads[i], NULL, borrow_often, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].good);
        borrowed += workers[i].borrowed;
        refused += workers[i].refused;
    }
    pith_statistics n = count();
    assert_true(atomic_load(&out_most) <= SESSIONS);
    assert_int_equal(n.sessions_made + n.sessions_borrowed, borrowed);
    assert_int_equal(borrowed + refused, THREADS * TURNS);
    assert_int_equal(n.sessions_made, n.sessions_idle + n.sessions_evicted);
    assert_true(n.sessions_idle <= 3);
    assert_true(n.sessions_waited > 0 && refused > 0 && n.sessions_evicted > 0);
    print_message("%llu borrowed, %llu refused, %llu made, %llu waited\n",
                  (unsigned long long)borrowed, (unsigned long long)refused,
                  (unsigned long long)n.sessions_made, (unsigned long long)n.sessions_waited);
    pith_session_pool_destroy(pool);
}

/* ---- memory ---- */

/* The n-th request fails: an error, and the place in the pool is free again. */
static void test_no_memory(void **state) {
    (void)state;
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    o.call.allocator = &allocator;
    o.pool_blocks = -1;
    pith_model *own;
    assert_int_equal(pith_model_open(&own, MODEL, &o, NULL), PITH_OK);
    int failures = 0;
    for (long n = 1; n <= 100; n++) {
        pith_session_pool *pool = NULL;
        pith_session *s = NULL;
        pith_session_pool_options one = PITH_SESSION_POOL_OPTIONS_INIT;
        one.sessions = 1;
        c.fail_at = atomic_load(&c.calls) + n;
        pith_status status = pith_session_pool_create(&pool, own, &one, NULL);
        if (!status) status = pith_session_pool_borrow(&s, pool, 0, NULL, NULL);
        c.fail_at = 0;
        failures += status == PITH_ERR_MEMORY;
        assert_true(!status || status == PITH_ERR_MEMORY);
        if (pool && !s)
            assert_int_equal(pith_session_pool_borrow(&s, pool, 0, NULL, NULL), PITH_OK);
        if (pool) pith_session_pool_return(pool, s);
        pith_session_pool_destroy(pool);
    }
    assert_true(failures > 2 && failures < 100);
    pith_model_close(own);
    assert_int_equal(atomic_load(&c.live), 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_model, close_model)
    const struct CMUnitTest tests[] = { TEST(test_order),        TEST(test_idle_time),
                                        TEST(test_bindings_end), TEST(test_waiting),
                                        TEST(test_mistakes),     TEST(test_threads),
                                        TEST(test_no_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
