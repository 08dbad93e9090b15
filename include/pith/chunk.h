/* chunk.h - long texts in pieces that a model sees whole.
 *
 *     pith_chunk chunk = PITH_CHUNK_INIT;
 *     while (!chunk.last) {
 *         if (pith_chunk_text(&chunk, model, text, NULL, &err)) return fail(err.message);
 *         part = (pith_str){ text.data + chunk.begin, chunk.end - chunk.begin };
 *         if (pith_embed(vector, model, &part, 1, NULL, &err)) return fail(err.message);
 *     }
 *
 * A chunk is a text of its own: embedded under the same options it gets its prompt and special
 * tokens, and is not cut. */
#ifndef PITH_CHUNK_H
#define PITH_CHUNK_H

#include "pith/call.h"
#include "pith/embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of a text, and where to look for the next one. */
typedef struct pith_chunk {
    size_t begin, end; /* its place in the text, in bytes, between characters */
    size_t tokens;     /* of these bytes as a text, without the prompt and special tokens */
    size_t next;       /* where the next chunk begins; with overlap, before end */
    size_t fresh;      /* where it would begin without overlap */
    int32_t last;      /* 1: there is no next one */
} pith_chunk;

/* clang-format off */
#define PITH_CHUNK_INIT { 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* In the call context, the three ways to end a call have an effect: one thread finds a chunk. */
typedef struct pith_chunk_options {
    pith_call call;
    int32_t overlap; /* tokens that a chunk repeats from the one before it, at most; as many as
                        begin with a whole word. Less than half of what a chunk holds. */
    const pith_embed_options *embed; /* max_length: tokens of a chunk, prompt and special tokens
                                        included; prompt_name. NULL: the defaults */
} pith_chunk_options;

#define PITH_CHUNK_OPTIONS_INIT PITH_OPTIONS_INIT(pith_chunk_options)

/* Sets *chunk to the chunk that follows it in the text; the first one follows PITH_CHUNK_INIT. Call
 * it until last is 1, with the same text and options. A text that is not too long is one chunk,
 * from its beginning to its end. Else each chunk ends behind the last word that fits, or within a
 * word of more than half a chunk. White space, and what else the tokenizer drops, belongs to no
 * chunk where it lies between two. A text that is not UTF-8, and a max_length that has no room for
 * a character, give PITH_ERR_ARGUMENT. Thread-safe. */
PITH_API pith_status pith_chunk_text(pith_chunk *chunk, const pith_model *model, pith_str text,
                                     const pith_chunk_options *options, pith_error *err);

/* Writes the vector of a text of several chunks to mean, float[pith_embed_dim]: sums[i] / tokens,
 * then scaled to length 1 if pith_embed does so under these options. sums: double[pith_embed_dim],
 * the chunks' vectors, each times the chunk's tokens, added up in order; tokens: the sum of these.
 * Thread-safe. */
PITH_API pith_status pith_chunk_mean(float *mean, const pith_model *model, const double *sums,
                                     uint64_t tokens, const pith_embed_options *options,
                                     pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
