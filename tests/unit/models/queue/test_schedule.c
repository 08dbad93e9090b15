/* test_schedule.c - who comes next in a queue, without a model: turns, priorities, groups,
 * deadlines and limits, and random work against counts of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_alloc.h"
#include "models/queue/schedule.h"

enum { ROOM = 512, TEXTS = 2048, REQUESTS = 300 };

static pith__schedule s;
static uint32_t ones[TEXTS];
static const char group_a, group_b;
static counter memory;
static const pith_allocator allocator = { count_alloc, count_free, &memory };

static int setup(void **state) {
    (void)state;
    memset(&memory, 0, sizeof memory);
    for (size_t i = 0; i < TEXTS; i++) ones[i] = 1;
    pith__schedule_init(&s, &allocator, REQUESTS, 1 << 20, 100);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    assert_int_equal(s.held, 0);
    assert_int_equal(s.bytes, 0);
    assert_int_equal(s.out, 0);
    assert_int_equal(s.waiting, 0);
    assert_int_equal(s.waiting_texts, 0);
    assert_int_equal(s.waiting_cost, 0);
    assert_int_equal(s.waiting_bytes, 0);
    assert_null(s.oldest);
    assert_null(s.newest);
    assert_null(s.deadlines);
    assert_int_equal(memory.live, 0);
    return 0;
}

static pith__schedule_request make(uint64_t key, size_t count) {
    return (pith__schedule_request){
        .key = key, .group = &group_a, .costs = ones, .count = count, .bytes = 10
    };
}

static void add(pith__schedule_request *r) {
    assert_int_equal(pith__schedule_add(&s, r, NULL), PITH_OK);
    assert_ptr_equal(pith__schedule_find(&s, r->ticket), r);
}

/* Takes a chunk, checks from whom how many texts come, and gives them back. */
static void expect(uint64_t cost, size_t kinds, pith__schedule_request **who,
                   const size_t *counts) {
    pith__schedule_text texts[ROOM];
    const void *group = NULL;
    size_t n = pith__schedule_take(&s, texts, ROOM, cost, &group), at = 0;
    for (size_t i = 0; i < kinds; i++)
        for (size_t k = 0; k < counts[i]; k++, at++) {
            assert_true(at < n);
            assert_ptr_equal(texts[at].request, who[i]);
        }
    assert_int_equal(at, n);
    for (size_t i = 0; i < n; i++)
        if (pith__schedule_return(&s, texts[i].request, 1))
            pith__schedule_leave(&s, texts[i].request);
}

#define EXPECT(cost, ...)                                                                          \
    do {                                                                                           \
        const struct {                                                                             \
            pith__schedule_request *who;                                                           \
            size_t count;                                                                          \
        } wanted[] = { __VA_ARGS__ };                                                              \
        pith__schedule_request *who[8];                                                            \
        size_t counts[8], kinds = sizeof wanted / sizeof *wanted;                                  \
        for (size_t w = 0; w < kinds; w++) who[w] = wanted[w].who, counts[w] = wanted[w].count;    \
        expect(cost, kinds, who, counts);                                                          \
    } while (0)

/* A short request behind a long one is in the next chunk, of another key or of the same. */
static void test_short_behind_long(void **state) {
    (void)state;
    for (uint64_t key = 0; key < 2; key++) {
        pith__schedule_request bulk = make(0, TEXTS), text = make(key, 1);
        add(&bulk);
        EXPECT(100, { &bulk, 100 });
        add(&text);
        size_t chunks = 0;
        while (text.taken < 1 && ++chunks) {
            pith__schedule_text texts[ROOM];
            const void *group = NULL;
            size_t n = pith__schedule_take(&s, texts, ROOM, 100, &group);
            for (size_t i = 0; i < n; i++)
                if (pith__schedule_return(&s, texts[i].request, 1))
                    pith__schedule_leave(&s, texts[i].request);
        }
        assert_in_range(chunks, 1, 2);
        while (s.held) {
            pith__schedule_text texts[ROOM];
            const void *group = NULL;
            size_t n = pith__schedule_take(&s, texts, ROOM, 100, &group);
            assert_int_equal(n, bulk.count - bulk.taken ? 100 : n);
            for (size_t i = 0; i < n; i++)
                if (pith__schedule_return(&s, texts[i].request, 1))
                    pith__schedule_leave(&s, texts[i].request);
        }
    }
}

