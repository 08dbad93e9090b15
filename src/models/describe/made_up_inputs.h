/* made_up_inputs.h - made-up inputs for a graph. The same seed and run give the same inputs. */
#ifndef PITH_MODELS_DESCRIBE_MADE_UP_INPUTS_H
#define PITH_MODELS_DESCRIBE_MADE_UP_INPUTS_H

#include "engine/graph/graph.h"

/* Returns a pseudo-random number that depends only on the arguments. */
uint64_t pith__made_up_random(uint64_t seed, uint64_t run, uint64_t i);

/* Returns an upper bound for the elements of an input that holds indices: the number of rows of the
 * smallest table it indexes, or 2 if it indexes none. */
int64_t pith__made_up_index_limit(const pith__graph *graph, const char *input);

/* True if an input of this name is an attention mask. */
bool pith__made_up_is_mask(pith_str name);

/* Makes tensors for all inputs of the graph. Inputs with a default are left out (dtype
 * PITH_UNDEFINED). Each run uses other sizes for the symbols and another kind of attention mask;
 * text receives a description for messages. */
pith_status pith__made_up_inputs(pith_tensor *inputs, const pith__graph *graph, uint64_t seed,
                                 uint64_t run, char *text, size_t size, pith__arena *arena,
                                 pith_error *err);

#endif
