/* check.h - compares what the passes made of a graph with the graph as written, on made-up inputs.
 *
 * The reference is the model at optimisation level 0. Inputs of several shapes and masks are made from a seed. Where
 * results differ by more than rounding explains, the number of times passes may run is halved until the first guilty
 * pass is found; then the inner values before and after that pass are compared to find the first node. */
#ifndef PITH_CHECK_H
#define PITH_CHECK_H

#include "model.h"

/* A model as pith_model_open makes it, with passes limited; path, or the bytes of a file if it is NULL. The caller has
 * set the floating-point mode, here and below. */
pith_status pith_model_open_limited(pith_model **model, const char *path, pith_str bytes,
                                    const pith_open_options *options, const pith_opt_limits *limits, pith_error *err);

/* The same with every pass left out whose result does not hold; each is warned about once. */
pith_status pith_model_open_checked(pith_model **model, const char *path, pith_str bytes,
                                    const pith_open_options *options, pith_error *err);

#endif
