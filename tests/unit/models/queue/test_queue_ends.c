/* test_queue_ends.c - requests that are ended, queues that end, also while requests run and within
 * callbacks, and models that are closed first. */
#define QUEUE_DIR PITH_BINARY_DIR "/queue-ends-model"

#include "support/queue_test.h"

/* ---- requests and queues that wait ---- */

static void test_cancel_and_deadline(void **state) {
    (void)state;
    held h;
    answer a = ANSWER_INIT, b = ANSWER_INIT, c = ANSWER_INIT;
    uint64_t first, second, third;
    pith_error err = PITH_ERROR_INIT;
    hold(&h);
    pith_request r = ask(&a, texts, ENCODE_TEXTS);
    assert_int_equal(pith_queue_submit(&first, h.queue, &r, NULL), PITH_OK);
    r = ask(&b, texts, ENCODE_TEXTS);
    r.deadline_ns = pith_clock_now();
    assert_int_equal(pith_queue_submit(&second, h.queue, &r, NULL), PITH_OK);
    r = ask(&c, texts, ENCODE_TEXTS);
    r.deadline_ns = pith_clock_now() + UINT64_C(3600000000000);
    assert_int_equal(pith_queue_submit(&third, h.queue, &r, NULL), PITH_OK);
    assert_true(first && second > first && third > second);
    pith_queue_statistics n = report(h.queue);
    assert_int_equal(n.waiting_requests, 3);
    assert_int_equal(n.waiting_texts, 3 * ENCODE_TEXTS);
    assert_true(n.oldest_ns > 0 && n.held_bytes > 0);
    assert_int_equal(pith_queue_cancel(h.queue, first, NULL), PITH_OK);
    assert_int_equal(pith_queue_cancel(h.queue, first, &err), PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_queue_cancel(h.queue, 12345, NULL), PITH_ERR_NOT_FOUND);
    let_go(&h);
    wait_for(&a, 1), wait_for(&b, 1), wait_for(&c, 1);
    assert_int_equal(a.status, PITH_ERR_CANCELLED);
    assert_int_equal(b.status, PITH_ERR_DEADLINE);
    assert_int_equal(c.status, PITH_OK);
    assert_non_null(strstr(b.message, "the deadline passed"));
    assert_int_equal(pith_queue_drain(h.queue, NULL, NULL), PITH_OK);
    n = report(h.queue);
    assert_int_equal(n.cancelled, 1);
    assert_int_equal(n.expired, 1);
    assert_int_equal(n.requests, 4);
    assert_int_equal(n.texts, ENCODE_TEXTS);
    pith_queue_destroy(h.queue);
}

/* What waits when the queue ends is cancelled, and its callers are told. */
static void *end_queue(void *queue) {
    pith_queue_destroy(queue);
    return NULL;
}

static void test_destroy(void **state) {
    (void)state;
    held h;
    answer a = ANSWER_INIT;
    pthread_t thread;
    hold(&h);
    const pith_request r = ask(&a, texts, ENCODE_TEXTS);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pith_queue_submit(NULL, h.queue, &r, NULL), PITH_OK);
    assert_int_equal(pthread_create(&thread, NULL, end_queue, h.queue), 0);
    let_go(&h);
    pthread_join(thread, NULL);
    assert_int_equal(a.calls, 5);
    pith_queue_destroy(NULL);
}

static void test_drain(void **state) {
    (void)state;
    held h;
    answer a = ANSWER_INIT;
    pith_call limited = PITH_CALL_INIT;
    pith_error err = PITH_ERROR_INIT;
    const pith_request r = ask(&a, texts, ENCODE_TEXTS);
    hold(&h);
    assert_int_equal(pith_queue_submit(NULL, h.queue, &r, NULL), PITH_OK);
    limited.deadline_ns = pith_clock_now() + 20000000;
    assert_int_equal(pith_queue_drain(h.queue, &limited, NULL), PITH_ERR_DEADLINE);
    assert_int_equal(pith_queue_submit(NULL, h.queue, &r, &err), PITH_ERR_BUSY);
    assert_string_equal(err.message, "the queue is being drained");
    let_go(&h);
    assert_int_equal(pith_queue_drain(h.queue, NULL, NULL), PITH_OK);
    assert_int_equal(a.calls, 1);
    assert_int_equal(report(h.queue).refused, 1);
    pith_queue_destroy(h.queue);
}

/* ---- ends while requests run ---- */

/* Submits until the queue takes no more. */
static void *submit_on(void *user) {
    submitter *s = user;
    do {
        const pith_request r = ask(&s->answers[0], texts + s->number % ENCODE_TEXTS, 1);
        s->status = pith_queue_submit(NULL, s->queue, &r, NULL);
        if (!s->status) s->number++;
    } while (!s->status && s->number < 20000);
    return NULL;
}

static void test_drain_while_requests_come(void **state) {
    (void)state;
    submitter all[4];
    answer answers[4];
    pith_queue *queue = make(model, 2, 0);
    for (int i = 0; i < 4; i++) {
        answers[i] = (answer)ANSWER_INIT;
        all[i] = (submitter){ .queue = queue, .answers = &answers[i] };
        assert_int_equal(pthread_create(&all[i].thread, NULL, submit_on, &all[i]), 0);
    }
    while (report(queue).requests < 50) sched_yield();
    assert_int_equal(pith_queue_drain(queue, NULL, NULL), PITH_OK);
    for (int i = 0; i < 4; i++) {
        pthread_join(all[i].thread, NULL);
        assert_true(all[i].status == PITH_ERR_BUSY || all[i].number == 20000);
        assert_int_equal(answers[i].calls, all[i].number);
        assert_int_equal(answers[i].status, PITH_OK);
    }
    pith_queue_destroy(queue);
}

