/* shared_texts.h - texts of several requests in one run of the model: each text is tokenised as its
 * own request says, and its rows go to the heads of that request. What a text shares a run with
 * changes no bit of its results.
 *
 * A text that fails, fails alone: its heads are told that it is bad, and the others of its run
 * have their results. */
#ifndef PITH_MODELS_ENCODE_SHARED_TEXTS_H
#define PITH_MODELS_ENCODE_SHARED_TEXTS_H

#include "models/encode/encoder.h"

/* A request, ready to be run. Threads may work on different texts of it at the same time. */
typedef struct pith__shared_job pith__shared_job;
/* What a thread needs. One thread uses it at a time. */
typedef struct pith__shared_worker pith__shared_worker;

/* The job's texts, and what else it and the uses point to, live until the job is closed. Of the job
 * threads, batch_tokens, batching, stop, progress, profile, stats, results and failures are not
 * looked at. */
pith_status pith__shared_open(pith__shared_job **shared, pith__encoder *encoder,
                              const pith__encode_job *job, const pith__head_use *uses, size_t count,
                              pith_error *err);
/* NULL is allowed. */
void pith__shared_close(pith__shared_job *shared);

/* A text on its way. */
typedef struct pith__shared_text {
    pith__shared_job *job;
    size_t text;
    void *owner;        /* of the caller */
    pith_status status; /* PITH_OK, or how it failed */
    uint32_t tokens;    /* set by pith__shared_tokenise */
    bool truncated;
    bool again; /* there was no memory for its rows, so that it is run once more */
} pith__shared_text;

/* Is told of a text that fails, before its status is set. */
typedef void pith__shared_fault(void *context, const pith__shared_text *text,
                                const pith_error *fault);

/* Called around the last try of a text that was refused memory, by itself: from `begin` true on no
 * other worker that may hold memory of the model runs, until it is called with false. */
typedef void pith__shared_alone(void *context, bool begin);

/* alone: NULL if nothing is gained by waiting for other workers. */
pith_status pith__shared_worker_create(pith__shared_worker **worker,
                                       const pith_allocator *allocator, pith__shared_fault *fault,
                                       pith__shared_alone *alone, void *context, pith_error *err);
void pith__shared_worker_destroy(pith__shared_worker *worker);

/* Makes tokens of a text, which the worker keeps until pith__shared_forget. */
void pith__shared_tokenise(pith__shared_worker *worker, pith__shared_text *text);
/* What became of texts. */
typedef struct pith__shared_report {
    size_t runs;    /* of the model */
    size_t smaller; /* times that texts were run in two halves, as the memory was not there */
} pith__shared_report;

/* Runs texts that the worker tokenised, of jobs of one encoder, on this many threads, in runs of at
 * most `budget` tokens or one text, and hands them to the heads. Under a memory limit a run is made
 * smaller if it is predicted not to fit. */
void pith__shared_run(pith__shared_report *report, pith__shared_worker *worker,
                      pith__shared_text *texts, size_t count, int64_t budget, int threads);
void pith__shared_forget(pith__shared_worker *worker);
/* Gives back what the worker keeps for its next run. */
void pith__shared_rest(pith__shared_worker *worker);

/* The tokens of a run that the caller did not choose; pressed: while memory is short. */
int64_t pith__shared_budget(const pith__encoder *encoder, bool pressed);
/* Whether the system is short of memory, as far as it was looked at now: what is only kept for
 * speed is then freed, and the log is told. */
bool pith__shared_pressed(const pith__encoder *encoder);
/* Whether a run takes more than one text. */
bool pith__shared_packs(const pith__encoder *encoder);

#endif
