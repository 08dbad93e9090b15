/* encoder_state.h - the inside of an encoder, shared by encoder.c, which makes it, and encode_call.c, which runs it. */
#ifndef PITH_ENCODE_ENCODER_STATE_H
#define PITH_ENCODE_ENCODER_STATE_H

#include <pthread.h>

#include "encode/encoder.h"
#include "encode/feed.h"

/* A chunk of fewer tokens per thread is better run by all threads together: each chunk reads all weights once. */
#define PITH_CHUNK_TOKENS_MIN 128

struct pith_encoder {
    pith_encoder_parts parts;
    pith_head_model model;
    pith_arena arena;
    pith_feed feed;
    int64_t chunk_tokens; /* the default token budget of a chunk */
    pith_trace_fn *trace;
    void *trace_context;
    pthread_mutex_t lock; /* guards what follows */
    pith_executor **idle;
    size_t idle_count, idle_limit;
};

#endif
