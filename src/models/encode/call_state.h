/* call_state.h - one call of an encoder while it runs, shared by the files that do its parts:
 * encode_call.c goes through the windows, text_tokens.c makes tokens of texts, chunk_run.c runs
 * chunks of them through the model. */
#ifndef PITH_MODELS_ENCODE_CALL_STATE_H
#define PITH_MODELS_ENCODE_CALL_STATE_H

#include <stdatomic.h>

#include "models/encode/encoder_state.h"
#include "models/encode/window_pace.h"
#include "text/token_rows.h"

/* The most threads of a call: as many as base/os/threads.c starts. It bounds the array of workers.
 */
#define THREADS_MAX 512
/* When fewer chunks than threads remain, this many threads share a chunk. With more than two, the
 * pieces would be too small if the helpers never arrive. */
#define LAST_CHUNK_THREADS 2

typedef struct encode_worker {
    pith_tokens tokens;
    pith__arena rows;  /* ids of the texts of the window that this worker tokenised */
    pith__arena chunk; /* inputs of its current chunk, and scratch memory of the heads */
    pith__runner runner;
    size_t peak_bytes;
    size_t failed_text; /* of the window; SIZE_MAX: none */
    pith_error fault;
} encode_worker;

typedef struct encode_chunk {
    size_t first, count; /* of call.order */
} encode_chunk;

typedef struct pith__text_results_part pith__text_results_part;

typedef struct encode_call {
    pith__encoder *encoder;
    const pith__encode_job *job;
    const pith__head_use *uses;
    size_t use_count;
    const void **states;                    /* of the heads */
    const pith__text_results_part *results; /* models/encode/text_results.h; NULL: a bad text ends
                                               the call */
    /* Runs the texts of a chunk again that failed; NULL: its first one is to blame. */
    void (*apart)(struct encode_call *c, encode_worker *w, const encode_chunk *k);
    pith_str prompt;
    int64_t prompt_rows; /* rows of a text that pooling leaves out */
    uint64_t began; /* pith__clock_thread_ns of the calling thread, so that a busy machine does not
                       make calls longer */
    pith__executor_options executor; /* for runners, and the allocator of the call */
    pith_batching batching;
    int threads, inner_threads;
    int32_t max_length;
    pith__arena arena;
    encode_worker *workers;
    /* the window */
    size_t first_text, count, texts_per_part;
    pith__row *rows;
    uint8_t *truncated;
    size_t *order; /* texts of the window that have tokens, in the order they are run */
    const pith__row **ordered;
    size_t ordered_count;
    encode_chunk *chunks;
    size_t chunk_count;
    atomic_size_t failed;  /* the first text of the window that has failed so far; SIZE_MAX: none */
    atomic_size_t emitted; /* texts of the window whose rows the heads have */
    int64_t budget;        /* tokens of a chunk */
    size_t window;         /* texts of a window */
    size_t bytes;          /* of the window's texts */
    bool side_by_side;     /* the window's chunks run at the same time */
    bool one_by_one;       /* chunks never run at the same time */
    uint64_t predicted;    /* times a window was predicted not to fit */
    bool makes_runners;    /* idle ones are left alone */
    bool gives_back;       /* the call was long for its memory, so it keeps none */
    pith__window_pace pace;
} encode_call;

/* Begins a call, which pith__encode_end ends, and checks the job. Memory comes from the allocator.
 */
pith_status pith__encode_begin(encode_call *c, pith__encoder *e, const pith__encode_job *job,
                               const pith__head_use *uses, size_t count,
                               const pith_allocator *allocator, pith_error *err);
/* Opens the heads, and finds the prompt. */
pith_status pith__encode_open_heads(encode_call *c, pith_error *err);
/* The same, and makes room for workers and for a window. */
pith_status pith__encode_open(encode_call *c, pith_error *err);
void pith__encode_end(encode_call *c);
/* Cuts the rows of the window into chunks. */
pith_status pith__encode_plan_window(encode_call *c, pith_error *err);

/* Whether a fault may be that of a text alone, and not of the call. */
static inline bool pith__encode_is_of_text(pith_status status) {
    return status == PITH_ERR_ARGUMENT || status == PITH_ERR_RUN;
}
/* Notes the fault in w->fault for a text of the window; or for the caller, if it is of the text
 * alone and the caller wants to know. */
void pith__encode_fail_text(encode_call *c, encode_worker *w, const pith_error *fault, size_t text);
/* Returns the first text of the window that has failed so far; SIZE_MAX: none. */
size_t pith__encode_first_failed(const encode_call *c);

/* n ids become a row of the window, framed as the job says. */
pith_status pith__encode_keep_row(const encode_call *c, encode_worker *w, pith__row *row,
                                  const int32_t *ids, const int32_t *type_ids, size_t n,
                                  pith_error *err);
/* Sets call->prompt_rows. */
pith_status pith__encode_count_prompt(encode_call *c, pith_error *err);
/* Text i of the window becomes its row. */
pith_status pith__encode_text_row(encode_call *c, encode_worker *w, size_t i, pith_error *err);
/* A task of threads: tokenises a part of the window's texts into call->rows. */
void pith__encode_text_part(void *call, size_t part, int worker);

/* The inputs of a chunk are made in the worker's arena, and a runner is borrowed for it. */
pith_status pith__encode_fill_chunk(pith_tensor **inputs, encode_call *c, encode_worker *w,
                                    const encode_chunk *k, pith_error *err);
/* Runs a chunk. *outputs are those of the graph, valid until the worker's next run; *fed: its
 * tokens, padding included. */
pith_status pith__encode_run_rows(const pith_tensor **outputs, int64_t *fed, encode_call *c,
                                  encode_worker *w, const encode_chunk *k, pith_error *err);
/* An output as f32 rows of its width. The output's shape is checked, since it depends on the
 * inputs. Sets *missing to the number of rows that are not there at the beginning: a graph for one
 * text may leave out its first tokens. */
pith_status pith__encode_output_rows(const float **x, int64_t *missing, const pith_tensor *out,
                                     int64_t rows, const pith__head_model *model, bool ragged,
                                     pith__arena *arena, pith_error *err);
/* Hands a text to a head of the call and moves *x, which is at its rows or NULL, behind them;
 * missing: its first so many are not there. */
pith_status pith__encode_emit_row(const float **x, const encode_call *c, size_t use, size_t text,
                                  const pith__row *row, int64_t missing, pith__arena *scratch,
                                  pith_error *err);
/* Frees what the encoder and the tokenizer keep for later calls. */
void pith__encode_trim(const encode_call *c);
/* Returns whether the memory that the window's chunks need is there, as far as can be told before
 * they run. */
bool pith__encode_fits(encode_call *c);
/* Runs a chunk and hands its rows to the heads, unless a text has failed. */
pith_status pith__encode_try_chunk(encode_call *c, encode_worker *w, const encode_chunk *k,
                                   pith_error *err);
/* Gives a text without tokens to the heads; bad: one without a result. */
pith_status pith__encode_emit_empty(encode_call *c, size_t text, bool bad, pith_error *err);
/* A task of threads: runs a chunk, and hands its rows to the heads. */
void pith__encode_chunk_part(void *call, size_t chunk, int worker);
/* Gives the worker's runner back to the encoder, or ends it if it is not worth its memory. */
void pith__encode_return_runner(encode_call *c, encode_worker *w);

#endif
