/* queue_test.h - requests through a queue, and what came of them. QUEUE_DIR: the directory of the
 * program's model. */
#ifndef PITH_TESTS_UNIT_SUPPORT_QUEUE_TEST_H
#define PITH_TESTS_UNIT_SUPPORT_QUEUE_TEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/encode_test.h"
#include "support/failing_alloc.h"

static pith_model *model; /* BGE-M3: dense, sparse, vectors of tokens */
static pith_str texts[ENCODE_TEXTS];
static pith_encoded *alone[ENCODE_TEXTS]; /* of each text by itself, of all kinds */

static inline int open_all(void **state) {
    (void)state;
    encode_texts(texts);
    encode_directory(QUEUE_DIR, "families/bge-m3-script17", ROBERTA_WORDS);
    model = encode_open(QUEUE_DIR);
    for (size_t i = 0; i < ENCODE_TEXTS; i++)
        alone[i] = encode_all(model, &texts[i], 1, 15, PITH_ROLE_DOCUMENT, NULL);
    return 0;
}

static inline int close_all(void **state) {
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
static inline bool same_rows(const pith_token_rows *a, size_t i, const pith_token_rows *b) {
    const int64_t at = a->offsets[i], n = a->offsets[i + 1] - at;
    return a->dim == b->dim && n == b->offsets[1] && !memcmp(a->ids + at, b->ids, (size_t)n * 4) &&
           !memcmp(a->vectors + (size_t)at * a->dim, b->vectors, (size_t)n * a->dim * 4);
}

static inline bool same_text(const pith_encoded *a, size_t i, const pith_encoded *b,
                             uint32_t what) {
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

static inline void take_answer(void *user, const pith_response *r) {
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

static inline void wait_for(answer *a, int calls) {
    pthread_mutex_lock(&a->lock);
    while (a->calls < calls) pthread_cond_wait(&a->here, &a->lock);
    assert_int_equal(a->calls, calls);
    pthread_mutex_unlock(&a->lock);
}

static inline pith_queue *make(const pith_model *m, int32_t threads, int32_t batch_tokens) {
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue = NULL;
    o.call.threads = threads;
    o.batch_tokens = batch_tokens;
    if (pith_queue_create(&queue, m, &o, &err)) fail_msg("%s", err.message);
    return queue;
}

static inline pith_request ask(answer *a, const pith_str *of, size_t count) {
    pith_request r = PITH_REQUEST_INIT;
    r.texts = of;
    r.count = count;
    r.done = take_answer;
    r.user = a;
    return r;
}

static inline pith_queue_statistics report(const pith_queue *queue) {
    pith_queue_statistics n = PITH_QUEUE_STATISTICS_INIT;
    assert_int_equal(pith_queue_report(&n, queue, NULL), PITH_OK);
    return n;
}

/* ---- queues that are held ---- */

/* A queue of one thread, which is held by the callback of a request, so that all else waits. */
typedef struct held {
    pith_queue *queue;
    answer gate;
} held;

static inline void hold(held *h) {
    h->gate = (answer)ANSWER_INIT;
    h->gate.holds = true;
    const pith_request r = ask(&h->gate, texts, 0);
    h->queue = make(model, 1, 0);
    assert_int_equal(pith_queue_submit(NULL, h->queue, &r, NULL), PITH_OK);
    while (report(h->queue).held_requests) sched_yield();
}

static inline void open_gate(answer *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->holds = false;
    pthread_cond_broadcast(&gate->here);
    pthread_mutex_unlock(&gate->lock);
}

static inline void let_go(held *h) {
    open_gate(&h->gate);
    wait_for(&h->gate, 1);
    assert_int_equal(h->gate.status, PITH_OK);
    assert_int_equal(h->gate.count, 0);
}

typedef struct chunks {
    answer a;
    pith_queue *queue;
    uint64_t at; /* chunks that had run when the answer came */
} chunks;

static inline void count_chunks(void *user, const pith_response *r) {
    chunks *c = user;
    c->at = report(c->queue).chunks;
    take_answer(&c->a, r);
}

/* A thread that submits. */
typedef struct submitter {
    pthread_t thread;
    pith_queue *queue;
    answer *answers; /* what comes of its requests */
    int number;
    pith_status status;
} submitter;

#endif
