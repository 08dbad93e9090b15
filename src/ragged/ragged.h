/* ragged.h - the packed form of a graph: [batch, sequence, …] becomes [tokens, …], texts laid one after the other. */
#ifndef PITH_RAGGED_RAGGED_H
#define PITH_RAGGED_RAGGED_H

#include "opt/pass.h"

/* The ragged form of a text encoder: a new graph over packed tokens, made from an optimised one, which stays as it is.
 *   inputs   input_ids [tokens] (and token_type_ids [tokens] if the model has them), in the model's integer type;
 *            pith.positions [tokens] i64: index of each token in its text
 *            pith.offsets [texts + 1] i64: where each text begins
 *   outputs  the model's, with [batch, sequence, …] as [tokens, …] and [batch, …] as [texts, …]
 * Its symbols are "tokens" and "texts + 1"; the length of the longest text is known in the run only.
 * output: the only one that is wanted; -1: all. *ragged is NULL if some node that is needed cannot be shown row-wise;
 * then reason names the first to blame and why. */
pith_status pith_ragged_make(pith_graph **ragged, pith_str *reason, int output, pith_opt *o);

#endif
