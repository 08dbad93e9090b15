/* test_queue.c - requests of many callers through a queue: results have the bits of calls of their
 * own, a failure costs no other caller, limits hold, and what waits can be ended. */
#include <pthread.h>
#include <stdatomic.h>

#include "models/model.h"
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

static void open_gate(answer *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->holds = false;
    pthread_cond_broadcast(&gate->here);
    pthread_mutex_unlock(&gate->lock);
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
    o.key_percent = 100;
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
    open_gate(&gate);
    wait_for(&a, 1);
    assert_int_equal(a.status, PITH_OK);
    pith_queue_destroy(queue);
}

/* A key that floods the queue takes its share and no more: another one comes in, and is answered
 * with the first chunks. Nothing of what is refused is lost or left behind. */
static void test_flood(void **state) {
    (void)state;
    enum { REQUESTS = 64 };
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    answer gate = ANSWER_INIT, flood = ANSWER_INIT;
    chunks other = { .a = ANSWER_INIT };
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue;
    int taken = 0;
    o.call.threads = 1;
    o.max_requests = REQUESTS;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    gate.holds = true;
    pith_request r = ask(&gate, texts, 0);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    while (report(queue).held_requests) sched_yield();
    r = ask(&flood, texts, 1);
    r.key = 7;
    for (int i = 0; i < 2 * REQUESTS; i++) {
        const pith_status status = pith_queue_submit(NULL, queue, &r, &err);
        taken += status == PITH_OK;
        if (status) assert_int_equal(status, PITH_ERR_BUSY);
    }
    assert_int_equal(taken, REQUESTS / 2);
    assert_string_equal(err.message, "the key has its share of the queue: 32 of 64 requests");
    other.queue = queue;
    r = ask(&other.a, texts + 1, 1);
    r.key = 8;
    r.done = count_chunks;
    r.user = &other;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    pith_queue_statistics n = report(queue);
    assert_int_equal(n.refused, 2 * REQUESTS - taken);
    assert_int_equal(n.refused_key, n.refused);
    assert_int_equal(n.held_requests, taken + 1);
    open_gate(&gate);
    wait_for(&other.a, 1);
    assert_int_equal(other.a.status, PITH_OK);
    assert_in_range(other.at, 1, 2);
    assert_int_equal(pith_queue_drain(queue, NULL, NULL), PITH_OK);
    assert_int_equal(flood.calls, taken);
    n = report(queue);
    assert_int_equal(n.requests, taken + 2);
    assert_int_equal(n.held_bytes, 0);
    pith_queue_destroy(queue);
}

/* What takes more than a key may ever hold is told at once, whatever the queue holds. */
static void test_too_large(void **state) {
    (void)state;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_encode_options encode = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    answer a = ANSWER_INIT;
    pith_queue *queue;
    char long_text[30000];
    memset(long_text, 'w', sizeof long_text);
    const pith_str text = { long_text, sizeof long_text };
    o.call.threads = 1;
    o.max_bytes = 80000;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    pith_request r = ask(&a, &text, 1);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "one key may hold 50 % of 80000"));
    /* results count, too: vectors of tokens are larger than the texts */
    pith_str many[64];
    for (size_t i = 0; i < 64; i++) many[i] = texts[4];
    r = ask(&a, many, 64);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&a, 1);
    encode.what = 15;
    r.encode = &encode;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(report(queue).too_large, 2);
    assert_int_equal(report(queue).refused, 0);
    assert_int_equal(a.calls, 1);
    o.key_percent = 101;
    pith_queue *none = NULL;
    assert_int_equal(pith_queue_create(&none, model, &o, NULL), PITH_ERR_ARGUMENT);
    pith_queue_destroy(queue);
}

/* ---- a thousand callers ---- */

enum { THOUSAND = 1000, SUBMITTERS = 8 };

typedef struct submitter {
    pthread_t thread;
    pith_queue *queue;
    answer *answers; /* [THOUSAND / SUBMITTERS] */
    int number;
    pith_status status;
} submitter;

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
    assert_in_range(n.chunks, 1, THOUSAND / 16);
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
        c->submitted = pith_queue_submit(NULL, c->queue, &r, NULL);
        if (!c->submitted) return;
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
        counter c = { 0 };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
        chain end = { .a = ANSWER_INIT, .left = 3, .ends = true };
        static answer others[20];
        pith_model *m;
        open.call.allocator = o.call.allocator = &allocator;
        o.call.threads = threads;
        assert_int_equal(pith_model_open(&m, DIR, &open, NULL), PITH_OK);
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
        while (c.live) sched_yield();
    }
}

