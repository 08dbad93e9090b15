/* test_queue.c - requests of many callers through a queue: results have the bits of calls of their
 * own, a failure costs no other caller, limits hold, and what waits can be ended. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/encode_test.h"
#include "support/failing_alloc.h"
#include "support/score_test.h"

#define DIR PITH_BINARY_DIR "/queue-model"

enum { CALLERS = 8, ROUNDS = 12, WHATS = 4 };

static pith_model *model; /* BGE-M3: dense, sparse, vectors of tokens */
static pith_str texts[ENCODE_TEXTS];
static pith_encoded *alone[ENCODE_TEXTS]; /* of each text by itself, of all kinds */

static int open_all(void **state) {
    (void)state;
    encode_texts(texts);
    encode_directory(DIR, "families/bge-m3-script17", ROBERTA_WORDS);
    model = encode_open(DIR);
    for (size_t i = 0; i < ENCODE_TEXTS; i++)
        alone[i] = encode_all(model, &texts[i], 1, 15, PITH_ROLE_DOCUMENT, NULL);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    for (size_t i = 0; i < ENCODE_TEXTS; i++) pith_encoded_free(alone[i]);
    pith_model_close(model);
    return 0;
}

/* ---- one request, and what came of it ---- */

typedef struct answer {
    pthread_mutex_t lock;
    pthread_cond_t here;
    int calls;
    bool holds; /* done waits until it may go on */
    pith_status status;
    char message[400];
    size_t count, failed, labels;
    pith_text_result results[64];
    float scores[64];
    const size_t *which; /* the texts asked for, by number; NULL: nothing is compared */
    uint32_t what;
    uint64_t ticket;
} answer;

#define ANSWER_INIT                                                                                \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .here = PTHREAD_COND_INITIALIZER }

/* Text i of the response has the bits of the text by itself. cmocka cannot fail on another thread,
 * so a difference is noted in the message. */
static bool same_rows(const pith_token_rows *a, size_t i, const pith_token_rows *b) {
    const int64_t at = a->offsets[i], n = a->offsets[i + 1] - at;
    return a->dim == b->dim && n == b->offsets[1] && !memcmp(a->ids + at, b->ids, (size_t)n * 4) &&
           !memcmp(a->vectors + (size_t)at * a->dim, b->vectors, (size_t)n * a->dim * 4);
}

static bool same_text(const pith_encoded *a, size_t i, const pith_encoded *b, uint32_t what) {
    if (!!a->dense != !!(what & PITH_ENCODE_DENSE)) return false;
    if (a->dense && (a->dim != b->dim || memcmp(a->dense + i * a->dim, b->dense, a->dim * 4)))
        return false;
    if (!!a->sparse.offsets != !!(what & PITH_ENCODE_SPARSE)) return false;
    if (a->sparse.offsets) {
        const int64_t at = a->sparse.offsets[i], n = a->sparse.offsets[i + 1] - at;
        if (n != b->sparse.offsets[1] ||
            memcmp(a->sparse.indices + at, b->sparse.indices, (size_t)n * 4) ||
            memcmp(a->sparse.values + at, b->sparse.values, (size_t)n * 4))
            return false;
    }
    if (what & PITH_ENCODE_MULTI_VECTOR && !same_rows(&a->multi_vector, i, &b->multi_vector))
        return false;
    return !(what & PITH_ENCODE_TOKENS) || same_rows(&a->tokens, i, &b->tokens);
}

static void take_answer(void *user, const pith_response *r) {
    answer *a = user;
    pthread_mutex_lock(&a->lock);
    while (a->holds) pthread_cond_wait(&a->here, &a->lock);
    a->status = r->status;
    a->count = r->count, a->failed = r->failed, a->labels = r->labels;
    a->ticket = r->ticket;
    snprintf(a->message, sizeof a->message, "%s", r->message);
    if (r->results && r->count <= 64) memcpy(a->results, r->results, r->count * sizeof *r->results);
    if (r->scores && r->count * r->labels <= 64)
        memcpy(a->scores, r->scores, r->count * r->labels * sizeof *r->scores);
    for (size_t i = 0; a->which && r->encoded && i < r->count; i++)
        if (!r->results[i].status && !same_text(r->encoded, i, alone[a->which[i]], a->what))
            snprintf(a->message, sizeof a->message, "text %zu has other bits", i);
    a->calls++;
    pthread_cond_broadcast(&a->here);
    pthread_mutex_unlock(&a->lock);
}

