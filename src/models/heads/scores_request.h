/* scores_request.h - the request of the head "scores": the logits of a classifier, or what an
 * activation makes of them. */
#ifndef PITH_MODELS_HEADS_SCORES_REQUEST_H
#define PITH_MODELS_HEADS_SCORES_REQUEST_H

#include "models/heads/head.h"
#include "pith/score.h"

typedef struct pith__scores_request {
    pith_activation activation; /* not PITH_ACTIVATION_MODEL */
    float *scores;              /* [texts, width of the output], row i for text i */
} pith__scores_request;

#endif
