/* sparse_request.h - the request of the head "sparse": weights of vocabulary entries. */
#ifndef PITH_MODELS_HEADS_SPARSE_REQUEST_H
#define PITH_MODELS_HEADS_SPARSE_REQUEST_H

#include "models/heads/collected_results.h"
#include "models/heads/head.h"

typedef struct pith__sparse_weight {
    int32_t index;
    float value; /* not 0; greater than 0, unless it is that of a word that stands for itself */
} pith__sparse_weight;

typedef struct pith__sparse_request {
    const int32_t *skip; /* [skip_count] ascending ids without weight, where tokens have one weight
                            each */
    size_t skip_count;
    pith__collected *weights; /* receives pith__sparse_weight items, by ascending index */
} pith__sparse_request;

/* Makes a text's result of items by ascending index. most > 0: the so many largest are kept, those
 * with the lowest index of equal ones; items are put in another order then. */
pith_status pith__sparse_put(pith__collected *weights, size_t text, pith__sparse_weight *items,
                             size_t count, int32_t most, pith_error *err);
/* The same of those numbers in row [width] that are greater than 0. */
pith_status pith__sparse_put_row(pith__collected *weights, size_t text, const float *row,
                                 int64_t width, int32_t most, pith__arena *scratch,
                                 pith_error *err);

#endif
