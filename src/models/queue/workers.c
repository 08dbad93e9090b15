/* workers.c - the threads of a queue: they take chunks of texts, tokenise and run them, and tell
 * callers what came of their requests. */
#include <string.h>

#include "base/os/clock.h"
#include "models/queue/queue.h"

/* A chunk of fewer tokens is not shared out among idle workers: each reads all weights. */
#define SHARE_TOKENS_MIN 128
/* What a text takes is a guess until it is tokenised. So a chunk is filled in steps, each of which
 * takes this part of what is left, and it may have this much more in the end than it should: to run
 * the rest by itself would cost more. */
#define FILLS_MAX 3
#define FILL_PART(tokens) ((tokens) - (tokens) / 8)
#define CHUNK_MAX(tokens) ((tokens) + (tokens) / 8)
/* tokens_per_second is that of about so long. */
#define RATE_NS UINT64_C(4000000000)
/* How long memory is taken to be short after it was found to be: until it is looked at again. */
#define PRESSED_NS UINT64_C(1000000000)
/* The part that the last chunk has in what is known of tokens per cost. */
#define LEARNS 0.125

void pith__queue_put_done(pith_queue *q, pith__queue_request *r) {
    r->next = NULL;
    if (q->last_done)
        q->last_done->next = r;
    else
        q->first_done = r;
    q->last_done = r;
    if (q->idle) pthread_cond_signal(&q->work);
}

