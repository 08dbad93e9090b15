/* encoding.h - the buffers of one thread's work, and the pool a tokenizer keeps them in. */
#ifndef PITH_TEXT_ENCODING_H
#define PITH_TEXT_ENCODING_H

#include "text/pipeline.h"

/* Begins a text: source becomes the current text, its one piece the whole of it. Tokens of an
 * earlier text stay. */
bool pith__encoding_begin(pith__encoding *enc, pith_str source, bool offsets);
/* One rewriting pass: text and out change places, next becomes the list of pieces. */
void pith__encoding_swap_text(pith__encoding *enc);
void pith__encoding_swap_pieces(pith__encoding *enc);
/* A piece that keeps its id. */
bool pith__encoding_emit_piece(pith__encoding *enc, pith__piece piece);

/* Takes an encoding out of the tokenizer's pool or makes one; NULL if memory is out. Thread-safe.
 */
pith__encoding *pith__encoding_acquire(const pith_tokenizer *tokenizer);
/* Gives it back; very large buffers and calls beyond the pool's places are freed. */
void pith__encoding_release(pith__encoding *enc);

/* Returns the bytes that the pool lacks for `count` encodings in use at once, each as large as the
 * largest that is idle. Thread-safe. */
size_t pith__encoding_missing_bytes(const pith_tokenizer *tokenizer, size_t count);

/* In the tokenizer's arena; false if memory is out. */
bool pith__encoding_pool_create(pith_tokenizer *tokenizer);
/* Frees the calls that are not in use. Thread-safe. */
void pith__encoding_pool_free(const pith_tokenizer *tokenizer);

#endif
