/* encoder.h - a text encoder: it takes texts and hands the rows of each text to a head.
 *
 * A text's rows have the bits of a run on that text alone. A ragged graph runs many packed texts in
 * one batch, with the same bits; a model without one runs one text at a time. An encoder does not
 * change once it is made, except for a bounded store of idle runners behind a lock. Any number of
 * threads may use it at once. */
#ifndef PITH_MODELS_ENCODE_ENCODER_H
#define PITH_MODELS_ENCODE_ENCODER_H

#include "base/os/busy_time.h"
#include "base/os/system_memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "engine/runtime/runtime.h"
#include "models/heads/head.h"
#include "pith/chunk.h"
#include "pith/embed.h"
#include "text/tokenizer.h"

typedef struct pith__encoder pith__encoder;

enum { PITH_ENCODER_OUTPUTS = 4 };

/* The parts of an encoder. All of them must outlive it. */
typedef struct pith__encoder_parts {
    pith__program program;
    bool ragged;        /* the program is that of pith__ragged_make's graph */
    const int *outputs; /* [output_count] indexes of the outputs of the program that heads read */
    int output_count;   /* 1 to PITH_ENCODER_OUTPUTS */
    const pith_tokenizer *tokenizer;
    const pith__modules *modules;
    pith__executor_options executor;
    bool predicts;             /* memory is limited, and looked at before a window runs */
    size_t sessions;           /* the most idle runners to keep */
    uint64_t session_patience; /* nanoseconds after which an idle runner ends; 0: never */
    pith__memory_gauge *gauge; /* when memory is short; NULL: it never is */
    pith__busy *busy;          /* NULL: not counted */
} pith__encoder_parts;

/* Returns PITH_ERR_UNSUPPORTED if the graph is not a text encoder: an input cannot be made from
 * text, or an output does not have rows of a known width. */
pith_status pith__encoder_create(pith__encoder **encoder, const pith__encoder_parts *parts,
                                 pith_error *err);
void pith__encoder_destroy(pith__encoder *encoder);
/* From now on each step of a run is reported to `trace`, on the thread that runs it (see
 * engine/exec/executor.h), instead of the call's profile. NULL ends that. No call may be
 * running. */
void pith__encoder_trace(pith__encoder *encoder, pith__trace_fn *trace, void *context);
/* Destroys the idle runners. Thread-safe. */
void pith__encoder_trim(pith__encoder *encoder);
/* Returns how many there are. Thread-safe. */
size_t pith__encoder_idle(pith__encoder *encoder);

/* Returns the facts that heads need about an output, by its place in parts.outputs; valid as long
 * as the encoder. */
const pith__head_model *pith__encoder_model(const pith__encoder *encoder, int output);
/* Returns the number of tokens at which a text is cut if the caller asks for max_length (0: the
 * model's limit). 0 means that texts are never cut. */
int32_t pith__encoder_max_length(const pith__encoder *encoder, int32_t max_length);

/* Sets *prompt to the prompt of this name (NULL: the default one), "" for none. */
pith_status pith__encode_prompt(pith_str *prompt, const pith__modules *modules, const char *name,
                                pith_error *err);

/* How models of late interaction, and language models that judge texts, frame a text. */
typedef struct pith__encode_frame {
    const int32_t *before, *after; /* ids put around each text, which counts its own tokens only
                                      when it is cut */
    size_t before_count, after_count;
    int32_t marker;  /* id of the token put after the first one; -1: none */
    pith_str prompt; /* put in front of each text instead of the job's prompt; data is NULL: that
                        one */
    int32_t length;  /* texts are filled up to this many tokens, but not above the limit of the
                        call; 0: they are not */
    int32_t filler;  /* id of the token they are filled with */
    bool hidden;     /* no token attends to the fillers; PITH_ERR_UNSUPPORTED if the graph is ragged
                        or has no mask */
    bool bare;       /* the tokenizer adds no special tokens */
    const int32_t *end; /* [end_count] ids written over the last ones of a text that reaches the
                           limit */
    size_t end_count;
} pith__encode_frame;

/* The texts of a call as tokens (models/encode/given_tokens.h). A call of texts does not link what
 * takes them. */
typedef struct pith__given_tokens pith__given_tokens;

/* The texts of a call and how to run them. In each number, 0 means the default. */
typedef struct pith__encode_job {
    const pith_str *texts;
    const pith__given_tokens *given; /* NULL, or instead of texts, pairs and prompt_name */
    const pith_str *pairs;           /* NULL, or the second text of each pair */
    size_t count;
    const char *prompt_name;         /* NULL: the model's default prompt; "": none */
    const pith__encode_frame *frame; /* NULL: texts are framed by the tokenizer alone */
    bool tokens_only; /* the network does not run: heads get a text's ids, and NULL instead of its
                         rows */
    int32_t threads, max_length, batch_tokens;
    const pith_batching *batching; /* of the caller; NULL: the defaults */
    pith__stop *stop;              /* may be NULL, like the next two */
    pith__progress *progress;      /* is told of texts that are done */
    pith_profile *profile;
    pith_embed_stats *stats;
    pith_text_result *results; /* those of the caller: pith_embed_options */
    pith_error *failures;
} pith__encode_job;

/* A head that gets rows of a call. */
typedef struct pith__head_use {
    const pith__head *head;
    const void *request;
    int output; /* which rows: its place in parts.outputs */
} pith__head_use;

/* Runs all texts and hands each text's rows to the heads, in no particular order. After an error
 * the first stats->texts_done texts of the call have been emitted completely. An error names the
 * first text that failed. */
pith_status pith__encoder_run(pith__encoder *encoder, const pith__encode_job *job,
                              const pith__head_use *uses, size_t count, pith_error *err);

/* Predicts the memory of a call with this many texts of so many tokens (pith_embed_predict).
 * job->texts is not read. */
pith_status pith__encoder_predict(pith_memory_need *need, pith__encoder *encoder,
                                  const pith__encode_job *job, size_t tokens, pith_error *err);

/* Finds the next chunk of a text (pith/chunk.h). max_length and prompt_name are those of the job
 * that runs it. */
pith_status pith__encoder_next_chunk(pith_chunk *chunk, const pith__encoder *encoder, pith_str text,
                                     int32_t max_length, int32_t overlap, const char *prompt_name,
                                     pith__stop *stop, pith_error *err);

#endif
