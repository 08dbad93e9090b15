/* boosted_trees.h - gradient-boosted trees over binned features.
 *
 * Trees of one depth are added until the loss on the validation rows has not fallen for a while,
 * for each of a few depths; what is left is the depth and the number of trees with the least such
 * loss. Splits are searched in histograms, feature by feature, each by one thread, so that the
 * number of threads changes no bit. Source: Friedman, Annals of Statistics 29(5), 2001; splits of
 * categories by the order of their gradients: LightGBM, NeurIPS 2017. */
#ifndef PITH_TABLES_BASELINE_BOOSTED_TREES_H
#define PITH_TABLES_BASELINE_BOOSTED_TREES_H

#include "base/work.h"
#include "tables/baseline/feature_bins.h"

enum { PITH_TREE_DEPTH = 5, PITH_TREE_NODES = (1 << (PITH_TREE_DEPTH + 1)) - 1 };

/* The children of node i are 2 i + 1 and 2 i + 2. */
typedef struct pith__tree_node {
    int32_t feature;  /* -1: a leaf */
    uint64_t left[4]; /* the bins that go to the first child */
    double value;     /* of a leaf */
} pith__tree_node;

/* What a loss is: of yes or no, of numbers (Huber's with 1 as bound), of one class among several.
 */
typedef enum pith__forest_loss {
    PITH_FOREST_BOOLEAN,
    PITH_FOREST_NUMBER,
    PITH_FOREST_CLASSES
} pith__forest_loss;

typedef struct pith__forest_data {
    uint8_t *const *bins;  /* [features][rows] */
    const bool *category;  /* [features] */
    int features, outputs; /* outputs: 1, or the number of classes */
    pith__forest_loss loss;
    size_t train, validation; /* rows of training come first, then those of validation */
    const double *truths;     /* [train + validation]: 0 or 1, a number, a class */
    const double *start;      /* [outputs] answers before the first tree */
} pith__forest_data;

typedef struct pith__forest {
    pith__tree_node (*trees)[PITH_TREE_NODES]; /* [rounds][outputs] */
    int rounds, outputs, depth;
    double loss; /* mean on the validation rows */
} pith__forest;

/* Grows a forest in the arena; what it needs meanwhile is given back. It uses `threads`, and tells
 * work of "trees". False if memory is out or the call must end. */
bool pith__forest_grow(pith__forest *forest, const pith__forest_data *data, int threads,
                       const pith__work *work, pith__arena *arena);
/* Adds to answers[outputs] what the trees say of a row. bins[feature] is its bin. */
void pith__forest_answer(double *answers, const pith__forest *forest, const uint8_t *bins);
/* The loss of one row's answers [outputs]. */
double pith__forest_loss_of(pith__forest_loss loss, int outputs, const double *answers,
                            double truth);

#endif