void pith__queue_note_fault(void *queue, const pith__shared_text *text, const pith_error *fault) {
    pith_queue *q = queue;
    pith__queue_request *r = text->owner;
    pthread_mutex_lock(&q->lock);
    r->failed++;
    q->numbers.failed_texts++;
    if (text->text < r->first_failed) {
        r->first_failed = text->text;
        if (!r->fault) r->fault = pith__memory_alloc(&q->allocator, sizeof *r->fault, 16);
        if (r->fault) {
            *r->fault = *fault;
            pith__account_explain(&q->model->account, fault->code, r->fault);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

/* Busy workers finish their chunks, none begins one, and those that wait likewise count as none
 * that runs. A worker that has run gives back what it keeps first (worker_take_chunk). */
void pith__queue_alone(void *queue, bool begin) {
    pith_queue *q = queue;
    pthread_mutex_lock(&q->lock);
    if (begin) {
        q->lonely++;
        pthread_cond_broadcast(&q->turn);
        while (q->alone || q->busy > q->lonely) pthread_cond_wait(&q->turn, &q->lock);
        q->lonely--;
        q->alone = true;
    } else {
        q->alone = false;
        pthread_cond_broadcast(&q->turn);
        if (!q->lonely && q->idle) pthread_cond_broadcast(&q->work);
    }
    pthread_mutex_unlock(&q->lock);
}

/* ---- with the lock ---- */

/* Requests whose deadline has passed give up what has not begun. */
static void worker_expire(pith_queue *q, uint64_t now) {
    for (pith__schedule_request *s; (s = pith__schedule_expired(&q->schedule, now));) {
        pith__queue_request *r = (pith__queue_request *)s;
        r->status = PITH_ERR_DEADLINE;
        if (pith__schedule_stop(&q->schedule, s)) pith__queue_put_done(q, r);
    }
}

/* Takes up to so many tokens behind the `have` texts that the worker has. Returns how many texts.
 * */
static size_t worker_take(pith__queue_worker *w, size_t have, int64_t tokens, const void **group,
                          uint64_t now) {
    pith_queue *q = w->queue;
    const double cost = (double)FILL_PART(tokens) / q->tokens_per_cost;
    const size_t n =
        pith__schedule_take(&q->schedule, w->taken + have, PITH_QUEUE_CHUNK_TEXTS - have,
                            cost < 1 ? 1 : (uint64_t)cost, group);
    for (size_t i = have; i < have + n; i++) {
        pith__queue_request *r = (pith__queue_request *)w->taken[i].request;
        if (!r->began) r->began = now;
        w->texts[i] = (pith__shared_text){ .job = r->job, .text = w->taken[i].text, .owner = r };
    }
    return n;
}

static int64_t worker_budget(const pith_queue *q, uint64_t now) {
    const bool pressed = now < q->pressed_till;
    const int64_t own = q->batch_tokens,
                  budget = pith__shared_budget(q->model->text.encoder, pressed);
    return own && !(pressed && budget < own) ? own : budget;
}

/* What waits is shared out among the workers that have nothing to do, if there is enough of it. */
static int64_t worker_share(const pith_queue *q, int64_t budget) {
    const double waiting = (double)q->schedule.waiting_cost * q->tokens_per_cost;
    double share = waiting / (q->idle + 1);
    if (share < SHARE_TOKENS_MIN) share = SHARE_TOKENS_MIN;
    return share < (double)budget ? (int64_t)share : budget;
}

static void worker_count_rate(pith_queue *q, uint64_t now, uint64_t tokens) {
    q->rate_tokens += tokens;
    q->rate_time += now - q->rate_from;
    q->rate_from = now;
    if (q->rate_time < RATE_NS) return;
    q->rate_tokens /= 2;
    q->rate_time /= 2;
}

/* Gives the texts of a chunk back. */
static void worker_return(pith__queue_worker *w, size_t n, const pith__shared_report *report) {
    pith_queue *q = w->queue;
    uint64_t tokens = 0;
    const size_t runs = report->runs;
    q->chunk++;
    for (size_t i = 0; i < n; i++) {
        pith__queue_request *r = (pith__queue_request *)w->taken[i].request;
        tokens += w->texts[i].tokens;
        if (r->chunk != q->chunk) q->numbers.chunk_requests += runs > 0;
        r->chunk = q->chunk;
        if (pith__schedule_return(&q->schedule, &r->place, 1)) pith__queue_put_done(q, r);
    }
    q->numbers.texts += n;
    q->numbers.tokens += tokens;
    q->numbers.chunks += runs;
    q->numbers.smaller_chunks += report->smaller;
    worker_count_rate(q, pith__clock_ns(), tokens);
}

/* ---- without the lock ---- */

static int64_t worker_tokenise(pith__queue_worker *w, size_t first, size_t count) {
    int64_t tokens = 0;
    for (size_t i = first; i < first + count; i++) {
        pith__shared_tokenise(w->shared, &w->texts[i]);
        tokens += w->texts[i].tokens;
    }
    return tokens;
}

static void worker_learn(pith__queue_worker *w, size_t first, size_t count, int64_t tokens) {
    double cost = 0;
    for (size_t i = first; i < first + count; i++)
        cost += w->taken[i].request->costs[w->taken[i].text];
    double *known = &w->queue->tokens_per_cost;
    *known += ((double)tokens / cost - *known) * LEARNS;
    if (*known < 0.05) *known = 0.05;
    if (*known > 20) *known = 20;
}

/* Fills the chunk, of n texts already, and runs it. Begins and ends with the lock. */
static void worker_run(pith__queue_worker *w, size_t n, int64_t share, const void *group) {
    pith_queue *q = w->queue;
    pith__shared_report report;
    int64_t tokens = 0;
    size_t count = 0;
    for (int fill = 1;; fill++) {
        pthread_mutex_unlock(&q->lock);
        const int64_t more = worker_tokenise(w, count, n);
        pthread_mutex_lock(&q->lock);
        worker_learn(w, count, n, more);
        tokens += more;
        count += n;
        const int64_t left = share - tokens;
        if (fill == FILLS_MAX || left < share / 8 || !pith__shared_packs(group)) break;
        n = worker_take(w, count, left, &group, pith__clock_ns());
        if (!n) break;
    }
    const int threads = q->schedule.waiting ? 1 : q->threads - (q->busy - 1);
    const int64_t budget = CHUNK_MAX(worker_budget(q, pith__clock_ns()));
    pthread_mutex_unlock(&q->lock);
    pith__shared_run(&report, w->shared, w->texts, count, budget, threads);
    for (size_t i = 0; i < count; i++) {
        const pith__shared_text *t = &w->texts[i];
        ((pith__queue_request *)t->owner)->results[t->text] =
            (pith_text_result){ t->status, t->status ? 0 : t->tokens,
                                t->status ? 0 : t->truncated };
    }
    pith__shared_forget(w->shared);
    if (q->tight) pith__shared_rest(w->shared);
    pthread_mutex_lock(&q->lock);
    worker_return(w, count, &report);
}

/* Looks whether the system is short of memory, without the lock. */
static void worker_look(pith_queue *q) {
    pthread_mutex_unlock(&q->lock);
    const bool pressed = pith__shared_pressed(q->model->text.encoder);
    pthread_mutex_lock(&q->lock);
    if (pressed) q->pressed_till = pith__clock_ns() + PRESSED_NS;
}

/* Takes a chunk, if any text waits. With the lock. */
static bool worker_take_chunk(pith__queue_worker *w) {
    pith_queue *q = w->queue;
    const void *group = NULL;
    if (q->schedule.waiting) worker_look(q);
    const uint64_t now = pith__clock_ns();
    worker_expire(q, now);
    if (q->first_done || !q->schedule.waiting || q->lonely || q->alone) return q->first_done;
    const int64_t share = worker_share(q, worker_budget(q, now));
    const size_t n = worker_take(w, 0, share, &group, now);
    if (!q->busy++) q->rate_from = now;
    if (q->schedule.waiting && q->idle) pthread_cond_signal(&q->work);
    worker_run(w, n, share, group);
    q->busy--;
    if (q->lonely) pthread_cond_broadcast(&q->turn);
    return true;
}

/* Tells the caller of the first request that is done. With the lock, which is given back
 * meanwhile. */
static bool worker_answer(pith__queue_worker *w, pith__fpmode host) {
    pith_queue *q = w->queue;
    pith__queue_request *r = q->first_done;
    if (!r) return false;
    q->first_done = r->next;
    if (!q->first_done) q->last_done = NULL;
    pith__schedule_leave(&q->schedule, &r->place);
    q->answering++;
    w->answers = true;
    if (q->first_done && q->idle) pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pith__fpmode_leave(host);
    pith__queue_request_answer(r);
    pith__fpmode_enter();
    const pith_status status = r->status;
    pith__queue_request_free(q, r);
    pthread_mutex_lock(&q->lock);
    w->answers = false;
    q->numbers.requests++;
    q->numbers.cancelled += status == PITH_ERR_CANCELLED;
    q->numbers.expired += status == PITH_ERR_DEADLINE;
    q->numbers.failed += status && !pith__status_stops(status);
    if (!--q->answering && !q->schedule.held) pthread_cond_broadcast(&q->quiet);
    return true;
}

void *pith__queue_work(void *worker) {
    pith__queue_worker *w = worker;
    pith_queue *q = w->queue;
    const pith__fpmode host = pith__fpmode_enter();
    bool rests = true;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        if (worker_answer(w, host)) continue;
        if (worker_take_chunk(w)) {
            rests = false;
            continue;
        }
        if (q->ending) break;
        if (!rests) { /* the lock is given back, so look again before waiting */
            pthread_mutex_unlock(&q->lock);
            pith__shared_rest(w->shared);
            pthread_mutex_lock(&q->lock);
            rests = true;
            continue;
        }
        q->idle++;
        pthread_cond_wait(&q->work, &q->lock);
        q->idle--;
    }
    const bool last = !--q->live && q->orphan;
    pthread_mutex_unlock(&q->lock);
    if (last) pith__queue_bury(q, w);
    pith__fpmode_leave(host);
    return NULL;
}
