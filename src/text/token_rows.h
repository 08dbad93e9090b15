/* token_rows.h - pith_tokens as a table of columns: one block of memory that grows, rows that are copied. */
#ifndef PITH_TEXT_TOKEN_ROWS_H
#define PITH_TEXT_TOKEN_ROWS_H

#include "base/memory.h"
#include "pith/tokens.h"

/* PITH_ERR_ARGUMENT unless the struct is one of this library's version. */
pith_status pith_tokens_check(const pith_tokens *tokens, pith_error *err);
/* What a token takes. */
size_t pith_tokens_row_bytes(void);
/* Room for more tokens behind tokens->count. False: out of memory. */
bool pith_tokens_reserve(pith_tokens *tokens, const pith_allocator *allocator, size_t more);
/* What pith_tokens_free does. */
void pith_token_rows_free(pith_tokens *tokens);
/* Rows [begin, begin + n) of `from` to rows at …; the two may be one and overlap. Room must be there. Without offsets
 * begin and end are left out. */
void pith_tokens_copy(pith_tokens *to, size_t at, const pith_tokens *from, size_t begin, size_t n, bool offsets);
/* Row i becomes a token that stands for no text. */
void pith_tokens_put(pith_tokens *tokens, size_t i, int32_t id, int32_t type_id, uint32_t window, bool attention);

#endif