/* Keys take turns, whatever number of requests they have, and the oldest request of a key is
 * first. */
static void test_turns(void **state) {
    (void)state;
    pith__schedule_request a = make(1, 25), b = make(1, 5), c = make(2, 12), d = make(3, 1);
    add(&a), add(&b), add(&c), add(&d);
    EXPECT(10, { &a, 10 });
    EXPECT(10, { &c, 10 });
    EXPECT(10, { &d, 1 }, { &b, 5 }, { &a, 4 });
    EXPECT(10, { &c, 2 }, { &a, 8 });
    EXPECT(10, { &a, 3 });
}

static void test_priorities(void **state) {
    (void)state;
    pith__schedule_request low = make(1, 8), high = make(1, 8), middle = make(2, 8);
    low.priority = -100, high.priority = 100;
    add(&low), add(&middle), add(&high);
    EXPECT(6, { &high, 6 });
    EXPECT(6, { &high, 2 }, { &middle, 4 });
    EXPECT(20, { &middle, 4 }, { &low, 8 });
}

/* A chunk has one group; those passed over keep their places. */
static void test_groups(void **state) {
    (void)state;
    pith__schedule_request a = make(1, 3), b = make(1, 3), c = make(2, 3);
    b.group = &group_b;
    add(&a), add(&b), add(&c);
    EXPECT(10, { &a, 3 }, { &c, 3 });
    EXPECT(10, { &b, 3 });
    /* a chunk that was begun takes no more than fits, and of its group only */
    pith__schedule_request big = make(1, 1), other = make(1, 1);
    const uint32_t cost = 50;
    pith__schedule_text texts[ROOM];
    const void *group = &group_a;
    big.costs = &cost, other.group = &group_b;
    add(&big), add(&other);
    assert_int_equal(pith__schedule_take(&s, texts, ROOM, 49, &group), 0);
    EXPECT(1, { &big, 1 });
    assert_int_equal(pith__schedule_take(&s, texts, ROOM, 49, &group), 0);
    EXPECT(1, { &other, 1 });
}

/* Many of other groups in front do not make filling a chunk long. */
static void test_passed_over(void **state) {
    (void)state;
    static pith__schedule_request many[200];
    pith__schedule_request a = make(0, 2), z = make(1000, 1);
    add(&a);
    for (size_t i = 0; i < 200; i++) {
        many[i] = make(i + 1, 1);
        many[i].group = &group_b;
        add(&many[i]);
    }
    add(&z);
    EXPECT(10, { &a, 2 });
    pith__schedule_text texts[ROOM];
    const void *group = NULL;
    size_t n = pith__schedule_take(&s, texts, ROOM, 1000, &group);
    assert_int_equal(n, 200);
    for (size_t i = 0; i < n; i++) {
        assert_true(pith__schedule_return(&s, texts[i].request, 1));
        pith__schedule_leave(&s, texts[i].request);
    }
    EXPECT(10, { &z, 1 });
}

static void test_deadlines(void **state) {
    (void)state;
    pith__schedule_request r[5];
    static const uint64_t at[5] = { 50, 20, 0, 40, 20 };
    for (int i = 0; i < 5; i++) {
        r[i] = make((uint64_t)i, 4);
        r[i].deadline = at[i];
        add(&r[i]);
    }
    assert_null(pith__schedule_expired(&s, 19));
    for (int i = 0; i < 2; i++) {
        pith__schedule_request *late = pith__schedule_expired(&s, 30);
        assert_true(late == &r[1] || late == &r[4]);
        assert_true(pith__schedule_stop(&s, late));
        pith__schedule_leave(&s, late);
    }
    assert_null(pith__schedule_expired(&s, 39));
    /* what has begun as a whole does not expire; what is out is waited for */
    pith__schedule_text texts[ROOM];
    const void *group = NULL;
    assert_int_equal(pith__schedule_take(&s, texts, ROOM, 10, &group), 10);
    assert_ptr_equal(pith__schedule_expired(&s, 60), &r[3]);
    assert_int_equal(r[3].taken, 2);
    assert_false(pith__schedule_stop(&s, &r[3]));
    assert_null(pith__schedule_expired(&s, 60));
    assert_false(pith__schedule_return(&s, &r[3], 1));
    assert_true(pith__schedule_return(&s, &r[3], 1));
    assert_true(pith__schedule_return(&s, &r[0], 4));
    assert_true(pith__schedule_return(&s, &r[2], 4));
    pith__schedule_leave(&s, &r[3]), pith__schedule_leave(&s, &r[0]),
        pith__schedule_leave(&s, &r[2]);
}

