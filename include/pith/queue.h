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
 * Threads of the queue fetch chunks of texts, put together from whatever waits, and run them
 * through the model. There is no timer: a text that finds an idle thread runs at once, and one that
 * does not shares the next chunk with others. A result has the same bits whatever it shared a chunk
 * with, which is what makes this legal.
 *
 * Who comes next: requests of the highest priority. Among these the keys take turns, and among the
 * requests of a key each has its turn too, in the order in which they came. A turn is what fits
 * into one chunk. So a short request waits for no more than the chunks that run when it comes, and
 * one chunk of each request in front of it, however many texts that one has.
 *
 * A thread that finds nothing else to run, and no other thread of the queue at work, runs its chunk
 * on as many threads as the queue has (those of the library, pith_set_threads, help it).
 *
 * What may wait is bounded, in requests and bytes, and what one key may hold of it by what is free:
 * a request is accepted only if its key then holds no more than p / (100 - p) times what stays
 * free, where p is key_percent. With 50, the default, one key gets at most half, two that flood the
 * queue a third each, and n of them 1 / (n + 1) each: whatever they send, another key finds room.
 * Priorities are not bounded so: lower ones wait while there are higher ones, so that a host should
 * not let its clients choose them.
 *
 * pith_queue_submit never waits, and what it refuses has changed nothing. A server answers
 *   - PITH_ERR_BUSY: 429 or 503, to be tried again. The message says whether the key has its share
 *     (statistics: refused_key), the queue is full, or it is being drained;
 *   - PITH_ERR_ARGUMENT: 400, or 413 for a request that is too large for the queue in any state
 *     (too_large);
 *   - PITH_ERR_MEMORY: 503. PITH_ERR_UNSUPPORTED: 501.
 * and from a response: PITH_ERR_DEADLINE 504, PITH_ERR_CANCELLED 499 or 503, PITH_ERR_MEMORY 503.
 *
 * Under a memory limit of the model a chunk that is predicted not to fit is run in smaller ones,
 * and one that is refused memory is run again in halves. A text for which there is no memory while
 * other chunks run has the model to itself, and fails only if it does not fit then: alone, with
 * PITH_ERR_MEMORY and the limit in its message. Calls on the model from elsewhere are not waited
 * for. While the machine is short of memory (pith_open_options.pressure_percent) chunks are small.
 *
 * What uses a queue needs threads: a build without them has no queue (PITH_ERR_UNSUPPORTED). A
 * child of fork has none of the queue's threads and must not use it. */
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

/* In the call context, threads and allocator have an effect: how many threads the queue has, and
 * where its own memory, with copies of requests, comes from. It must outlive the queue. What a text
 * needs while it is run, and results, are of the model's allocator. */
typedef struct pith_queue_options {
    pith_call call;
    int32_t batch_tokens; /* of a chunk, about; 0: as in pith_embed_options. A text may have more */
    int32_t key_percent;  /* 1 to 100: the share of the next two that one key may hold, as said
                             above; 100: all. A key that holds nothing may have one request,
                             however few max_requests are. 0: 50 */
    size_t max_requests;  /* that wait or run; more are PITH_ERR_BUSY. 0: 65,536 */
    size_t max_bytes;     /* of the requests that wait or run: their texts and tokens, their
                             results (dense vectors and scores; for sparse vectors and vectors of
                             tokens, what its tokens are expected to give), about 100 bytes per
                             text, and 16 KiB; more are PITH_ERR_BUSY. A request that takes more
                             than its key may hold of an empty queue is PITH_ERR_ARGUMENT.
                             0: 256 MiB */
} pith_queue_options;

#define PITH_QUEUE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_queue_options)

/* Makes a queue, which the caller owns, and its threads. It holds a reference to the model, so that
 * the model may be closed first. Errors: PITH_ERR_ARGUMENT; PITH_ERR_UNSUPPORTED if the model has
 * no tokenizer; PITH_ERR_MEMORY, also if a thread cannot be made. */
PITH_API pith_status pith_queue_create(pith_queue **queue, const pith_model *model,
                                       const pith_queue_options *options, pith_error *err);

/* Ends the queue: requests of which texts wait fail with PITH_ERR_CANCELLED, the chunks that run
 * are finished. Returns when all callbacks have returned. From a callback of the queue it returns
 * at once, and the queue's threads free it when the callbacks have returned: no function of it may
 * be called any more, also by other callbacks. NULL is allowed. Not to be called while another
 * thread is in a function of this queue. */
PITH_API void pith_queue_destroy(pith_queue *queue);

/* What a request asks for. */
typedef enum pith_request_task {
    PITH_REQUEST_ENCODE = 0, /* as pith_encode, with what and role of the request */
    PITH_REQUEST_CLASSIFY = 1,
    PITH_REQUEST_RERANK = 2 /* texts are the documents, query the query */
} pith_request_task;

/* The outcome of a request. It and what it points to belong to the queue and are valid during the
 * callback. */
