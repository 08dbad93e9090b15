/* encoding.h - the buffers of one thread's work, and the pool a tokenizer keeps them in. */
#ifndef PITH_TEXT_ENCODING_H
#define PITH_TEXT_ENCODING_H

#include "text/pipeline.h"

/* Begins a text: source becomes the current text, its one piece the whole of it. Tokens of an earlier text stay. */
bool pith_encoding_begin(pith_encoding *enc, pith_str source, bool offsets);
/* One rewriting pass: text and out change places, next becomes the list of pieces. */
void pith_encoding_swap_text(pith_encoding *enc);
void pith_encoding_swap_pieces(pith_encoding *enc);
/* A piece that keeps its id. */
bool pith_encoding_emit_piece(pith_encoding *enc, pith_piece piece);

/* Takes an encoding out of the tokenizer's pool or makes one; NULL if memory is out. Thread-safe. */
pith_encoding *pith_encoding_acquire(const pith_tokenizer *tokenizer);
/* Gives it back; very large buffers and calls beyond the pool's places are freed. */
void pith_encoding_release(pith_encoding *enc);

/* Returns the bytes that the pool lacks for `count` encodings in use at once, each as large as the largest that is
 * idle. Thread-safe. */
size_t pith_encoding_missing_bytes(const pith_tokenizer *tokenizer, size_t count);

/* In the tokenizer's arena; false if memory is out. */
bool pith_encoding_pool_create(pith_tokenizer *tokenizer);
/* Frees the calls that are not in use. Thread-safe. */
void pith_encoding_pool_free(const pith_tokenizer *tokenizer);

#endif