static void finish(pith__schedule_request *r) {
    if (pith__schedule_stop(&s, r)) pith__schedule_leave(&s, r);
}

static void test_limits(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith__schedule_request first = make(1, 1), second = make(1, 1), third = make(1, 1);
    first.bytes = 5 << 20; /* more than all */
    assert_int_equal(pith__schedule_add(&s, &first, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "one key may hold 100 % of 1048576"));
    first.bytes = 1 << 20;
    add(&first);
    assert_int_equal(pith__schedule_add(&s, &second, &err), PITH_ERR_BUSY);
    assert_non_null(strstr(err.message, "may hold 1048576; this one has 10"));
    EXPECT(1, { &first, 1 });
    s.max_requests = 2;
    first = make(1, 1);
    add(&first), add(&second);
    assert_int_equal(pith__schedule_add(&s, &third, &err), PITH_ERR_BUSY);
    assert_non_null(strstr(err.message, "it has 2 requests"));
    while (s.all) finish(s.all);
}

/* Adds requests of a key until one is refused. Returns how many came in. */
static size_t flood(pith__schedule_request *r, uint64_t key, size_t bytes, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    for (size_t n = 0;; n++) {
        bool of_key;
        r[n] = make(key, 1);
        r[n].bytes = bytes;
        if (!pith__schedule_check(&s, key, bytes, &of_key, &err)) {
            add(&r[n]);
            continue;
        }
        assert_int_equal(err.code, PITH_ERR_BUSY);
        assert_int_equal(of_key, strstr(err.message, "the key has its share") != NULL);
        if (!strstr(err.message, says)) fail_msg("%s", err.message);
        return n;
    }
}

/* Of those that take what they can get, n keys hold 1 / (n + 1) of all each, in bytes and in
 * requests; whoever comes then finds room. */
static void test_shares(void **state) {
    (void)state;
    static pith__schedule_request r[200];
    bool of_key;
    pith__schedule_init(&s, &allocator, 1000, 1200, 50);
    assert_int_equal(flood(r, 1, 10, "the key has its share of the queue: 600 of 1200 bytes"), 60);
    assert_int_equal(flood(r + 60, 2, 10, "300 of 1200 bytes"), 30);
    assert_int_equal(flood(r + 90, 3, 10, "150 of 1200 bytes"), 15);
    assert_int_equal(pith__schedule_check(&s, 4, 10, &of_key, NULL), PITH_OK);
    /* the first one gives up what it has too much: the others may take it, and it may not */
    for (size_t i = 0; i < 20; i++) finish(&r[i]);
    assert_int_equal(flood(r, 1, 10, "400 of 1200"), 0);
    assert_int_equal(flood(r, 2, 10, "320 of 1200"), 2);
    while (s.all) finish(s.all);

    pith__schedule_init(&s, &allocator, 100, 1 << 20, 50);
    assert_int_equal(flood(r, 1, 10, "50 of 100 requests"), 50);
    assert_int_equal(flood(r + 50, 2, 10, "25 of 100 requests"), 25);
    while (s.all) finish(s.all);

    pith__schedule_init(&s, &allocator, 200, 1000, 80);
    assert_int_equal(flood(r, 1, 10, "800 of 1000 bytes"), 80);
    while (s.all) finish(s.all);
}

