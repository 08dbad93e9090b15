/* replace_pith_ops.h - operators of the domain "pith", which passes and upgrades make, as operators
 * that other engines have. */
#ifndef PITH_FORMATS_EXPORT_REPLACE_PITH_OPS_H
#define PITH_FORMATS_EXPORT_REPLACE_PITH_OPS_H

#include "engine/graph/graph.h"

typedef struct pith__replace_form {
    bool standard; /* only operators of ai.onnx; else those of com.microsoft, too */
    bool all;      /* of com.microsoft: also RotaryEmbedding, GroupQueryAttention,
                EmbedLayerNormalization, attention whose mask has to be spread over all pairs of
                tokens, and SimplifiedLayerNormalization for opsets before 23 */
    int32_t opset; /* of ai.onnx: newer operators have forms of com.microsoft, or are lowered later
                      (formats/export/older_opset.h) */
} pith__replace_form;

/* Rewrites the nodes of the main graph and of its subgraphs. Types are inferred, and are set for
 * what is made; they cannot be inferred any more. PITH_ERR_UNSUPPORTED names a node that has no
 * such form, and why; the graph is then unspecified. */
pith_status pith__replace_pith_ops(pith__graph *graph, const pith__replace_form *how,
                                   pith_error *err);
/* The same check without a change. *at: the node at fault. */
pith_status pith__replace_check(const pith__graph *graph, const pith__replace_form *how,
                                const pith__node **at, pith_error *err);

#endif
