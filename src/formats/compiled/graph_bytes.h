/* graph_bytes.h - a planned graph as bytes, and back.
 *
 * Nodes are written as they are. Types are not written; they are inferred again from those of the
 * inputs. A constant that all its readers have packed is written without contents
 * (PITH_VALUE_PACKED); the packed form is stored with the node, in the order in which its operator
 * asks for it. The reader treats the bytes as hostile: its graph keeps the invariants of graph.h,
 * and infer and prepare check the rest, as for any model. */
#ifndef PITH_FORMATS_COMPILED_GRAPH_BYTES_H
#define PITH_FORMATS_COMPILED_GRAPH_BYTES_H

#include "engine/plan/plan.h"
#include "formats/compiled/constant_spans.h"
#include "formats/compiled/wire_bytes.h"

/* plan is the plan of this graph. */
pith_status pith__graph_write(pith__bytes_out *out, pith__constant_spans_out *weights,
                              const pith__graph *graph, const pith__plan *plan, pith_error *err);

/* Bytes and weights must outlive the graph. Its nodes have no operators yet. */
pith_status pith__graph_read(pith__graph **graph, pith__bytes_in *in,
                             const pith__constant_spans_in *weights, pith__arena *arena,
                             const pith_log *log);

/* ---- parts that other sections have as well ---- */

/* Types whose sizes are numbers, symbols (written by name) or unknown; expressions are written as
 * unknown. */
void pith__type_write(pith__bytes_out *out, const pith__dims *dims, const pith__type *type);
void pith__type_read(pith__type *type, pith__bytes_in *in, pith__dims *dims);

#endif
