/* queue.c - what callers do with a queue: see queue.h. */
#include "models/queue/queue.h"

#include <signal.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/os/clock.h"
#include "base/os/threads.h"

#define REQUESTS_MAX 65536
#define BYTES_MAX ((size_t)256 << 20)
#define KEY_PERCENT 50
/* What the library's own threads have. */
#define STACK_BYTES ((size_t)4 << 20)
/* How often a wait that may end early looks whether it does. */
#define LOOK_NS 5000000

/* ---- making and ending ---- */

static pith_status queue_options(pith_queue_options *o, const pith_model *model,
                                 const pith_queue_options *given, pith_error *err) {
    *o = (pith_queue_options)PITH_QUEUE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (o->batch_tokens < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT, "batch_tokens must not be negative");
    if (o->key_percent < 0 || o->key_percent > 100)
        return pith__fail(err, PITH_ERR_ARGUMENT, "key_percent %d is not between 0 and 100",
                          o->key_percent);
    PITH_TRY(pith__threads_check(o->call.threads, err));
    PITH_TRY(pith__threads_check(2, err)); /* those of the queue, and the caller's */
    if (!model->text.encoder)
        return pith__fail(err, model->no_text.code ? model->no_text.code : PITH_ERR_UNSUPPORTED,
                          "this model cannot read text: %s", model->no_text.message);
    if (!o->max_requests) o->max_requests = REQUESTS_MAX;
    if (!o->max_bytes) o->max_bytes = BYTES_MAX;
    if (!o->key_percent) o->key_percent = KEY_PERCENT;
    return PITH_OK;
}

static bool queue_start(pith__queue_worker *w) {
    sigset_t all, old;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return false;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool made = !pthread_create(&w->thread, &attr, pith__queue_work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return made;
}

static pith_status queue_start_workers(pith_queue *q, int threads, pith_error *err) {
    q->workers = pith__memory_alloc(&q->allocator, (size_t)threads * sizeof *q->workers, 64);
    if (!q->workers) return pith__fail_memory(err, (size_t)threads * sizeof *q->workers);
    for (int i = 0; i < threads; i++, q->threads++) {
        pith__queue_worker *w = &q->workers[i];
        w->queue = q;
        w->answers = false;
        PITH_TRY(pith__shared_worker_create(&w->shared, q->model->options.call.allocator,
                                            pith__queue_note_fault,
                                            q->tight ? pith__queue_alone : NULL, q, err));
        q->live++; /* before the worker is there to count */
        if (queue_start(w)) continue;
        q->live--;
        pith__shared_worker_destroy(w->shared);
        return pith__fail(err, PITH_ERR_MEMORY, "thread %d of the queue cannot be made", i);
    }
    return PITH_OK;
}

pith_status pith__queue_create(pith_queue **queue, const pith_model *model,
                               const pith_queue_options *options, pith_error *err) {
    pith_queue_options o;
    PITH_TRY(queue_options(&o, model, options, err));
    const pith_allocator *allocator =
        o.call.allocator ? o.call.allocator : &pith__allocator_default;
    int threads = pith__threads_count(o.call.threads);
    if (threads > PITH_QUEUE_THREADS_MAX) threads = PITH_QUEUE_THREADS_MAX;
    pith_queue *q = pith__memory_alloc(allocator, sizeof *q, 64);
    if (!q) return pith__fail_memory(err, sizeof *q);
    memset(q, 0, sizeof *q);
    q->allocator = *allocator;
    q->model = model;
    pith__model_keep(model);
    q->tight = model->options.memory_limit > 0;
    q->batch_tokens = o.batch_tokens;
    q->tokens_per_cost = 1;
    pith__schedule_init(&q->schedule, &q->allocator, o.max_requests, o.max_bytes, o.key_percent);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->turn, NULL);
    pthread_cond_init(&q->quiet, &attr);
    pthread_condattr_destroy(&attr);
    pith_status status = queue_start_workers(q, threads, err);
    if (status) {
        pith__queue_destroy(q);
        return pith__account_explain(&model->account, status, err);
    }
    *queue = q;
    return PITH_OK;
}

/* Ends what waits. With the lock. */
static void queue_cancel_all(pith_queue *q) {
    for (pith__schedule_request *s = q->schedule.all; s; s = s->held_after) {
        if (!s->line) continue;
        pith__queue_request *r = (pith__queue_request *)s;
        r->status = PITH_ERR_CANCELLED;
        if (pith__schedule_stop(&q->schedule, s)) pith__queue_put_done(q, r);
    }
}

void pith__queue_bury(pith_queue *q, pith__queue_worker *last) {
    for (int i = 0; i < q->threads; i++) {
        pith__queue_worker *w = &q->workers[i];
        if (w == last)
            pthread_detach(w->thread);
        else
            pthread_join(w->thread, NULL);
        pith__shared_worker_destroy(w->shared);
    }
    pthread_cond_destroy(&q->turn);
    pthread_cond_destroy(&q->quiet);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    const pith_allocator allocator = q->allocator;
    const pith_model *model = q->model;
    pith__memory_free(&allocator, q->workers);
    pith__memory_free(&allocator, q);
    pith__model_release(model);
}

/* Whether the calling thread is in a callback of the queue. With the lock. */
static bool queue_is_answering(const pith_queue *q) {
    const pthread_t self = pthread_self();
    for (int i = 0; i < q->threads; i++)
        if (q->workers[i].answers && pthread_equal(q->workers[i].thread, self)) return true;
    return false;
}

