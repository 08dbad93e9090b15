/* collected_results.h - results of different size per text, as heads give them one by one. */
#ifndef PITH_MODELS_HEADS_COLLECTED_RESULTS_H
#define PITH_MODELS_HEADS_COLLECTED_RESULTS_H

#include "base/memory/memory.h"

typedef struct pith__collected_piece {
    void *data; /* NULL: none */
    size_t items;
} pith__collected_piece;

typedef struct pith__collected {
    const pith_allocator *allocator;
    pith__collected_piece *pieces; /* [count], one per text; zeros at first */
    size_t count;
} pith__collected;

/* Sets *data to new memory for the result of a text, in place of one it may have. Threads may call
 * this at the same time for different texts. */
pith_status pith__collected_put(void **data, pith__collected *collected, size_t text, size_t items,
                                size_t item_bytes, pith_error *err);
/* The text has no items, whatever it had. Returns PITH_OK. */
pith_status pith__collected_put_none(pith__collected *collected, size_t text);
/* The number of items of all texts. */
size_t pith__collected_items(const pith__collected *collected);
/* Frees the pieces, not the array. */
void pith__collected_free(pith__collected *collected);

#endif
