/* test_queue.c - requests of many callers through a queue: results have the bits of calls of their
 * own, and a failure costs no other caller. */
#define QUEUE_DIR PITH_BINARY_DIR "/queue-model"

/* clang-format off: names of the second one would be hidden by those of the first */
#include "support/score_test.h"
#include "support/queue_test.h"
/* clang-format on */

enum { CALLERS = 8, ROUNDS = 12, WHATS = 4 };

/* ---- many callers ---- */

typedef struct caller {
    pthread_t thread;
    pith_queue *queue;
    unsigned seed;
    char fault[400];
} caller;

/* Requests of random texts, keys and kinds; some are cancelled, some have a text that is bad. */
static void *call(void *user) {
    static const uint32_t whats[WHATS] = { 1, 2, 1 | 2, 15 };
    caller *c = user;
    for (int round = 0; round < ROUNDS; round++) {
        answer a = ANSWER_INIT;
        pith_str mine[16];
        size_t which[16];
        uint64_t ticket = 0;
        pith_error err = PITH_ERROR_INIT;
        pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
        const size_t count = 1 + (size_t)rand_r(&c->seed) % 16;
        const size_t bad = rand_r(&c->seed) % 4 ? SIZE_MAX : (size_t)rand_r(&c->seed) % count;
        const bool cancels = rand_r(&c->seed) % 6 == 0;
        for (size_t i = 0; i < count; i++) {
            which[i] = (size_t)rand_r(&c->seed) % ENCODE_TEXTS;
            mine[i] = i == bad ? (pith_str){ "w20 \xff", 5 } : texts[which[i]];
        }
        pith_request r = ask(&a, mine, count);
        o.what = a.what = whats[rand_r(&c->seed) % WHATS];
        a.which = which;
        r.encode = &o;
        r.key = (uint64_t)rand_r(&c->seed) % 3;
        r.priority = rand_r(&c->seed) % 3 - 1;
        if (pith_queue_submit(&ticket, c->queue, &r, &err)) {
            snprintf(c->fault, sizeof c->fault, "%.300s", err.message);
            break;
        }
        memset(mine, 0, sizeof mine); /* they were copied */
        if (cancels) pith_queue_cancel(c->queue, ticket, NULL);
        wait_for(&a, 1);
        const char *wanted = bad == SIZE_MAX ? "" : "invalid UTF-8 at byte 4";
        const bool ended = cancels && a.status == PITH_ERR_CANCELLED;
        if (!ended && (a.status || a.failed != (bad != SIZE_MAX) || !strstr(a.message, wanted) ||
                       (!*wanted && *a.message) || a.ticket != ticket)) {
            snprintf(c->fault, sizeof c->fault, "status %d, %zu failed: %.300s", a.status, a.failed,
                     a.message);
            break;
        }
        for (size_t i = 0; i < count && !ended; i++)
            if ((a.results[i].status == PITH_ERR_ARGUMENT) != (i == bad) ||
                (a.results[i].tokens > 0) != (i != bad))
                snprintf(c->fault, sizeof c->fault, "result %zu: %d, %u tokens", i,
                         a.results[i].status, a.results[i].tokens);
    }
    return NULL;
}

static void test_many_callers(void **state) {
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        static caller callers[CALLERS];
        pith_queue *queue = make(model, threads, threads == 2 ? 25 : 0);
        for (unsigned i = 0; i < CALLERS; i++) {
            callers[i] = (caller){ .queue = queue, .seed = i + 100 * (unsigned)threads };
            assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
        for (int i = 0; i < CALLERS; i++)
            if (*callers[i].fault) fail_msg("caller %d: %s", i, callers[i].fault);
        assert_int_equal(pith_queue_drain(queue, NULL, NULL), PITH_OK);
        const pith_queue_statistics n = report(queue);
        assert_int_equal(n.requests, CALLERS * ROUNDS);
        assert_int_equal(n.held_requests, 0);
        assert_int_equal(n.held_bytes, 0);
        assert_int_equal(n.waiting_texts, 0);
        assert_int_equal(n.running_texts, 0);
        assert_int_equal(n.oldest_ns, 0);
        assert_int_equal(n.failed, 0);
        assert_true(n.texts >= n.requests - n.cancelled && n.tokens > n.texts);
        assert_true(n.chunks > 0 && n.chunk_requests > 0 && n.tokens_per_second > 0);
        pith_queue_destroy(queue);
    }
}

