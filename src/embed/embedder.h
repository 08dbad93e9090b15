/* embedder.h - a planned text encoder with its tokenizer: texts in, vectors out.
 *
 * A text's vector is the model run on that text alone. A ragged plan runs many texts laid end to end with the same
 * bits; a model that has no ragged form runs one text at a time. Immutable after creation but for a bounded store of
 * idle executors behind a lock, so any number of threads may embed at once. */
#ifndef PITH_EMBED_EMBEDDER_H
#define PITH_EMBED_EMBEDDER_H

#include "embed/modules.h"
#include "exec/session.h"
#include "text/tokenizer.h"

typedef struct pith_embedder pith_embedder;

/* Where the parts come from; all of them outlive the embedder. */
typedef struct pith_embedder_parts {
    const pith_plan *plan;
    bool ragged; /* the plan is of pith_opt_ragged's graph */
    int output;  /* the graph output to use, from pith_embedder_output; -1: none is of use */
    const pith_tokenizer *tokenizer;
    const pith_modules *modules;
    pith_executor_options executor;
} pith_embedder_parts;

/* The graph output that holds a text's vector or its tokens' rows: sentence_embedding, else last_hidden_state or
 * token_embeddings, else the first floating point output of rank 2 or 3; -1 if there is none. For the graph as it was
 * read, types inferred: passes may take names from values, but keep the outputs' order. */
int pith_embedder_output(const pith_graph *graph);

/* Fails, saying why, if the graph is no text encoder: inputs that are none of a text's, no usable output. */
pith_status pith_embedder_create(pith_embedder **embedder, const pith_embedder_parts *parts, pith_error *err);
void pith_embedder_destroy(pith_embedder *embedder);
/* Who hears of the steps of calls from now on (see exec/session.h), on the threads that run them, instead of a call's
 * profile; NULL: nobody. No call may be under way. */
void pith_embedder_trace(pith_embedder *embedder, pith_trace_fn *trace, void *context);
/* Destroys the idle executors. */
void pith_embedder_trim(pith_embedder *embedder);

/* Floats of one vector; options are complete (pith.c fills in defaults). 0 if they do not go with the model. */
size_t pith_embedder_dim(const pith_embedder *embedder, const pith_embed_options *options);
/* Tokens a text is cut at; 0: never. */
int32_t pith_embedder_max_length(const pith_embedder *embedder, const pith_embed_options *options);

/* See pith_embed. */
pith_status pith_embedder_run(float *vectors, pith_embedder *embedder, const pith_str *texts, size_t count,
                              const pith_embed_options *options, pith_error *err);

#endif
