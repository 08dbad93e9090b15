/* lower.h - rewrites nodes into the operators of an older opset. */
#ifndef PITH_EXPORT_LOWER_H
#define PITH_EXPORT_LOWER_H

#include "graph/graph.h"

/* The oldest opset that is written: older ones lack LayerNormalization. */
#define PITH_EXPORT_OPSET_LEAST 17

/* Rewrites the nodes of ai.onnx whose form is newer than the opset. Types are inferred, and must be inferred again
 * after this. PITH_ERR_UNSUPPORTED names the nodes' first operator that has no older form. */
pith_status pith_export_lower(pith_graph *graph, int32_t opset, pith_error *err);

/* The last step: reductions get their axes as an attribute where the opset wants it. Types cannot be inferred any more.
 */
pith_status pith_export_lower_axes(pith_graph *graph, int32_t opset, pith_error *err);

/* Returns the opset of ai.onnx that the graph needs, at least PITH_EXPORT_OPSET_LEAST, if what can be lowered is. */
int32_t pith_export_needs(const pith_graph *graph);

#endif