/* ---- a thousand callers ---- */

enum { THOUSAND = 1000, SUBMITTERS = 8 };

static void *submit_many(void *user) {
    submitter *s = user;
    for (int i = 0; i < THOUSAND / SUBMITTERS && !s->status; i++) {
        pith_request r = ask(&s->answers[i], texts, 1);
        r.key = (uint64_t)(s->number * THOUSAND + i);
        s->status = pith_queue_submit(NULL, s->queue, &r, NULL);
    }
    return NULL;
}

/* One short text of each of 1,000 callers: few chunks, and the bits of the text alone. */
static void test_thousand_callers(void **state) {
    (void)state;
    static answer answers[THOUSAND];
    static const size_t first = 0;
    submitter all[SUBMITTERS];
    held h;
    hold(&h);
    for (int i = 0; i < THOUSAND; i++) {
        answers[i] = (answer)ANSWER_INIT;
        answers[i].what = PITH_ENCODE_DENSE;
        answers[i].which = &first;
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        all[i] = (submitter){ .queue = h.queue,
                              .answers = answers + i * (THOUSAND / SUBMITTERS),
                              .number = i };
        assert_int_equal(pthread_create(&all[i].thread, NULL, submit_many, &all[i]), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].status, PITH_OK);
    }
    assert_int_equal(report(h.queue).waiting_requests, THOUSAND);
    let_go(&h);
    assert_int_equal(pith_queue_drain(h.queue, NULL, NULL), PITH_OK);
    for (int i = 0; i < THOUSAND; i++) {
        assert_int_equal(answers[i].calls, 1);
        if (answers[i].status || answers[i].failed || *answers[i].message)
            fail_msg("caller %d: %s", i, answers[i].message);
    }
    const pith_queue_statistics n = report(h.queue);
    assert_int_equal(n.texts, THOUSAND);
    assert_in_range(n.chunks, 1, THOUSAND / 10);
    pith_queue_destroy(h.queue);
}

/* Requests that are cancelled, expire or fail cost those beside them no run and no result. */
static void test_bad_ones_cost_nothing(void **state) {
    (void)state;
    enum { REQUESTS = 64 };
    static answer answers[REQUESTS];
    static const size_t first = 0;
    const pith_str bad = { "w20 \xff", 5 };
    uint64_t chunks_alone = 0;
    for (int mixed = 0; mixed < 2; mixed++) {
        held h;
        uint64_t tickets[REQUESTS];
        hold(&h);
        for (int i = 0; i < REQUESTS; i++) {
            const int kind = i % 4; /* good, cancelled, expired, failed */
            answers[i] = (answer)ANSWER_INIT;
            answers[i].what = PITH_ENCODE_DENSE;
            answers[i].which = &first;
            if (kind && !mixed) continue;
            pith_request r = ask(&answers[i], kind == 3 ? &bad : texts, 1);
            if (kind == 2) r.deadline_ns = pith_clock_now();
            r.key = (uint64_t)i % 5;
            assert_int_equal(pith_queue_submit(&tickets[i], h.queue, &r, NULL), PITH_OK);
        }
        for (int i = 1; i < REQUESTS && mixed; i += 4)
            assert_int_equal(pith_queue_cancel(h.queue, tickets[i], NULL), PITH_OK);
        let_go(&h);
        assert_int_equal(pith_queue_drain(h.queue, NULL, NULL), PITH_OK);
        const pith_queue_statistics n = report(h.queue);
        for (int i = 0; i < REQUESTS; i += 4) {
            assert_int_equal(answers[i].calls, 1);
            if (answers[i].status || answers[i].failed || *answers[i].message)
                fail_msg("request %d: %s", i, answers[i].message);
        }
        if (!mixed) {
            chunks_alone = n.chunks;
        } else {
            assert_in_range(n.chunks, 1, chunks_alone + 1);
            assert_int_equal(n.cancelled, REQUESTS / 4);
            assert_int_equal(n.expired, REQUESTS / 4);
            assert_int_equal(n.failed_texts, REQUESTS / 4);
            assert_int_equal(n.texts, REQUESTS / 2); /* those that failed were tried */
            for (int i = 3; i < REQUESTS; i += 4) assert_int_equal(answers[i].failed, 1);
        }
        pith_queue_destroy(h.queue);
    }
}