static void wait_for(answer *a, int calls) {
    pthread_mutex_lock(&a->lock);
    while (a->calls < calls) pthread_cond_wait(&a->here, &a->lock);
    assert_int_equal(a->calls, calls);
    pthread_mutex_unlock(&a->lock);
}

static pith_queue *make(const pith_model *m, int32_t threads, int32_t batch_tokens) {
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue = NULL;
    o.call.threads = threads;
    o.batch_tokens = batch_tokens;
    if (pith_queue_create(&queue, m, &o, &err)) fail_msg("%s", err.message);
    return queue;
}

static pith_request ask(answer *a, const pith_str *of, size_t count) {
    pith_request r = PITH_REQUEST_INIT;
    r.texts = of;
    r.count = count;
    r.done = take_answer;
    r.user = a;
    return r;
}

static pith_queue_statistics report(const pith_queue *queue) {
    pith_queue_statistics n = PITH_QUEUE_STATISTICS_INIT;
    assert_int_equal(pith_queue_report(&n, queue, NULL), PITH_OK);
    return n;
}

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

/* ---- ends ---- */

/* A queue of one thread, which is held by the callback of a request, so that all else waits. */
typedef struct held {
    pith_queue *queue;
    answer gate;
} held;

static void hold(held *h) {
    h->gate = (answer)ANSWER_INIT;
    h->gate.holds = true;
    const pith_request r = ask(&h->gate, texts, 0);
    h->queue = make(model, 1, 0);
    assert_int_equal(pith_queue_submit(NULL, h->queue, &r, NULL), PITH_OK);
    while (report(h->queue).held_requests) sched_yield();
}

static void let_go(held *h) {
    pthread_mutex_lock(&h->gate.lock);
    h->gate.holds = false;
    pthread_cond_broadcast(&h->gate.here);
    pthread_mutex_unlock(&h->gate.lock);
    wait_for(&h->gate, 1);
    assert_int_equal(h->gate.status, PITH_OK);
    assert_int_equal(h->gate.count, 0);
}

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

/* ---- who comes next ---- */

typedef struct chunks {
    answer a;
    pith_queue *queue;
    uint64_t at; /* chunks that had run when the answer came */
} chunks;

static void count_chunks(void *user, const pith_response *r) {
    chunks *c = user;
    c->at = report(c->queue).chunks;
    take_answer(&c->a, r);
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

static void test_full(void **state) {
    (void)state;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    answer gate = ANSWER_INIT, a = ANSWER_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue;
    o.call.threads = 1;
    o.max_requests = 2;
    o.max_bytes = 20000;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    gate.holds = true;
    pith_request r = ask(&gate, texts, 0);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    while (report(queue).held_requests) sched_yield();
    r = ask(&a, texts, 1);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_BUSY);
    assert_non_null(strstr(err.message, "bytes of requests, and may hold 20000"));
    assert_int_equal(report(queue).refused, 1);
    pthread_mutex_lock(&gate.lock);
    gate.holds = false;
    pthread_cond_broadcast(&gate.here);
    pthread_mutex_unlock(&gate.lock);
    wait_for(&a, 1);
    assert_int_equal(a.status, PITH_OK);
    pith_queue_destroy(queue);
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

/* The n-th allocation fails, of the queue's allocator and of the model's: a request is refused, or
 * fails, or has the right bits; nothing leaks. */
static pith_status work(counter *c, bool models, pith_error *err) {
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
        assert_int_equal(pith_model_open(&m, DIR, &open, NULL), PITH_OK);
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
    for (int models = 0; models < 2; models++) {
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
        cmocka_unit_test(test_cancel_and_deadline),
        cmocka_unit_test(test_destroy),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_short_behind_bulk),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
