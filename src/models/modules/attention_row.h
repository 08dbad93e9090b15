/* attention_row.h - what the first token attends to, as one more output of a graph that has
 * attention as an output. */
#ifndef PITH_MODELS_MODULES_ATTENTION_ROW_H
#define PITH_MODELS_MODULES_ATTENTION_ROW_H

#include "engine/graph/graph.h"

/* Models of BM42 have the output attention_6, [batch, heads, tokens, tokens]. Appends the output
 * `name` to such a graph, [batch, tokens, 1]: the first row of each head, in the mean over the
 * heads. Sets *output to its index, or to -1 if the graph has no such output. The types of the
 * graph are inferred; those of the new nodes are not. */
pith_status pith__attention_row_append(int *output, pith__graph *graph, const char *name,
                                       pith_error *err);

#endif
