/* dense.h - the request of the head "dense", one vector per text, and of "sparse_code": the same vector, of which most
 * components are 0, as indices and values. */
#ifndef PITH_MODELS_HEADS_DENSE_H
#define PITH_MODELS_HEADS_DENSE_H

#include "models/heads/collected_results.h"
#include "models/heads/head.h"
#include "pith/embed.h"

typedef struct pith_dense {
    int32_t pooling;         /* pith_pooling */
    int32_t normalize;       /* -1: what modules.json says; 0: no; 1: to length 1 */
    int32_t dim;             /* keep this many components, cut before normalisation; 0: what the model says, else all */
    float *vectors;          /* [texts, pith_dense_dim], row i for text i; not read by pith_dense_dim */
    pith_collected *weights; /* of the head "sparse_code" instead: receives pith_sparse_weight items (models/heads/sparse.h) */
} pith_dense;

/* Returns the components of one vector, or 0 if the request does not fit the model. */
size_t pith_dense_dim(const pith_head_model *model, const pith_dense *request);
/* What the head would do for a request: *pooling is PITH_POOL_*, *dim the components that are kept, 0 for all. Fails as
 * the head does. */
pith_status pith_dense_choose(uint32_t *pooling, bool *normalize, int64_t *dim, const pith_head_model *model,
                              const pith_dense *request, pith_error *err);
/* Makes the vector of a text from those of its chunks: mean[i] = sums[i] / weight, then normalised as the request says.
 * mean: [pith_dense_dim]. */
pith_status pith_dense_mean(float *mean, const pith_head_model *model, const pith_dense *request, const double *sums,
                            double weight, pith_error *err);

#endif
