/* graph_cut.h - a part of a graph, and constants that are stored once. */
#ifndef PITH_FORMATS_EXPORT_GRAPH_CUT_H
#define PITH_FORMATS_EXPORT_GRAPH_CUT_H

#include "engine/graph/graph.h"

typedef struct pith__graph_cut_part {
    const char *const *inputs, *const *outputs; /* names of values of the main graph */
    size_t input_count, output_count;           /* 0: those that the graph has */
} pith__graph_cut_part;

/* Keeps what the outputs need of the inputs. Types are inferred, and must be inferred again. A name
 * that is no value's, a constant as an input, and an input of the graph that is still needed but
 * not named are PITH_ERR_ARGUMENT. */
pith_status pith__graph_cut(pith__graph *graph, const pith__graph_cut_part *cut, pith_error *err);

/* Constants of the main graph with the same type, shape and contents become one. *shared is their
 * number. Ends when the graph's making must stop. */
pith_status pith__graph_cut_share_constants(size_t *shared, pith__graph *graph, pith_error *err);

#endif