/* A short text behind a bulk of the same key is in the second chunk at the latest. */
static void test_short_behind_bulk(void **state) {
    (void)state;
    enum { BULK = 2048 };
    static pith_str many[BULK];
    held h;
    answer bulk = ANSWER_INIT;
    chunks one = { .a = ANSWER_INIT };
    hold(&h);
    one.queue = h.queue;
    for (size_t i = 0; i < BULK; i++) many[i] = texts[4];
    pith_request r = ask(&bulk, many, BULK);
    assert_int_equal(pith_queue_submit(NULL, h.queue, &r, NULL), PITH_OK);
    r = ask(&one.a, texts, 1);
    r.done = count_chunks;
    r.user = &one;
    assert_int_equal(pith_queue_submit(NULL, h.queue, &r, NULL), PITH_OK);
    let_go(&h);
    wait_for(&one.a, 1);
    assert_int_equal(one.a.status, PITH_OK);
    assert_in_range(one.at, 1, 2);
    wait_for(&bulk, 1);
    assert_int_equal(bulk.status, PITH_OK);
    assert_int_equal(bulk.failed, 0);
    pith_queue_destroy(h.queue);
}

/* ---- what is refused ---- */

static void refuses(pith_queue *queue, const pith_request *r, const char *message) {
    pith_error err = PITH_ERROR_INIT;
    uint64_t ticket = 77;
    assert_true(pith_queue_submit(&ticket, queue, r, &err) != PITH_OK);
    if (!strstr(err.message, message)) fail_msg("'%s' is not in '%s'", message, err.message);
    assert_int_equal(ticket, 77);
}

static void test_refused(void **state) {
    (void)state;
    pith_queue *queue = make(model, 1, 0);
    answer a = ANSWER_INIT;
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options e = PITH_EMBED_OPTIONS_INIT;
    pith_request r = ask(&a, texts, 1);
    r.done = NULL;
    refuses(queue, &r, "no function done");
    r = ask(&a, texts, 1), r.task = 3;
    refuses(queue, &r, "task is 3");
    r = ask(&a, texts, 1), r.priority = 101;
    refuses(queue, &r, "priority 101");
    r = ask(&a, NULL, 1);
    refuses(queue, &r, "neither texts nor tokens");
    r = ask(&a, texts, 1), r.task = PITH_REQUEST_CLASSIFY;
    refuses(queue, &r, "classifier");
    r = ask(&a, texts, 1), r.encode = &o, o.what = 64;
    refuses(queue, &r, "what is 64");
    o.what = 1, o.embed = &e, e.prompt_name = "none of these";
    refuses(queue, &r, "no prompt 'none of these'");
    e.prompt_name = NULL, e.dim = 100000;
    refuses(queue, &r, "dim");
    r.size = 0;
    refuses(queue, &r, "no size");
    pith_queue_destroy(queue);
    assert_int_equal(a.calls, 0);
}

/* ---- tokens ---- */

/* Texts that are tokens have the results of the texts; a bad one fails alone. */
static void test_tokens(void **state) {
    (void)state;
    static const size_t which[ENCODE_TEXTS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static int32_t ids[ENCODE_TEXTS][IDS_MAX];
    pith_token_ids tokens[ENCODE_TEXTS];
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    answer a = ANSWER_INIT, b = ANSWER_INIT;
    pith_queue *queue = make(model, 2, 0);
    for (size_t i = 0; i < ENCODE_TEXTS; i++)
        tokens[i] = (pith_token_ids){ .ids = ids[i], .count = encode_ids(ids[i], model, texts[i]) };
    pith_request r = ask(&a, NULL, ENCODE_TEXTS);
    a.what = o.what = 15, a.which = which;
    r.tokens = tokens;
    r.encode = &o;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    ids[3][0] = VOCABULARY; /* what was given is copied */
    wait_for(&a, 1);
    if (a.status || a.failed) fail_msg("%s", a.message);
    assert_string_equal(a.message, "");
    for (size_t i = 0; i < ENCODE_TEXTS; i++)
        assert_int_equal(a.results[i].tokens, tokens[i].count);
    r.user = &b;
    b.what = 15, b.which = which;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&b, 1);
    assert_int_equal(b.status, PITH_OK);
    assert_int_equal(b.failed, 1);
    assert_int_equal(b.results[3].status, PITH_ERR_ARGUMENT);
    if (strncmp(b.message, "text 3: ", 8)) fail_msg("%s", b.message);
    r.texts = texts;
    refuses(queue, &r, "both texts and tokens");
    pith_queue_destroy(queue);
}