/* A callback cannot wait for the end of its own thread, so the last worker frees the queue then. */
void pith__queue_destroy(pith_queue *q) {
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    const bool own = queue_is_answering(q);
    q->draining = q->ending = true;
    q->orphan = own;
    queue_cancel_all(q);
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    if (!own) pith__queue_bury(q, NULL);
}

/* ---- requests ---- */

/* Whether a request may come at all. With the lock. */
static pith_status queue_check(pith_queue *q, uint64_t key, size_t bytes, pith_error *err) {
    bool of_key = false;
    pith_status status = q->draining ? pith__fail(err, PITH_ERR_BUSY, "the queue is being drained")
                                     : pith__schedule_check(&q->schedule, key, bytes, &of_key, err);
    q->numbers.refused += status == PITH_ERR_BUSY;
    q->numbers.refused_key += of_key;
    q->numbers.too_large += status == PITH_ERR_ARGUMENT;
    return status;
}

/* With the lock. */
static pith_status queue_add(uint64_t *ticket, pith_queue *q, pith__queue_request *r,
                             pith_error *err) {
    PITH_TRY(queue_check(q, r->place.key, r->place.bytes, err));
    PITH_TRY(pith__schedule_add(&q->schedule, &r->place, err));
    if (ticket) *ticket = r->place.ticket;
    if (!r->place.count)
        pith__queue_put_done(q, r);
    else if (q->idle)
        pthread_cond_signal(&q->work);
    return PITH_OK;
}

/* A full queue refuses before anything is copied. */
pith_status pith__queue_submit(uint64_t *ticket, pith_queue *q, const pith_request *request,
                               pith_error *err) {
    pith__queue_request *r = NULL;
    pith_request asked = PITH_REQUEST_INIT;
    size_t bytes;
    PITH_TAKE_OPTIONS(asked, request, err);
    PITH_TRY(pith__queue_request_bytes(&bytes, &asked, err));
    pthread_mutex_lock(&q->lock);
    pith_status status = queue_check(q, asked.key, bytes, err);
    pthread_mutex_unlock(&q->lock);
    if (status) return status;
    PITH_TRY(pith__queue_request_make(&r, q, &asked, bytes, err));
    pthread_mutex_lock(&q->lock);
    status = queue_add(ticket, q, r, err);
    pthread_mutex_unlock(&q->lock);
    if (status) pith__queue_request_free(q, r);
    return status;
}

pith_status pith__queue_cancel(pith_queue *q, uint64_t ticket, pith_error *err) {
    pthread_mutex_lock(&q->lock);
    pith__queue_request *r = (pith__queue_request *)pith__schedule_find(&q->schedule, ticket);
    const bool found = r && !r->status && (r->place.line || r->place.out);
    if (found) {
        r->status = PITH_ERR_CANCELLED;
        if (pith__schedule_stop(&q->schedule, &r->place)) pith__queue_put_done(q, r);
    }
    pthread_mutex_unlock(&q->lock);
    if (found) return PITH_OK;
    return pith__fail(err, PITH_ERR_NOT_FOUND, "no request %llu waits or runs",
                      (unsigned long long)ticket);
}

/* ---- the queue as a whole ---- */

static void queue_wait(pith_queue *q, const pith__stop *stop) {
    if (!stop) {
        pthread_cond_wait(&q->quiet, &q->lock);
        return;
    }
    const uint64_t until = pith__clock_ns() + LOOK_NS;
    const struct timespec at = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
    pthread_cond_timedwait(&q->quiet, &q->lock, &at);
}

pith_status pith__queue_drain(pith_queue *q, const pith_call *call, pith_error *err) {
    pith_call mine = PITH_CALL_INIT;
    pith__stop own;
    pith_status status = PITH_OK;
    PITH_TAKE_OPTIONS(mine, call, err);
    pith__stop *stop = pith__stop_begin(&own, &mine);
    pthread_mutex_lock(&q->lock);
    if (queue_is_answering(q)) {
        pthread_mutex_unlock(&q->lock);
        return pith__fail(
            err, PITH_ERR_BUSY,
            "a callback of the queue cannot wait for its own end; drain it on another "
            "thread");
    }
    q->draining = true;
    while ((q->schedule.held || q->answering) && !status) {
        queue_wait(q, stop);
        pthread_mutex_unlock(&q->lock);
        status = pith__stop_check(stop, err);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}

pith_status pith__queue_report(pith_queue_statistics *statistics, const pith_queue *queue,
                               pith_error *err) {
    pith_queue *q = (pith_queue *)queue;
    const size_t theirs = statistics->size;
    if (theirs < sizeof theirs)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "the statistics have no size; initialise them with PITH_QUEUE_STATISTICS_INIT");
    pthread_mutex_lock(&q->lock);
    pith_queue_statistics n = q->numbers;
    const pith__schedule *s = &q->schedule;
    n.waiting_requests = s->waiting;
    n.waiting_texts = s->waiting_texts;
    n.held_requests = s->held;
    n.held_bytes = s->bytes;
    n.running_texts = s->out;
    n.oldest_ns = s->oldest ? pith__clock_ns() - s->oldest->came : 0;
    n.tokens_per_second = q->rate_time ? (double)q->rate_tokens / (double)q->rate_time * 1e9 : 0;
    pthread_mutex_unlock(&q->lock);
    n.size = theirs;
    memcpy(statistics, &n, theirs < sizeof n ? theirs : sizeof n);
    return PITH_OK;
}
