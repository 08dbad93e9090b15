/* ragged.h - the packed form of a graph: [batch, sequence, …] becomes [tokens, …], the texts packed
 * one after the other. */
#ifndef PITH_ENGINE_RAGGED_RAGGED_H
#define PITH_ENGINE_RAGGED_RAGGED_H

#include "engine/opt/pass.h"

/* Makes the ragged form of a text encoder: a new graph over packed tokens. The optimised graph is
 * not changed.
 *   inputs   input_ids [tokens] (and token_type_ids [tokens] if the model has them), in the model's
 *            integer type; pith.positions [tokens] i64: index of each token in its text
 *            pith.offsets [texts + 1] i64: where each text begins
 *   outputs  the model's, with [batch, sequence, …] as [tokens, …] and [batch, …] as [texts, …]
 * Its symbols are "tokens" and "texts + 1"; the length of the longest text is known at run time
 * only. outputs has the indexes of the outputs to compute; outputs NULL: all, in the graph's order.
 * *ragged is NULL if a node that is needed may not work row by row; *reason then names the first
 * such node and why. Both are in the arena. */
pith_status pith__ragged_make(pith__graph **ragged, pith_str *reason, const int *outputs,
                              size_t count, pith__opt *o, pith__arena *arena);

#endif
