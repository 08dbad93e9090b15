/* call.h - the buffers of one thread's work, and the pool a tokenizer keeps them in. */
#ifndef PITH_TEXT_CALL_H
#define PITH_TEXT_CALL_H

#include "text/pipeline.h"

/* Begins a text: source becomes the current text, its one piece the whole of it. Tokens of an earlier text stay. */
bool pith_call_begin(pith_call *call, pith_str source, bool offsets);
/* One rewriting pass: text and out change places, next becomes the list of pieces. */
void pith_call_swap_text(pith_call *call);
void pith_call_swap_pieces(pith_call *call);
/* A piece that keeps its id. */
bool pith_call_emit_piece(pith_call *call, pith_piece piece);

/* Takes a call out of the tokenizer's pool or makes one; NULL if memory is out. Thread-safe. */
pith_call *pith_call_acquire(const pith_tokenizer *tokenizer);
/* Gives it back; very large buffers and calls beyond the pool's places are freed. */
void pith_call_release(pith_call *call);

/* In the tokenizer's arena; false if memory is out. */
bool pith_call_pool_create(pith_tokenizer *tokenizer);
/* Frees the calls that are not in use. Thread-safe. */
void pith_call_pool_free(const pith_tokenizer *tokenizer);

#endif
