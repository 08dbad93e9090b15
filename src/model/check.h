/* check.h - compares what the passes made of a graph with the graph as written, on made-up inputs.
 *
 * The reference is the model at optimisation level 0. Inputs of several shapes and masks are made from a seed. Where
 * results differ by more than rounding explains, the number of times passes may run is halved until the first guilty
 * pass is found; then the inner values before and after that pass are compared to find the first node. */
#ifndef PITH_MODEL_CHECK_H
#define PITH_MODEL_CHECK_H

#include "model/model.h"

/* What pith_model_check_fusions does. The caller has set the floating-point mode, here and below. */
pith_status pith_model_check_passes(size_t *findings, const char *path, const pith_check_options *options,
                                    pith_error *err);

/* What pith_model_open and pith_model_open_memory do: checked if the options ask for it. path, or bytes if it is NULL.
 */
pith_status pith_model_make(pith_model **model, const char *path, pith_str bytes, const pith_open_options *options,
                            pith_error *err);

#endif
