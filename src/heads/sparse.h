/* sparse.h - the request of the head "sparse": weights of vocabulary entries. */
#ifndef PITH_HEADS_SPARSE_H
#define PITH_HEADS_SPARSE_H

#include "heads/collected.h"
#include "heads/head.h"

typedef struct pith_sparse_weight {
    int32_t index;
    float value; /* greater than 0 */
} pith_sparse_weight;

typedef struct pith_sparse {
    const int32_t *skip; /* [skip_count] ascending ids without weight, where tokens have one weight each */
    size_t skip_count;
    pith_collected *weights; /* receives pith_sparse_weight items, by ascending index */
} pith_sparse;

#endif
