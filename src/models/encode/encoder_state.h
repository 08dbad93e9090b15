/* encoder_state.h - the inside of an encoder, shared by encoder.c, which makes it, encode_call.c,
 * which runs it, and text_chunks.c, which cuts texts for it. */
#ifndef PITH_MODELS_ENCODE_ENCODER_STATE_H
#define PITH_MODELS_ENCODE_ENCODER_STATE_H

#include "engine/runtime/idle_runners.h"
#include "models/encode/encoder.h"
#include "models/encode/text_inputs.h"

/* The smallest chunk, in tokens per thread, that each thread runs by itself. Every chunk reads all
 * weights once, so fewer tokens are faster as one chunk that all threads share. */
#define PITH_CHUNK_TOKENS_MIN 128

struct pith__encoder {
    pith__encoder_parts parts;
    int outputs[PITH_ENCODER_OUTPUTS];             /* of parts, whose own array is not kept */
    pith__head_model models[PITH_ENCODER_OUTPUTS]; /* of these outputs */
    pith__arena arena;
    pith__text_inputs text_inputs;
    int32_t dropped;          /* id of a token that is left out of texts; -1: none */
    int32_t token_characters; /* the median length of a token, if texts are cut by characters; else
                                 0 */
    int64_t chunk_tokens;     /* the default token budget of a chunk */
    pith__trace_fn *trace;
    void *trace_context;
    pith__idle_runners idle;
};

/* Whether the tokenizer adds no special tokens to the texts of this job. */
bool pith__encode_is_bare(const pith__encoder *encoder, const pith__encode_job *job);
/* Returns the text's first characters, if the model cuts texts so, else the text. */
pith_str pith__encode_cut_characters(const pith__encoder *encoder, int32_t max_length,
                                     pith_str text);

#endif
