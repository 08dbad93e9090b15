/* requests.c - a request of a queue: all that the caller gave is copied, and all that can be checked
 * is, so that a request that was accepted fails for the sake of its texts only. */
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/os/clock.h"
#include "models/queue/queue.h"
#include "models/texts/encode_texts.h"
#include "models/texts/score_pairs.h"

/* What a request takes besides its texts and results, and what a text takes, about. */
#define REQUEST_BYTES ((size_t)16 << 10)
#define TEXT_BYTES ((size_t)100)
/* A text is taken to have a token for so many bytes until it is tokenised. */
#define BYTES_PER_TOKEN 4

static pith_status request_check(const pith_request *q, pith_error *err) {
    if (!q->done) return pith__fail(err, PITH_ERR_ARGUMENT, "the request has no function done");
    if (q->task < PITH_REQUEST_ENCODE || q->task > PITH_REQUEST_RERANK)
        return pith__fail(err, PITH_ERR_ARGUMENT, "task is %d, which is not a PITH_REQUEST_* value",
                          q->task);
    if (q->priority < -PITH_SCHEDULE_PRIORITY_MAX || q->priority > PITH_SCHEDULE_PRIORITY_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "priority %d is not between %d and %d",
                          q->priority, -PITH_SCHEDULE_PRIORITY_MAX, PITH_SCHEDULE_PRIORITY_MAX);
    if (q->texts && q->tokens)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the request has both texts and tokens");
    if (q->count && !q->texts && !q->tokens)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the request has neither texts nor tokens");
    if (q->count > UINT32_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the request has more than %u texts", UINT32_MAX);
    return PITH_OK;
}

/* The bytes of the request as the limit counts them, without its rows. */
static pith_status request_bytes(size_t *bytes, const pith_request *q, pith_error *err) {
    bool over = pith__mul_overflows(q->count, TEXT_BYTES, bytes) ||
                pith__add_overflows(*bytes, REQUEST_BYTES, bytes) ||
                pith__add_overflows(*bytes, q->query.size, bytes);
    for (size_t i = 0; i < q->count && !over && q->texts; i++)
        over = pith__add_overflows(*bytes, q->texts[i].size, bytes);
    return over ? pith__fail_memory(err, SIZE_MAX) : PITH_OK;
}

static pith_status request_copy_str(pith_str *copy, pith__arena *arena, pith_str s,
                                    pith_error *err) {
    *copy = pith__arena_str(arena, s);
    return copy->data ? PITH_OK : pith__fail_memory(err, s.size);
}

static pith_status request_copy_name(const char **name, pith__arena *arena, pith_error *err) {
    pith_str copy;
    if (!*name) return PITH_OK;
    PITH_TRY(request_copy_str(&copy, arena, pith__str_of(*name), err));
    *name = copy.data;
    return PITH_OK;
}

/* The texts, one behind the other in one block. */
static pith_status request_copy_texts(const pith_str **copies, pith__arena *arena,
                                      const pith_request *q, size_t bytes, pith_error *err) {
    pith_str *texts = pith__arena_array(arena, q->count, sizeof *texts);
    char *place = pith__arena_alloc(arena, bytes);
    if (!texts || !place) return pith__fail_memory(err, bytes);
    for (size_t i = 0; i < q->count; i++) {
        texts[i] = (pith_str){ place, q->texts[i].size };
        if (texts[i].size) memcpy(place, q->texts[i].data, texts[i].size);
        place += texts[i].size;
    }
    *copies = texts;
    return PITH_OK;
}

/* Of the options what belongs to one call alone is left out. */
static pith_status request_encode_task(pith__queue_request *r, const pith_model *m,
                                       const pith_str *texts, const pith_request *q,
                                       pith_error *err) {
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options e = PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, q->encode, err);
    PITH_TAKE_OPTIONS(e, o.embed, err);
    o.call = (pith_call){ .size = sizeof o };
    e.call = (pith_call){ .size = sizeof e };
    e.stats = NULL, e.batching = NULL, e.batch_tokens = 0;
    PITH_TRY(request_copy_name(&e.prompt_name, &r->arena, err));
    o.embed = &e;
    return pith__model_encode_task(&r->task, m, texts, q->count, &o, err);
}

static pith_status request_score_task(pith__queue_request *r, const pith_model *m,
                                      const pith_str *texts, const pith_request *q,
                                      pith_error *err) {
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    pith_str query;
    PITH_TAKE_OPTIONS(o, q->score, err);
    o.call = (pith_call){ .size = sizeof o };
    o.stats = NULL, o.batching = NULL, o.batch_tokens = 0;
    PITH_TRY(request_copy_name(&o.instruction, &r->arena, err));
    PITH_TRY(request_copy_str(&query, &r->arena, q->query, err));
    return pith__model_score_task(&r->task, m, q->task == PITH_REQUEST_RERANK ? &query : NULL,
                                  texts, q->count, &o, err);
}

