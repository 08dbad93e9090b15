/* token_vectors_request.h - the request of the heads "multi_vector" and "tokens": one vector per
 * token. */
#ifndef PITH_MODELS_HEADS_TOKEN_VECTORS_REQUEST_H
#define PITH_MODELS_HEADS_TOKEN_VECTORS_REQUEST_H

#include "models/heads/collected_results.h"
#include "models/heads/head.h"

typedef struct pith__token_vectors_request {
    bool normalize;      /* to length 1 */
    bool skip_first;     /* the first token has no vector */
    const int32_t *skip; /* [skip_count] ascending ids of tokens that have no vector */
    size_t skip_count;
    const int32_t *keep; /* [keep_count] ascending ids of the only tokens that have a vector; count
                            0: all */
    size_t keep_count;
    const pith__token_pool_settings *pool; /* of the vectors that are left; NULL: none */
    pith__collected *tokens; /* receives an item of 1 + width 4-byte numbers per token: all ids,
                                then all vectors */
} pith__token_vectors_request;

#endif
