/* word_weights_request.h - the request of the heads "bm42" and "minicoil", and what both do at the
 * end. */
#ifndef PITH_MODELS_HEADS_WORD_WEIGHTS_REQUEST_H
#define PITH_MODELS_HEADS_WORD_WEIGHTS_REQUEST_H

#include "models/heads/collected_results.h"
#include "models/heads/head.h"
#include "models/heads/sparse_request.h"
#include "models/lexical/word_models.h"
#include "models/lexical/wordpiece_words.h"

typedef struct pith__word_weights_request {
    const pith__word_model *word_model;
    pith__wordpiece_source tokens;
    bool query;
    double alpha, k, b, avg_len; /* those of pith_encode_options */
    pith__collected
        *weights; /* receives pith__sparse_weight items (models/heads/sparse_request.h), by
                                    ascending index */
} pith__word_weights_request;

/* The output of a graph that head "bm42" reads: one number per token, which
 * models/modules/attention_row.c makes. */
#define PITH_BM42_OUTPUT "pith.attention_row"

/* Sorts the weights by index and hands them on. Of several with one index the last one counts;
 * zeros are left out. */
pith_status pith__word_weights_put(const pith__word_weights_request *request, size_t text,
                                   pith__sparse_weight *weights, size_t count, pith__arena *scratch,
                                   pith_error *err);

#endif