static void test_model_is_closed_first(void **state) {
    (void)state;
    static const size_t which[ENCODE_TEXTS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    pith_model *m = encode_open(DIR);
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

/* ---- the model's memory limit ---- */

/* The limit is set behind the opening, which may need more than the calls. */
static pith_model *open_tight(void) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_model *m = NULL;
    o.memory_limit = (size_t)1 << 40;
    assert_int_equal(pith_model_open(&m, DIR, &o, NULL), PITH_OK);
    return m;
}

static void set_limit(pith_model *m, size_t limit) {
    pith_model_trim(m);
    m->account.limit = limit;
}

enum { BULK_TEXTS = 400 };

/* The peak of a request of many texts in chunks of so many tokens. */
static size_t bulk_peak(pith_model *m, int32_t batch_tokens, pith_queue_statistics *n) {
    static pith_str many[BULK_TEXTS];
    answer a = ANSWER_INIT;
    size_t peak;
    pith_queue *queue = make(m, 1, batch_tokens);
    for (size_t i = 0; i < BULK_TEXTS; i++) many[i] = texts[4];
    atomic_store(&m->account.peak, 0);
    const pith_request r = ask(&a, many, BULK_TEXTS);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&a, 1);
    if (a.status || a.failed) fail_msg("%d, %zu: %s", a.status, a.failed, a.message);
    *n = report(queue);
    pith_queue_destroy(queue);
    pith_model_bytes(m, &peak);
    return peak;
}

/* A chunk that does not fit is run in smaller ones, and all texts have results. */
static void test_chunks_fit(void **state) {
    (void)state;
    pith_model *m = open_tight();
    pith_queue_statistics n;
    const size_t small = bulk_peak(m, 1, &n), large = bulk_peak(m, 1 << 20, &n);
    assert_int_equal(n.smaller_chunks, 0);
    assert_true(large > small);
    const size_t limit = small + (large - small) / 3;
    set_limit(m, limit);
    assert_true(bulk_peak(m, 1 << 20, &n) <= limit);
    assert_true(n.smaller_chunks > 0);
    pith_model_close(m);
}

enum { ONES = 40 };

/* One request for each of short texts and a long one. Returns how many have no result, and whether
 * the long one has; SIZE_MAX: some could not be submitted. */
static size_t run_ones(const pith_model *m, int32_t threads, bool *long_fits) {
    static answer answers[ONES];
    static const size_t which[] = { 1, 4 };
    pith_error err = PITH_ERROR_INIT;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_queue *queue = NULL;
    size_t failed = 0;
    int submitted = 0;
    o.call.threads = threads;
    o.batch_tokens = 1;
    if (pith_queue_create(&queue, m, &o, &err)) return SIZE_MAX;
    for (; submitted < ONES; submitted++) {
        const bool is_long = submitted == ONES / 2;
        answer *a = &answers[submitted];
        *a = (answer)ANSWER_INIT;
        a->what = PITH_ENCODE_DENSE;
        a->which = &which[is_long];
        const pith_request r = ask(a, &texts[which[is_long]], 1);
        if (pith_queue_submit(NULL, queue, &r, &err)) break;
    }
    pith_queue_drain(queue, NULL, NULL);
    for (int i = 0; i < submitted; i++) {
        const answer *a = &answers[i];
        assert_int_equal(a->calls, 1);
        if (strstr(a->message, "other bits")) fail_msg("%s", a->message);
        if (a->status) assert_int_equal(a->status, PITH_ERR_MEMORY);
        if (a->failed) {
            assert_int_equal(a->results[0].status, PITH_ERR_MEMORY);
            if (!strstr(a->message, "the memory limit is")) fail_msg("%s", a->message);
        }
        failed += a->status || a->failed;
        if (i == ONES / 2) *long_fits = !a->status && !a->failed;
    }
    pith_queue_destroy(queue);
    if (submitted < ONES) assert_int_equal(err.code, PITH_ERR_MEMORY);
    return submitted < ONES ? SIZE_MAX : failed;
}

/* From the least memory up: a text that does not fit fails alone, and where one thread has room for
 * each text, three have. */
static void test_what_never_fits_fails_alone(void **state) {
    (void)state;
    pith_model *m = open_tight();
    int only_long = 0;
    bool long_fits = false;
    size_t limit = pith_model_bytes(m, NULL), failed = SIZE_MAX;
    for (; failed; limit += 2048) {
        set_limit(m, limit);
        failed = run_ones(m, 1, &long_fits);
        if (failed == SIZE_MAX) continue;
        if (failed && failed < ONES) assert_false(long_fits);
        only_long += failed == 1;
    }
    assert_true(only_long > 0);
    for (int round = 0; round < 10; round++) {
        set_limit(m, limit + (64 << 10));
        assert_int_equal(run_ones(m, 3, &long_fits), 0);
    }
    pith_model_close(m);
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
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_thousand_callers),
        cmocka_unit_test(test_bad_ones_cost_nothing),
        cmocka_unit_test(test_drain_while_requests_come),
        cmocka_unit_test(test_destroy_while_requests_run),
        cmocka_unit_test(test_callbacks_submit),
        cmocka_unit_test(test_callback_destroys),
        cmocka_unit_test(test_model_is_closed_first),
        cmocka_unit_test(test_chunks_fit),
        cmocka_unit_test(test_what_never_fits_fails_alone),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