/* One request per key is let in while there is room, and none that its key could never hold. */
static void test_shares_of_few(void **state) {
    (void)state;
    static pith__schedule_request r[8];
    pith_error err = PITH_ERROR_INIT;
    bool of_key = true;
    pith__schedule_init(&s, &allocator, 2, 1000, 50);
    assert_int_equal(pith__schedule_check(&s, 1, 501, &of_key, &err), PITH_ERR_ARGUMENT);
    assert_false(of_key);
    assert_non_null(strstr(err.message, "needs 501 bytes, and one key may hold 50 % of 1000"));
    r[0] = make(1, 1), r[0].bytes = 500;
    add(&r[0]);
    assert_int_equal(flood(r + 1, 1, 10, "1 of 2 requests"), 0);
    assert_int_equal(flood(r + 1, 2, 251, "0 of 1000 bytes; this request has 251"), 0);
    assert_int_equal(flood(r + 1, 2, 250, "the queue is full: it has 2 requests"), 1);
    while (s.all) finish(s.all);
}

static void test_no_memory(void **state) {
    (void)state;
    pith__schedule_request r = make(7, 3);
    for (long n = 1; n <= 2; n++) {
        memory.fail_at = memory.calls + n;
        assert_int_equal(pith__schedule_add(&s, &r, NULL), PITH_ERR_MEMORY);
        assert_null(s.all);
        assert_int_equal(memory.live, 0);
    }
    add(&r);
    finish(&r);
}

/* Random requests come, are taken, given back, stopped and expire. The test counts for itself. */
static void test_random(void **state) {
    (void)state;
    static pith__schedule_request r[REQUESTS];
    static bool in[REQUESTS];
    static pith__schedule_text out[1 << 14];
    static uint32_t costs[TEXTS];
    size_t outs = 0;
    uint64_t now = 1;
    srand(5);
    for (size_t i = 0; i < TEXTS; i++) costs[i] = (uint32_t)(1 + rand() % 20);
    memset(in, 0, sizeof in);
    for (int step = 0; step < 60000 || s.held; step++) {
        const size_t i = (size_t)rand() % REQUESTS;
        const int what = rand() % 100;
        now += (uint64_t)(rand() % 3);
        if (what < 30 && !in[i] && step < 60000) {
            r[i] = make((uint64_t)(rand() % 20), (size_t)(1 + rand() % 40));
            r[i].priority = rand() % 3 - 1;
            r[i].costs = costs;
            r[i].group = rand() % 4 ? &group_a : &group_b;
            r[i].deadline = rand() % 3 ? 0 : now + (uint64_t)(rand() % 500);
            add(&r[i]);
            in[i] = true;
        } else if (what < 60 && outs + ROOM <= sizeof out / sizeof *out) {
            const void *group = NULL;
            const bool any = s.waiting > 0;
            size_t n = pith__schedule_take(&s, out + outs, ROOM, (uint64_t)(rand() % 200), &group);
            assert_int_equal(any, n > 0);
            for (size_t k = outs; k < outs + n; k++) assert_ptr_equal(out[k].request->group, group);
            outs += n;
        } else if (what < 90 && outs) {
            for (size_t k = 0; k < 20 && outs; k++) {
                const size_t at = (size_t)rand() % outs;
                pith__schedule_request *one = out[at].request;
                out[at] = out[--outs];
                if (!pith__schedule_return(&s, one, 1)) continue;
                pith__schedule_leave(&s, one);
                in[one - r] = false;
            }
        } else if (what < 92 && in[i] && !r[i].stopped) {
            if (pith__schedule_stop(&s, &r[i])) {
                pith__schedule_leave(&s, &r[i]);
                in[i] = false;
            }
        } else {
            uint64_t soonest = UINT64_MAX;
            size_t waiting = 0, texts = 0, held = 0;
            for (size_t k = 0; k < REQUESTS; k++) {
                held += in[k];
                if (!in[k] || r[k].stopped || r[k].taken == r[k].count) continue;
                waiting++;
                texts += r[k].count - r[k].taken;
                if (r[k].deadline && r[k].deadline < soonest) soonest = r[k].deadline;
            }
            assert_int_equal(s.held, held);
            assert_int_equal(s.waiting, waiting);
            assert_int_equal(s.waiting_texts, texts);
            assert_int_equal(s.out, outs);
            pith__schedule_request *late = pith__schedule_expired(&s, now);
            assert_int_equal(late != NULL, soonest <= now);
            if (late) assert_int_equal(late->deadline, soonest);
            if (late && pith__schedule_stop(&s, late)) {
                pith__schedule_leave(&s, late);
                in[late - r] = false;
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_short_behind_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_priorities, setup, teardown),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadlines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shares_of_few, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