/* What each text takes of a chunk, in tokens, as far as that can be told before it is tokenised. */
static pith_status request_costs(pith__queue_request *r, const pith_request *q, pith_error *err) {
    const pith__encode_job *job = &r->task->job;
    const int32_t limit = pith__encoder_max_length(r->task->encoder, job->max_length);
    uint32_t *costs = pith__arena_alloc(&r->arena, q->count * sizeof *costs);
    if (!costs) return pith__fail_memory(err, q->count * sizeof *costs);
    for (size_t i = 0; i < q->count; i++) {
        size_t cost = 2 + q->texts[i].size / BYTES_PER_TOKEN;
        if (job->pairs) cost += 1 + q->query.size / BYTES_PER_TOKEN;
        if (limit && cost > (size_t)limit) cost = (size_t)limit;
        costs[i] = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    }
    r->place.costs = costs;
    return PITH_OK;
}

static pith_status request_fill(pith__queue_request *r, const pith_queue *queue,
                                const pith_request *q, size_t bytes, pith_error *err) {
    const pith_str *texts;
    size_t rows;
    PITH_TRY(request_copy_texts(&texts, &r->arena, q, bytes, err));
    PITH_TRY((r->encodes ? request_encode_task : request_score_task)(r, queue->model, texts, q,
                                                                     err));
    pith__text_task *task = r->task;
    PITH_TRY(pith__account_explain(
        &queue->model->account,
        pith__shared_open(&r->job, task->encoder, &task->job, task->uses, task->use_count, err),
        err));
    PITH_TRY(request_costs(r, q, err));
    r->results = pith__arena_array(&r->arena, q->count, sizeof *r->results);
    if (!r->results) return pith__fail_memory(err, q->count * sizeof *r->results);
    if (task->rows && (pith__mul_overflows(q->count, task->width * sizeof(float), &rows) ||
                       pith__add_overflows(bytes, rows, &bytes)))
        return pith__fail_memory(err, SIZE_MAX);
    r->place.bytes = bytes;
    r->place.key = q->key;
    r->place.priority = q->priority;
    r->place.deadline = q->deadline_ns;
    r->place.group = task->encoder;
    r->place.count = q->count;
    r->place.came = pith__clock_ns();
    return PITH_OK;
}

pith_status pith__queue_request_make(pith__queue_request **made, const pith_queue *queue,
                                     const pith_request *request, pith_error *err) {
    pith_request q = PITH_REQUEST_INIT;
    size_t bytes;
    PITH_TAKE_OPTIONS(q, request, err);
    PITH_TRY(request_check(&q, err));
    if (q.tokens)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "a queue does not take tokens yet");
    PITH_TRY(request_bytes(&bytes, &q, err));
    pith__queue_request *r = pith__memory_alloc(&queue->allocator, sizeof *r, 16);
    if (!r) return pith__fail_memory(err, sizeof *r);
    *r = (pith__queue_request){ .done = q.done,
                                .user = q.user,
                                .encodes = q.task == PITH_REQUEST_ENCODE,
                                .first_failed = SIZE_MAX };
    pith__arena_init(&r->arena, &queue->allocator);
    pith_status status = request_fill(r, queue, &q, bytes, err);
    if (status) {
        pith__queue_request_free(queue, r);
        return status;
    }
    *made = r;
    return PITH_OK;
}

void pith__queue_request_free(const pith_queue *queue, pith__queue_request *r) {
    if (!r) return;
    pith__shared_close(r->job);
    if (r->task) r->task->drop(r->task);
    pith__memory_free(&queue->allocator, r->fault);
    pith__arena_free(&r->arena);
    pith__memory_free(&queue->allocator, r);
}

/* Rows of texts that failed are no numbers. */
static void request_clear_failed(const pith__queue_request *r) {
    const pith__text_task *task = r->task;
    const float nan = __builtin_nanf("");
    for (size_t i = 0; i < r->place.count && task->rows; i++)
        for (size_t k = 0; k < task->width && r->results[i].status; k++)
            task->rows[i * task->width + k] = nan;
}

void pith__queue_request_answer(pith__queue_request *r) {
    pith_error fault = PITH_ERROR_INIT;
    const uint64_t now = pith__clock_ns(), began = r->began ? r->began : now;
    pith_response response = { .size = sizeof response,
                               .ticket = r->place.ticket,
                               .count = r->place.count,
                               .waited_ns = began - r->place.came,
                               .ran_ns = now - began,
                               .message = "" };
    if (r->failed) request_clear_failed(r);
    if (!r->status && r->task->gather)
        r->status = r->task->gather(&response.encoded, r->task, &fault);
    switch (r->status) {
    case PITH_OK:
        response.results = r->results;
        response.failed = r->failed;
        if (!r->encodes) response.scores = r->task->rows, response.labels = r->task->width;
        if (r->fault) response.message = r->fault->message;
        break;
    case PITH_ERR_CANCELLED: response.message = "the request was cancelled"; break;
    case PITH_ERR_DEADLINE:
        response.message = "the deadline passed before all texts of the request had begun";
        break;
    default: response.message = fault.message;
    }
    response.status = r->status;
    r->done(r->user, &response);
}
