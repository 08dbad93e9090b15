/* check_inputs.h - made-up inputs for a graph: the same for the same seed and run. */
#ifndef PITH_MODEL_CHECK_INPUTS_H
#define PITH_MODEL_CHECK_INPUTS_H

#include "graph/graph.h"

/* A number that depends on its arguments alone. */
uint64_t pith_check_random(uint64_t seed, uint64_t run, uint64_t i);

/* How many rows the input's elements may index: the least number of rows of the tables they select from; 2 if they
 * select from none. */
int64_t pith_check_index_limit(const pith_graph *graph, const char *input);

/* Is an input of this name an attention mask? */
bool pith_check_is_mask(pith_str name);

/* Tensors for all inputs of the graph; those with a default are left out (dtype PITH_UNDEFINED). Each run has other
 * sizes for symbols and another kind of attention mask. text: what was chosen, for messages. */
pith_status pith_check_inputs(pith_tensor *inputs, const pith_graph *graph, uint64_t seed, uint64_t run, char *text,
                              size_t size, pith_arena *arena, pith_error *err);

#endif
