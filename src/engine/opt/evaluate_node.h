/* evaluate_node.h - running one node on concrete tensors while the graph is still being rewritten,
 * for constant folding and for probes that find out what a subgraph computes. It uses this thread
 * only, and refuses nodes with subgraphs. */
#ifndef PITH_ENGINE_OPT_EVALUATE_NODE_H
#define PITH_ENGINE_OPT_EVALUATE_NODE_H

#include "engine/ops/op.h"

/* in[i] goes with node->inputs[i], NULL for an absent one. out has node->output_count places; the
 * data come from arena. If the outputs need more than max_bytes together, returns
 * PITH_ERR_UNSUPPORTED before anything is computed. */
pith_status pith__eval_node(pith_tensor *out, const pith__node *node, const pith_tensor *const *in,
                            size_t max_bytes, pith__arena *arena, pith_error *err);

#endif