/* ---- scores ---- */

static void test_scores(void **state) {
    (void)state;
    cases all;
    float wanted[CASES];
    cases_open(&all);
    pith_model *judge = open_task(TASKS "cross-bert", NULL);
    assert_int_equal(pith_rerank(wanted, judge, all.texts[0], all.pairs, CASES, NULL, NULL),
                     PITH_OK);
    pith_queue *queue = make(judge, 2, 40);
    enum { REQUESTS = 20 };
    static answer answers[REQUESTS];
    for (size_t i = 0; i < REQUESTS; i++) {
        answers[i] = (answer)ANSWER_INIT;
        const size_t first = i % CASES, count = 1 + i % (CASES - first);
        pith_request r = ask(&answers[i], all.pairs + first, count);
        r.task = PITH_REQUEST_RERANK;
        r.query = all.texts[0];
        assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        wait_for(&answers[i], 1);
        if (answers[i].status) fail_msg("%s", answers[i].message);
        assert_int_equal(answers[i].labels, 1);
        assert_memory_equal(answers[i].scores, wanted + i % CASES,
                            answers[i].count * sizeof *wanted);
    }
    pith_queue_destroy(queue);
    pith_model_close(judge);
    cases_close(&all);
}

/* ---- no memory ---- */

/* The n-th allocation fails, of the queue's allocator and of the model's, also of one with a memory
 * limit, where what is refused is tried again while nothing else runs: a request is refused, or
 * fails, or has the right bits; nothing leaks. */
static pith_status work(counter *c, int models, pith_error *err) {
    const pith_allocator allocator = { count_alloc, count_free, c };
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_encode_options encode = PITH_ENCODE_OPTIONS_INIT;
    static const size_t which[ENCODE_TEXTS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    pith_model *m = model;
    pith_queue *queue = NULL;
    pith_status status = PITH_OK;
    const long fail_at = c->fail_at;
    if (models) {
        c->fail_at = 0;
        open.call.allocator = &allocator;
        open.pool_blocks = -1;
        if (models > 1) open.memory_limit = (size_t)1 << 40;
        assert_int_equal(pith_model_open(&m, QUEUE_DIR, &open, NULL), PITH_OK);
        c->calls = 0;
        c->fail_at = fail_at;
    } else {
        o.call.allocator = &allocator;
    }
    o.call.threads = 1;
    encode.what = 15;
    status = pith_queue_create(&queue, m, &o, err);
    for (int i = 0; i < 2 && !status; i++) {
        answer a = ANSWER_INIT;
        pith_request r = ask(&a, texts, ENCODE_TEXTS);
        r.encode = &encode;
        a.what = 15, a.which = which;
        status = pith_queue_submit(NULL, queue, &r, err);
        if (status) break;
        wait_for(&a, 1);
        if (strstr(a.message, "other bits")) fail_msg("%s", a.message);
        if (a.status || a.failed) status = PITH_ERR_MEMORY;
        for (size_t k = 0; k < ENCODE_TEXTS && !a.status; k++)
            if (a.results[k].status) assert_int_equal(a.results[k].status, PITH_ERR_MEMORY);
        if (a.status) assert_int_equal(a.status, PITH_ERR_MEMORY);
    }
    pith_queue_destroy(queue);
    c->fail_at = 0;
    if (models) pith_model_close(m);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    for (int models = 0; models < 3; models++) {
        counter c = { 0 };
        if (work(&c, models, NULL)) fail_msg("without failures");
        const long calls = c.calls, step = 1 + calls / 400;
        assert_int_equal(c.live, 0);
        assert_true(calls > 5);
        for (long n = 1; n <= calls; n += step) {
            counter failing = { .fail_at = n };
            pith_error err = PITH_ERROR_INIT;
            const pith_status status = work(&failing, models, &err);
            if (status && status != PITH_ERR_MEMORY)
                fail_msg("allocation %ld: status %d: %s", n, status, err.message);
            assert_int_equal(failing.live, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_thousand_callers),
        cmocka_unit_test(test_bad_ones_cost_nothing),
        cmocka_unit_test(test_short_behind_bulk),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
