/* dense_request.h - the request of the head "dense", one vector per text, and of "sparse_code": the
 * same vector, of which most components are 0, as indices and values. */
#ifndef PITH_MODELS_HEADS_DENSE_REQUEST_H
#define PITH_MODELS_HEADS_DENSE_REQUEST_H

#include "models/heads/collected_results.h"
#include "models/heads/head.h"
#include "pith/embed.h"

typedef struct pith__dense_request {
    int32_t pooling;   /* pith_pooling */
    int32_t normalize; /* a pith_choice: whether vectors are scaled to length 1 */
    int32_t dim;       /* keep this many components, cut before normalisation; 0: what the model
                          says, else all */
    float *vectors;    /* [texts, pith__dense_dim], row i for text i; not read by pith__dense_dim */
    pith__collected
        *weights; /* of the head "sparse_code" instead: receives pith__sparse_weight items
                     (models/heads/sparse_request.h) */
} pith__dense_request;

/* Returns the components of one vector, or 0 if the request does not fit the model. */
size_t pith__dense_dim(const pith__head_model *model, const pith__dense_request *request);
/* What the head would do for a request: *pooling is PITH_POOL_*, *dim the components that are kept,
 * 0 for all. Fails as the head does. */
pith_status pith__dense_choose(uint32_t *pooling, bool *normalize, int64_t *dim,
                               const pith__head_model *model, const pith__dense_request *request,
                               pith_error *err);
/* Makes the vector of a text from those of its chunks: mean[i] = sums[i] / weight, then normalised
 * as the request says. mean: [pith__dense_dim]. */
pith_status pith__dense_mean(float *mean, const pith__head_model *model,
                             const pith__dense_request *request, const double *sums, double weight,
                             pith_error *err);

#endif
