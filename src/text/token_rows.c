/* token_rows.c - the columns of pith_tokens follow one another in one block. The block begins with
 * a copy of the allocator that made it, so a host can free the tokens without the tokenizer. */
#include "text/token_rows.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Bytes before the first column; a multiple of the alignment of the block. */
#define BLOCK_HEAD 64

typedef struct column {
    size_t place; /* of the pointer in pith_tokens */
    size_t size;  /* of an item */
} column;

#define COLUMN(name)                                                                               \
    { offsetof(pith_tokens, name), sizeof *((pith_tokens *)0)->name }

/* The offsets first; larger items before smaller ones, so that each is aligned. */
static const column columns[] = {
    COLUMN(begin),   COLUMN(end),          COLUMN(ids),     COLUMN(type_ids),  COLUMN(word_ids),
    COLUMN(windows), COLUMN(sequence_ids), COLUMN(special), COLUMN(attention),
};

enum { OFFSETS = 2, COLUMNS = sizeof columns / sizeof columns[0] };

static char *token_rows_get(const pith_tokens *tokens, size_t c) {
    char *data;
    memcpy(&data, (const char *)tokens + columns[c].place, sizeof data);
    return data;
}

pith_status pith__tokens_check(const pith_tokens *tokens, pith_error *err) {
    if (tokens->size == sizeof *tokens) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "the pith_tokens struct has the wrong size; initialise it with "
                      "PITH_TOKENS_INIT of this version");
}

size_t pith__tokens_row_bytes(void) {
    size_t width = 0;
    for (size_t c = 0; c < COLUMNS; c++) width += columns[c].size;
    return width;
}

/* Grows all columns at once: one block for all of them, half as large again as needed, so that the
 * cost per token is constant. The old block is freed with the allocator that made it, whose copy is
 * in the block's head. */
bool pith__tokens_reserve(pith_tokens *tokens, const pith_allocator *allocator, size_t more) {
    size_t need, bytes;
    if (pith__add_overflows(tokens->count, more, &need)) return false;
    if (need <= tokens->capacity) return true;
    size_t capacity = need + need / 2 + 64;
    if (pith__mul_overflows(capacity, pith__tokens_row_bytes(), &bytes)) return false;
    char *block = pith__memory_alloc(allocator, BLOCK_HEAD + bytes, BLOCK_HEAD);
    if (!block) return false;
    char *data = block + BLOCK_HEAD;
    pith_tokens old = *tokens;
    memcpy(block, allocator, sizeof *allocator);
    for (size_t c = 0; c < COLUMNS; c++) {
        memcpy((char *)tokens + columns[c].place, &data, sizeof data);
        data += capacity * columns[c].size;
    }
    tokens->capacity = capacity;
    if (old.capacity) {
        pith__tokens_copy(tokens, 0, &old, 0, old.count, true);
        pith__token_rows_free(&old);
    }
    return true;
}

void pith__token_rows_free(pith_tokens *tokens) {
    if (!tokens || !tokens->capacity) return;
    pith_allocator allocator;
    char *block = token_rows_get(tokens, 0) - BLOCK_HEAD;
    memcpy(&allocator, block, sizeof allocator);
    pith__memory_free(&allocator, block);
    *tokens = (pith_tokens)PITH_TOKENS_INIT;
}

void pith__tokens_copy(pith_tokens *to, size_t at, const pith_tokens *from, size_t begin, size_t n,
                       bool offsets) {
    if (!n) return;
    for (size_t c = offsets ? 0 : OFFSETS; c < COLUMNS; c++) {
        size_t size = columns[c].size;
        memmove(token_rows_get(to, c) + at * size, token_rows_get(from, c) + begin * size,
                n * size);
    }
}

void pith__tokens_put(pith_tokens *tokens, size_t i, int32_t id, int32_t type_id, uint32_t window,
                      bool attention) {
    tokens->ids[i] = id;
    tokens->type_ids[i] = type_id;
    tokens->begin[i] = tokens->end[i] = 0;
    tokens->word_ids[i] = -1;
    tokens->sequence_ids[i] = -1;
    tokens->windows[i] = window;
    tokens->special[i] = 1;
    tokens->attention[i] = attention;
}