typedef struct pith_response {
    size_t size;
    uint64_t ticket;
    pith_status status;  /* PITH_OK: every text was tried, and results says which have failed.
                           Otherwise the request failed as a whole: PITH_ERR_CANCELLED,
                           PITH_ERR_DEADLINE, or PITH_ERR_MEMORY: there was none for the results */
    const char *message; /* of this failure; else of the first text that failed; else "" */
    size_t failed;       /* texts that failed, if status is PITH_OK */
    size_t count;        /* texts */
    const pith_text_result *results; /* [count], in the order of the request; NULL, as the next two,
                                        if the request failed as a whole */
    const pith_encoded
        *encoded;        /* of PITH_REQUEST_ENCODE, else NULL; rows of texts that failed are NaN or
                                        empty */
    const float *scores; /* [count, labels] of the other tasks, else NULL; row-major; NaN for a text
                            that failed */
    size_t labels;       /* scores per text; 1 of PITH_REQUEST_RERANK */
    uint64_t waited_ns;  /* from submit to the first chunk, or to the end if there was none */
    uint64_t ran_ns;     /* from the first chunk to the end; 0 if there was none */
} pith_response;

typedef struct pith_request {
    size_t size;
    int32_t task;                 /* a pith_request_task */
    int32_t priority;             /* -100 to 100; the highest comes first */
    const pith_str *texts;        /* [count], copied; NULL if there are tokens */
    const pith_token_ids *tokens; /* [count], copied; NULL if there are texts. For
                                     PITH_REQUEST_RERANK each is a pair, as of pith_rerank_tokens */
    size_t count;
    pith_str query;                    /* of PITH_REQUEST_RERANK, copied */
    const pith_encode_options *encode; /* of PITH_REQUEST_ENCODE, copied; NULL: the defaults. Its
                                          call context, batch_tokens, batching, stats, results and
                                          failures are ignored. */
    const pith_score_options *score;   /* of the other tasks, likewise; NULL: the defaults */
    uint64_t deadline_ns; /* a time of pith_clock_now: if there are texts then which have not begun,
                             the request fails with PITH_ERR_DEADLINE, at the end of the chunk that
                             runs. 0: none */
    uint64_t key;         /* whom the request is for: keys take turns */
    /* Called once for each request that was accepted, on a thread of the queue, when all its texts
     * are done or it has failed; this may be before pith_queue_submit returns. It should be short:
     * the thread runs no chunk meanwhile. It may submit, cancel, report and destroy; the limits
     * no longer include the request, so that there is room for another one.
     * pith_queue_drain is PITH_ERR_BUSY. Not NULL. */
    void (*done)(void *user, const pith_response *response);
    void *user; /* passed to done */
} pith_request;

#define PITH_REQUEST_INIT PITH_SIZED_INIT(pith_request)

/* Takes a request and sets *ticket, which is never 0, to its number, before done can be called;
 * ticket may be NULL. Errors: PITH_ERR_BUSY if the queue is full, the key has its share of it, or
 * it is being drained; PITH_ERR_ARGUMENT and PITH_ERR_UNSUPPORTED if the model or the options
 * cannot do it, PITH_ERR_ARGUMENT also if the request is larger than the queue takes;
 * PITH_ERR_MEMORY. done is then not called. A text that is not UTF-8 fails alone. Copies texts and
 * waits for nothing else. Thread-safe. */
PITH_API pith_status pith_queue_submit(uint64_t *ticket, pith_queue *queue,
                                       const pith_request *request, pith_error *err);

/* Ends a request: what has not begun is not run. done is called with PITH_ERR_CANCELLED, on a
 * thread of the queue, after the chunks in which texts of it run. PITH_ERR_NOT_FOUND: no such
 * request waits or runs, or it has failed. Thread-safe. */
PITH_API pith_status pith_queue_cancel(pith_queue *queue, uint64_t ticket, pith_error *err);

/* Accepts no more requests, so that pith_queue_submit fails with PITH_ERR_BUSY from now on, and
 * waits until all callbacks have returned. In the call context, which may be NULL, what ends a call
 * early has an effect: it ends the wait, and requests continue. From a callback of the queue
 * PITH_ERR_BUSY, and nothing has changed. Thread-safe. */
PITH_API pith_status pith_queue_drain(pith_queue *queue, const pith_call *call, pith_error *err);

/* Counts since the queue was made, and its state at this moment. */
typedef struct pith_queue_statistics {
    size_t size;
    uint64_t requests;           /* done, in whatever way */
    uint64_t cancelled, expired; /* of these */
    uint64_t failed;             /* of these, as a whole for another reason */
    uint64_t refused;            /* not accepted: PITH_ERR_BUSY */
    uint64_t refused_key;        /* of these, because the key had its share */
    uint64_t too_large;          /* not accepted: larger than a key may hold */
    uint64_t texts, tokens;      /* that were run */
    uint64_t failed_texts;       /* that were tried and failed */
    uint64_t chunks;             /* runs of the model */
    uint64_t smaller_chunks;     /* times that a chunk was run in two halves, as the memory for it
                                    was not there, or was predicted not to be */
    uint64_t chunk_requests;     /* requests in these chunks, added up */
    uint64_t waiting_requests,
        waiting_texts;                  /* now: texts that have not begun, and their requests */
    uint64_t held_requests, held_bytes; /* now: that wait or run; what the limits count */
    uint64_t running_texts;             /* now */
    uint64_t oldest_ns; /* how long the oldest request that has not begun has waited; 0: none */
    double tokens_per_second; /* over the last seconds in which chunks ran; 0: not known yet */
} pith_queue_statistics;

#define PITH_QUEUE_STATISTICS_INIT PITH_SIZED_INIT(pith_queue_statistics)

/* Thread-safe. */
PITH_API pith_status pith_queue_report(pith_queue_statistics *statistics, const pith_queue *queue,
                                       pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
