/* queue.h - texts of any number of callers, run together.
 *
 *     pith_queue *queue;
 *     pith_request request = PITH_REQUEST_INIT;
 *     if (pith_queue_create(&queue, model, NULL, &err)) puts(err.message);
 *     request.texts = &text;
 *     request.count = 1;
 *     request.done = answer; // receives the vector, on a thread of the queue
 *     request.user = connection;
 *     if (pith_queue_submit(&ticket, queue, &request, &err)) puts(err.message);
 *
 * Threads of the queue take chunks of tokens, put together from whatever waits, and run them through
 * the model. There is no timer: a text that finds an idle thread runs at once, and one that does not
 * shares the next chunk with others. A result has the same bits whatever it shared a chunk with,
 * which is what makes this legal.
 *
 * Who comes next: requests of the highest priority; among these the keys take turns, and among the
 * requests of a key the oldest one comes first. A turn is one chunk, so a short text waits for no
 * more than the chunks that run when it comes, and one chunk of each other key. */
#ifndef PITH_QUEUE_H
#define PITH_QUEUE_H

#include "pith/call.h"
#include "pith/encode.h"
#include "pith/score.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any number of threads may use a queue at once. */
typedef struct pith_queue pith_queue;

/* call.threads: threads of the queue; call.log receives warnings, call.allocator is that of the
 * queue. What can end a call early has no meaning here. */
typedef struct pith_queue_options {
    pith_call call;
    int32_t batch_tokens; /* tokens of a chunk; 0: as in pith_embed_options */
    size_t max_requests;  /* that may wait; more are PITH_ERR_BUSY. 0: 65,536 */
    size_t max_bytes;     /* of the texts and tokens of requests that wait or run; more are
                             PITH_ERR_BUSY. A request that is larger than all of it is accepted while
                             nothing else waits. 0: 256 MiB */
} pith_queue_options;

#define PITH_QUEUE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_queue_options)

/* Makes a queue, which the caller owns, and its threads. The queue keeps the model open. */
PITH_API pith_status pith_queue_create(pith_queue **queue, const pith_model *model,
                                       const pith_queue_options *options, pith_error *err);

/* Ends the queue: requests that wait fail with PITH_ERR_CANCELLED, the chunks that run are
 * finished. Returns when all callbacks have returned. NULL is allowed. Not to be called from a
 * callback. */
PITH_API void pith_queue_destroy(pith_queue *queue);

/* What a request asks for. */
typedef enum pith_request_task {
    PITH_REQUEST_ENCODE = 0, /* as pith_encode, with what and role of the request */
    PITH_REQUEST_CLASSIFY = 1,
    PITH_REQUEST_RERANK = 2 /* texts are the documents, query the query */
} pith_request_task;

/* The outcome of a request, valid during the callback. */
typedef struct pith_response {
    size_t size;
    pith_status status; /* PITH_OK: every text was tried. Otherwise the request failed as a whole:
                           PITH_ERR_CANCELLED, PITH_ERR_DEADLINE, PITH_ERR_MEMORY … */
    const char *message;             /* of the failure, or of the first text that failed; "" */
    size_t count;                    /* texts */
    const pith_text_result *results; /* [count]; NULL if the request failed as a whole */
    const pith_encoded *encoded;     /* of PITH_REQUEST_ENCODE; rows of texts that failed are NaN or
                                        empty */
    const float *scores;             /* of the other tasks: [count, labels] or [count]; NaN for a text
                                        that failed */
    size_t labels;                   /* scores per text */
    uint64_t waited_ns;              /* from submit to the first chunk */
    uint64_t ran_ns;                 /* from the first chunk to the end */
} pith_response;

typedef struct pith_request {
    size_t size;
    int32_t task;                 /* a pith_request_task */
    int32_t priority;             /* -100 to 100; the highest comes first */
    const pith_str *texts;        /* [count], copied; or */
    const pith_token_ids *tokens; /* [count], copied; one of the two is NULL */
    size_t count;
    pith_str query;                     /* of PITH_REQUEST_RERANK, copied */
    const pith_encode_options *encode;  /* of PITH_REQUEST_ENCODE, or */
    const pith_score_options *score;    /* of the others; copied. NULL: the defaults. Of their call
                                           context nothing is looked at. */
    uint64_t deadline_ns; /* a time of pith_clock_now: what has not begun by then fails with
                             PITH_ERR_DEADLINE. 0: none */
    uint64_t key;         /* whom the request is for: keys take turns */
    /* Called once for each request that was accepted, on a thread of the queue, when all its texts
     * are done or it has failed. It must not call pith_queue_destroy or pith_queue_drain, and
     * should be short. */
    void (*done)(void *user, const pith_response *response);
    void *user; /* passed to done */
} pith_request;

#define PITH_REQUEST_INIT PITH_SIZED_INIT(pith_request)

/* Takes a request and sets *ticket, which is never 0, to its number. Errors: PITH_ERR_BUSY if the
 * queue is full or being drained; PITH_ERR_ARGUMENT, PITH_ERR_UNSUPPORTED if the model or the
 * options cannot do it. done is then not called. A text that is not UTF-8 fails alone. */
PITH_API pith_status pith_queue_submit(uint64_t *ticket, pith_queue *queue,
                                       const pith_request *request, pith_error *err);

/* Ends a request: what has not begun is not run. done is called with PITH_ERR_CANCELLED, unless it
 * was called already. PITH_ERR_NOT_FOUND: no such request waits or runs. */
PITH_API pith_status pith_queue_cancel(pith_queue *queue, uint64_t ticket, pith_error *err);

/* Accepts no more requests and waits until all are done. call: NULL is allowed; when it ends the
 * wait, requests go on. pith_queue_submit then fails with PITH_ERR_BUSY. */
PITH_API pith_status pith_queue_drain(pith_queue *queue, const pith_call *call, pith_error *err);

/* Counts since the queue was made, and its state at this moment. */
typedef struct pith_queue_statistics {
    size_t size;
    uint64_t requests, texts, tokens; /* done, successfully or not */
    uint64_t failed, cancelled, expired, refused; /* requests; refused: PITH_ERR_BUSY */
    uint64_t chunks;                  /* runs of the model */
    uint64_t chunk_requests;          /* requests in these chunks, added up */
    uint64_t waiting_requests, waiting_texts, waiting_bytes; /* now */
    uint64_t running_texts;                                  /* now */
    uint64_t oldest_ns; /* how long the oldest request that has not begun has waited; 0: none */
    double tokens_per_second; /* over the last seconds of work; 0: not known yet */
} pith_queue_statistics;

#define PITH_QUEUE_STATISTICS_INIT PITH_SIZED_INIT(pith_queue_statistics)

PITH_API pith_status pith_queue_report(pith_queue_statistics *statistics, const pith_queue *queue,
                                       pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
