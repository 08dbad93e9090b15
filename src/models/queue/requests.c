/* requests.c - a request of a queue: all that the caller gave is copied, and all that can be
 * checked is, so that a request that was accepted fails for the sake of its texts only. */
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

pith_status pith__queue_request_bytes(size_t *bytes, const pith_request *q, pith_error *err) {
    PITH_TRY(request_check(q, err));
    bool over = pith__mul_overflows(q->count, TEXT_BYTES, bytes) ||
                pith__add_overflows(*bytes, REQUEST_BYTES, bytes) ||
                pith__add_overflows(*bytes, q->query.size, bytes);
    for (size_t i = 0; i < q->count && !over; i++) {
        size_t size;
        over = q->texts ? pith__add_overflows(*bytes, q->texts[i].size, bytes)
                        : pith__mul_overflows(q->tokens[i].count, 2 * sizeof(int32_t), &size) ||
                              pith__add_overflows(*bytes, size, bytes);
    }
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

static pith_status request_copy_ids(const int32_t **ids, pith__arena *arena, size_t count,
                                    pith_error *err) {
    if (!*ids) return PITH_OK;
    int32_t *copy = pith__arena_alloc(arena, count * sizeof *copy);
    if (!copy) return pith__fail_memory(err, count * sizeof *copy);
    if (count) memcpy(copy, *ids, count * sizeof *copy);
    *ids = copy;
    return PITH_OK;
}

static pith_status request_copy_tokens(const pith_token_ids **copies, pith__arena *arena,
                                       const pith_request *q, pith_error *err) {
    pith_token_ids *tokens = pith__arena_array(arena, q->count, sizeof *tokens);
    if (!tokens) return pith__fail_memory(err, q->count * sizeof *tokens);
    for (size_t i = 0; i < q->count; i++) {
        tokens[i] = q->tokens[i];
        PITH_TRY(request_copy_ids(&tokens[i].ids, arena, tokens[i].count, err));
        PITH_TRY(request_copy_ids(&tokens[i].type_ids, arena, tokens[i].count, err));
    }
    *copies = tokens;
    return PITH_OK;
}

/* The request with copies of what its texts are. */
static pith_status request_copy(pith_request *q, pith__arena *arena, size_t bytes,
                                pith_error *err) {
    PITH_TRY(request_copy_str(&q->query, arena, q->query, err));
    return q->tokens ? request_copy_tokens(&q->tokens, arena, q, err)
                     : request_copy_texts(&q->texts, arena, q, bytes, err);
}

/* Of the options what belongs to one call alone is left out. */
static pith_status request_encode_task(pith__queue_request *r, const pith_model *m,
                                       const pith_request *q, pith_error *err) {
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options e = PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, q->encode, err);
    PITH_TAKE_OPTIONS(e, o.embed, err);
    o.call = (pith_call){ .size = sizeof o };
    e.call = (pith_call){ .size = sizeof e };
    e.stats = NULL, e.batching = NULL, e.batch_tokens = 0, e.results = NULL, e.failures = NULL;
    PITH_TRY(request_copy_name(&e.prompt_name, &r->arena, err));
    o.embed = &e;
    return pith__model_encode_task(&r->task, m, q->texts, q->tokens, q->count, &o, err);
}

static pith_status request_score_task(pith__queue_request *r, const pith_model *m,
                                      const pith_request *q, pith_error *err) {
    const pith__score_ask ask = { .texts = q->texts,
                                  .tokens = q->tokens,
                                  .count = q->count,
                                  .reranks = q->task == PITH_REQUEST_RERANK,
                                  .query = q->query };
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, q->score, err);
    o.call = (pith_call){ .size = sizeof o };
    o.stats = NULL, o.batching = NULL, o.batch_tokens = 0, o.results = NULL, o.failures = NULL;
    PITH_TRY(request_copy_name(&o.instruction, &r->arena, err));
    return pith__model_score_task(&r->task, m, &ask, &o, err);
}

/* What each text takes of a chunk, in tokens, as far as that can be told before it is tokenised. */
static pith_status request_costs(pith__queue_request *r, const pith_request *q, pith_error *err) {
    const pith__encode_job *job = &r->task->job;
    const int32_t limit = pith__encoder_max_length(r->task->encoder, job->max_length);
    uint32_t *costs = pith__arena_alloc(&r->arena, q->count * sizeof *costs);
    if (!costs) return pith__fail_memory(err, q->count * sizeof *costs);
    for (size_t i = 0; i < q->count; i++) {
        size_t cost = q->tokens ? q->tokens[i].count : 2 + q->texts[i].size / BYTES_PER_TOKEN;
        if (job->pairs) cost += 1 + q->query.size / BYTES_PER_TOKEN;
        if (limit && cost > (size_t)limit) cost = (size_t)limit;
        if (!cost) cost = 1;
        costs[i] = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    }
    r->place.costs = costs;
    return PITH_OK;
}

/* Adds what results are expected to take whose size depends on tokens. */
static pith_status request_add_token_results(size_t *bytes, const pith__queue_request *r,
                                             size_t count, pith_error *err) {
    size_t tokens = 0, results;
    for (size_t i = 0; i < count; i++)
        if (pith__add_overflows(tokens, r->place.costs[i], &tokens))
            return pith__fail_memory(err, SIZE_MAX);
    return pith__mul_overflows(tokens, r->task->token_bytes, &results) ||
                   pith__add_overflows(*bytes, results, bytes)
               ? pith__fail_memory(err, SIZE_MAX)
               : PITH_OK;
}

static pith_status request_fill(pith__queue_request *r, const pith_queue *queue, pith_request *q,
                                size_t bytes, pith_error *err) {
    size_t rows;
    PITH_TRY(request_copy(q, &r->arena, bytes, err));
    PITH_TRY((r->encodes ? request_encode_task : request_score_task)(r, queue->model, q, err));
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
    PITH_TRY(request_add_token_results(&bytes, r, q->count, err));
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
                                     const pith_request *request, size_t bytes, pith_error *err) {
    pith_request q = *request;
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

void pith__queue_request_answer(pith__queue_request *r) {
    pith_error fault = PITH_ERROR_INIT;
    const uint64_t now = pith__clock_ns(), began = r->began ? r->began : now;
    pith_response response = { .size = sizeof response,
                               .ticket = r->place.ticket,
                               .count = r->place.count,
                               .waited_ns = began - r->place.came,
                               .ran_ns = now - began,
                               .message = "" };
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
