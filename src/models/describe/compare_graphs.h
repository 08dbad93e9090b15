/* compare_graphs.h - compares the optimised graph with the graph as written, on made-up inputs.
 *
 * The reference is the model at optimisation level 0. Inputs of several shapes and masks are made
 * from a seed. If results differ by more than rounding can explain, a binary search over the number
 * of passes finds the first guilty one. The inner values before and after that pass then show the
 * first node. */
#ifndef PITH_MODELS_DESCRIBE_COMPARE_GRAPHS_H
#define PITH_MODELS_DESCRIBE_COMPARE_GRAPHS_H

#include "models/open/open_model.h"
#include "pith/source.h"

/* Implements pith_source_check_fusions. The caller has set the floating-point mode, here and below.
 */
pith_status pith__compare_graphs(size_t *findings, const pith_source *source,
                                 const pith_check_options *options, pith_error *err);

/* The part "checks" (base/optional_part.h): opens a model with every pass left out whose result
 * does not hold. */
typedef struct pith__compare_graphs_part {
    pith_status (*open)(pith_model **model, const pith__origin *origin,
                        const pith_open_options *options, pith_error *err);
} pith__compare_graphs_part;

#endif
