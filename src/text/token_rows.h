/* token_rows.h - pith_tokens as a table of columns: one block of memory that grows, rows that are
 * copied. */
#ifndef PITH_TEXT_TOKEN_ROWS_H
#define PITH_TEXT_TOKEN_ROWS_H

#include "base/memory/memory.h"
#include "pith/tokens.h"

/* PITH_ERR_ARGUMENT unless the struct is one of this library's version. */
pith_status pith__tokens_check(const pith_tokens *tokens, pith_error *err);
/* Returns the bytes per token. */
size_t pith__tokens_row_bytes(void);
/* Makes room for `more` tokens behind tokens->count. Returns false if memory is out. */
bool pith__tokens_reserve(pith_tokens *tokens, const pith_allocator *allocator, size_t more);
/* Implements pith_tokens_free. */
void pith__token_rows_free(pith_tokens *tokens);
/* Copies rows [begin, begin + n) of `from` to row `at` of `to`, which may be the same table and may
 * overlap. `to` must have room. Without offsets, begin and end are not copied. */
void pith__tokens_copy(pith_tokens *to, size_t at, const pith_tokens *from, size_t begin, size_t n,
                       bool offsets);
/* Sets row i to a token without text. */
void pith__tokens_put(pith_tokens *tokens, size_t i, int32_t id, int32_t type_id, uint32_t window,
                      bool attention);

#endif
