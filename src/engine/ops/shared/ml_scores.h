/* ml_scores.h - helpers for the classifiers and regressors of ai.onnx.ml: transforms of scores, and class labels. */
#ifndef PITH_ENGINE_OPS_SHARED_ML_SCORES_H
#define PITH_ENGINE_OPS_SHARED_ML_SCORES_H

#include "engine/ops/shared/as_doubles.h"

typedef enum pith_post {
    PITH_POST_NONE,
    PITH_POST_SOFTMAX,
    PITH_POST_LOGISTIC,
    PITH_POST_SOFTMAX_ZERO,
    PITH_POST_PROBIT
} pith_post;

/* The attribute post_transform, as a name. */
pith_status pith_post_read(pith_post *post, const pith_node *node, pith_error *err);
/* Scores of one row, in place. */
void pith_post_apply(pith_post post, double *y, int64_t n);
/* A lone score s as those of two classes: -s and s, or for NONE `rest` - s and s; then transformed. */
void pith_post_second(pith_post post, double *y, double rest);

/* The labels of an attribute for strings, or of one for integers. */
typedef struct pith_labels {
    const pith_str *strings; /* NULL: ints */
    const int64_t *ints;
    int64_t count;
} pith_labels;
pith_labels pith_labels_read(const pith_node *node, const char *strings, const char *ints);
void pith_labels_put(const pith_labels *labels, pith_tensor *to, int64_t row, int64_t label);

#endif
