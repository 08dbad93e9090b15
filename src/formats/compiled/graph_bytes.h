/* graph_bytes.h - a planned graph as bytes, and back.
 *
 * Nodes are written as they are. Types are not written; they are inferred again from those of the inputs. A constant
 * that all its readers have packed is written without contents (PITH_VALUE_PACKED); the packed form is stored with the
 * node, in the order in which its operator asks for it. The reader treats the bytes as hostile: its graph keeps the
 * invariants of graph.h, and infer and prepare check the rest, as for any model. */
#ifndef PITH_FORMATS_COMPILED_GRAPH_BYTES_H
#define PITH_FORMATS_COMPILED_GRAPH_BYTES_H

#include "formats/compiled/wire_bytes.h"
#include "formats/compiled/weights.h"
#include "engine/plan/plan.h"

/* plan is the plan of this graph. */
pith_status pith_graph_write(pith_bytes_out *out, pith_weights_out *weights, const pith_graph *graph,
                             const pith_plan *plan, pith_error *err);

/* Bytes and weights must outlive the graph. Its nodes have no operators yet. */
pith_status pith_graph_read(pith_graph **graph, pith_bytes_in *in, const pith_weights_in *weights, pith_arena *arena,
                            const pith_log *log);

/* ---- parts that other sections have as well ---- */

/* Types whose sizes are numbers, symbols (written by name) or unknown; expressions are written as unknown. */
void pith_type_write(pith_bytes_out *out, const pith_dims *dims, const pith_type *type);
void pith_type_read(pith_type *type, pith_bytes_in *in, pith_dims *dims);

#endif
