/* queue.h - the implementation of pith/queue.h. The caller has set the floating-point mode.
 *
 * requests.c makes a request of what a caller wants and tells its outcome; workers.c has the
 * threads that run chunks; queue.c has what callers do with a queue. The schedule says who comes
 * next. */
#ifndef PITH_MODELS_QUEUE_QUEUE_H
#define PITH_MODELS_QUEUE_QUEUE_H

#include <pthread.h>

#include "models/encode/shared_texts.h"
#include "models/model.h"
#include "models/queue/schedule.h"
#include "models/texts/text_task.h"
#include "pith/queue.h"

/* The most threads of a queue, and the most texts of a chunk. */
enum { PITH_QUEUE_THREADS_MAX = 512, PITH_QUEUE_CHUNK_TEXTS = 512 };

typedef struct pith__queue_request {
    pith__schedule_request place; /* first, so that the schedule's pointers are those of requests */
    void (*done)(void *user, const pith_response *response);
    void *user;
    pith__arena arena; /* texts, options and results */
    pith__text_task *task;
    pith__shared_job *job;
    pith_text_result *results; /* [count]; each is written by the thread that runs the text */
    uint64_t began, ended;     /* 0: not yet */
    uint64_t chunk;            /* number of the last chunk that it was in */
    bool encodes;              /* PITH_REQUEST_ENCODE */
    /* Under the queue's lock. */
    pith_status status; /* of the request as a whole */
    size_t failed, first_failed;
    pith_error *fault; /* of text first_failed; NULL: none, or there was no memory for it */
    struct pith__queue_request *next; /* of those that are done */
} pith__queue_request;

typedef struct pith__queue_worker {
    pith_queue *queue;
    pthread_t thread;
    bool answers; /* is in a function of a caller; under the lock */
    pith__shared_worker *shared;
    pith__schedule_text taken[PITH_QUEUE_CHUNK_TEXTS];
    pith__shared_text texts[PITH_QUEUE_CHUNK_TEXTS];
} pith__queue_worker;

struct pith_queue {
    pith_allocator allocator;
    const pith_model *model; /* with a reference */
    int threads;
    bool tight;                  /* the model has a memory limit */
    int64_t batch_tokens;        /* 0: as the encoder has it */
    pith__queue_worker *workers; /* [threads] */
    pthread_mutex_t lock;        /* guards what follows */
    pthread_cond_t work;         /* for workers */
    pthread_cond_t quiet;        /* no request is held, and no callback runs */
    pthread_cond_t turn;         /* for workers that wait until they are alone */
    pith__schedule schedule;
    pith__queue_request *first_done, *last_done; /* whose callers are to be told */
    size_t answering;                            /* whose callers are being told */
    int busy, idle;                              /* workers that run a chunk, and that wait */
    int lonely;                                  /* busy workers that wait until they are alone */
    bool alone;                                  /* one of them is */
    bool draining, ending;
    int live;               /* workers that have not ended */
    bool orphan;            /* the last of them frees the queue */
    uint64_t pressed_till;  /* memory is taken to be short until then */
    double tokens_per_cost; /* of the texts of the last chunks */
    pith_queue_statistics numbers;
    uint64_t chunk; /* number of the last one */
    uint64_t rate_from, rate_tokens,
        rate_time; /* for tokens_per_second: rate_from is the time up to
                                                   which it is counted */
};

pith_status pith__queue_create(pith_queue **queue, const pith_model *model,
                               const pith_queue_options *options, pith_error *err);
void pith__queue_destroy(pith_queue *queue);
/* Frees a queue whose workers have ended, but for `last`, which calls it as the last thing it does;
 * NULL: all have. */
void pith__queue_bury(pith_queue *queue, pith__queue_worker *last);
pith_status pith__queue_submit(uint64_t *ticket, pith_queue *queue, const pith_request *request,
                               pith_error *err);
pith_status pith__queue_cancel(pith_queue *queue, uint64_t ticket, pith_error *err);
pith_status pith__queue_drain(pith_queue *queue, const pith_call *call, pith_error *err);
pith_status pith__queue_report(pith_queue_statistics *statistics, const pith_queue *queue,
                               pith_error *err);

/* Checks what can be checked of a request alone, and sets *bytes to its bytes as the limit counts
 * them, without its results. */
pith_status pith__queue_request_bytes(size_t *bytes, const pith_request *request, pith_error *err);
/* Makes a request of so many bytes, which is not in the schedule yet. */
pith_status pith__queue_request_make(pith__queue_request **made, const pith_queue *queue,
                                     const pith_request *request, size_t bytes, pith_error *err);
/* NULL is allowed. */
void pith__queue_request_free(const pith_queue *queue, pith__queue_request *r);
/* Calls the caller's function. Without the lock. Sets r->status if results cannot be put together.
 */
void pith__queue_request_answer(pith__queue_request *r);

/* Puts a request that is done, for a worker to tell its caller. With the lock. */
void pith__queue_put_done(pith_queue *queue, pith__queue_request *r);
/* The thread of a worker. */
void *pith__queue_work(void *worker);
/* Is told of a text that failed; see pith__shared_fault. */
void pith__queue_note_fault(void *queue, const pith__shared_text *text, const pith_error *fault);
/* Makes the calling worker the only one that runs; see pith__shared_alone. */
void pith__queue_alone(void *queue, bool begin);

#endif
