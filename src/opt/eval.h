/* eval.h - one node run on concrete tensors while the graph is still being rewritten: for constant folding and for
 * probes that ask what a subgraph computes. On this thread alone; nodes with subgraphs are refused. */
#ifndef PITH_OPT_EVAL_H
#define PITH_OPT_EVAL_H

#include "ops/op.h"

/* in[i] goes with node->inputs[i], NULL for an absent one. out has node->output_count places; the data come from arena.
 * Outputs of more than max_bytes in sum are refused with PITH_ERR_UNSUPPORTED before anything is computed. */
pith_status pith_eval_node(pith_tensor *out, const pith_node *node, const pith_tensor *const *in, size_t max_bytes,
                           pith_arena *arena, pith_error *err);

#endif