/* Each is answered once, with its result or as cancelled. */
static void test_destroy_while_requests_run(void **state) {
    (void)state;
    for (int round = 0; round < 10; round++) {
        static answer answers[100];
        pith_queue *queue = make(model, 1 + round % 3, 0);
        for (int i = 0; i < 100; i++) {
            answers[i] = (answer)ANSWER_INIT;
            const pith_request r = ask(&answers[i], texts, ENCODE_TEXTS);
            assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
        }
        if (round % 2) wait_for(&answers[0], 1);
        pith_queue_destroy(queue);
        for (int i = 0; i < 100; i++) {
            assert_int_equal(answers[i].calls, 1);
            assert_true(answers[i].status == PITH_OK || answers[i].status == PITH_ERR_CANCELLED);
        }
    }
}

/* ---- callbacks that use the queue ---- */

typedef struct chain {
    answer a;
    pith_queue *queue;
    int left;
    pith_status submitted, drained;
    uint64_t own;
    pith_status cancelled;
    bool ends; /* the last one ends the queue */
} chain;

static void go_on(void *user, const pith_response *response) {
    chain *c = user;
    pith_error err = PITH_ERROR_INIT;
    c->drained = pith_queue_drain(c->queue, NULL, &err);
    c->cancelled = pith_queue_cancel(c->queue, response->ticket, NULL);
    if (c->left) {
        c->left--;
        pith_request r = ask(&c->a, texts, 1);
        r.done = go_on;
        r.user = c;
        const pith_status status = pith_queue_submit(NULL, c->queue, &r, NULL);
        if (!status) return; /* another thread may have answered all that follow already */
        c->submitted = status;
    } else if (c->ends) {
        pith_queue_destroy(c->queue);
    }
    take_answer(&c->a, response);
}

/* A callback's request has left, so the next one finds room in a queue of one; draining in it is
 * refused and ends nothing. */
static void test_callbacks_submit(void **state) {
    (void)state;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    chain c = { .a = ANSWER_INIT, .left = 50 };
    o.max_requests = 1;
    assert_int_equal(pith_queue_create(&c.queue, model, &o, NULL), PITH_OK);
    pith_request r = ask(&c.a, texts, 1);
    r.done = go_on;
    r.user = &c;
    assert_int_equal(pith_queue_submit(NULL, c.queue, &r, NULL), PITH_OK);
    wait_for(&c.a, 1);
    assert_int_equal(c.left, 0);
    assert_int_equal(c.submitted, PITH_OK);
    assert_int_equal(c.drained, PITH_ERR_BUSY);
    assert_int_equal(c.cancelled, PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_queue_drain(c.queue, NULL, NULL), PITH_OK);
    assert_int_equal(report(c.queue).requests, 51);
    pith_queue_destroy(c.queue);
}

/* A queue that is destroyed in a callback answers what waits, and is then freed with its reference
 * to the model, by its own threads. */
static void test_callback_destroys(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        static counter counts[4]; /* the last thread may be in one when the test goes on */
        counter *c = &counts[threads];
        const pith_allocator allocator = { count_alloc, count_free, c };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
        chain end = { .a = ANSWER_INIT, .left = 3, .ends = true };
        static answer others[20];
        pith_model *m;
        open.call.allocator = o.call.allocator = &allocator;
        o.call.threads = threads;
        assert_int_equal(pith_model_open(&m, QUEUE_DIR, &open, NULL), PITH_OK);
        assert_int_equal(pith_queue_create(&end.queue, m, &o, NULL), PITH_OK);
        pith_model_close(m); /* the queue has its own reference */
        for (int i = 0; i < 20; i++) {
            others[i] = (answer)ANSWER_INIT;
            const pith_request r = ask(&others[i], texts, ENCODE_TEXTS);
            assert_int_equal(pith_queue_submit(NULL, end.queue, &r, NULL), PITH_OK);
        }
        pith_request r = ask(&end.a, texts, 1);
        r.done = go_on;
        r.user = &end;
        r.priority = 1;
        assert_int_equal(pith_queue_submit(NULL, end.queue, &r, NULL), PITH_OK);
        wait_for(&end.a, 1);
        for (int i = 0; i < 20; i++) {
            wait_for(&others[i], 1);
            assert_true(others[i].status == PITH_OK || others[i].status == PITH_ERR_CANCELLED);
        }
        while (c->live) sched_yield();
    }
}

static void test_model_is_closed_first(void **state) {
    (void)state;
    static const size_t which[ENCODE_TEXTS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    pith_model *m = encode_open(QUEUE_DIR);
    pith_queue *queue = make(m, 2, 0);
    answer a = ANSWER_INIT;
    pith_model_close(m);
    a.what = PITH_ENCODE_DENSE;
    a.which = which;
    const pith_request r = ask(&a, texts, ENCODE_TEXTS);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&a, 1);
    assert_int_equal(a.status, PITH_OK);
    assert_string_equal(a.message, "");
    pith_queue_destroy(queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_and_deadline),
        cmocka_unit_test(test_destroy),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_while_requests_come),
        cmocka_unit_test(test_destroy_while_requests_run),
        cmocka_unit_test(test_callbacks_submit),
        cmocka_unit_test(test_callback_destroys),
        cmocka_unit_test(test_model_is_closed_first),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
