/* ml_scores.h - helpers for the classifiers and regressors of ai.onnx.ml: transforms of scores, and
 * class labels. */
#ifndef PITH_ENGINE_OPS_SHARED_ML_SCORES_H
#define PITH_ENGINE_OPS_SHARED_ML_SCORES_H

#include "engine/ops/shared/as_doubles.h"

typedef enum pith__post {
    PITH_POST_NONE,
    PITH_POST_SOFTMAX,
    PITH_POST_LOGISTIC,
    PITH_POST_SOFTMAX_ZERO,
    PITH_POST_PROBIT
} pith__post;

/* The attribute post_transform, as a name. */
pith_status pith__post_read(pith__post *post, const pith__node *node, pith_error *err);
/* Scores of one row, in place. */
void pith__post_apply(pith__post post, double *y, int64_t n);
/* A lone score s as those of two classes: -s and s, or for NONE `rest` - s and s; then transformed.
 */
void pith__post_second(pith__post post, double *y, double rest);

/* The labels of an attribute for strings, or of one for integers. */
typedef struct pith__labels {
    const pith_str *strings; /* NULL: ints */
    const int64_t *ints;
    int64_t count;
} pith__labels;
pith__labels pith__labels_read(const pith__node *node, const char *strings, const char *ints);
void pith__labels_put(const pith__labels *labels, pith_tensor *to, int64_t row, int64_t label);

#endif
