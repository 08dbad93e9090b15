/* new_nodes.h - nodes that the steps of an export put into a graph. */
#ifndef PITH_FORMATS_EXPORT_NEW_NODES_H
#define PITH_FORMATS_EXPORT_NEW_NODES_H

#include "engine/graph/graph.h"

/* Where nodes go, and what they are called. After a failure `status` is set, and all calls return
 * NULL. */
typedef struct pith__new_nodes {
    pith__graph *graph;
    pith__node *before; /* NULL: at the end */
    pith_str place;     /* the front of their names */
    pith_status status;
    pith_error *err;
} pith__new_nodes;

/* A node of ai.onnx with one output. */
pith__value *pith__new_node(pith__new_nodes *m, const char *op, pith__value *const *inputs,
                            int count);
#define PITH_NEW_NODE(m, op, ...)                                                                  \
    pith__new_node(m, op, (pith__value *[]){ __VA_ARGS__ },                                        \
                   (int)(sizeof((pith__value *[]){ __VA_ARGS__ }) / sizeof(pith__value *)))
/* Set an attribute of the value's node. The value may be NULL. */
void pith__new_node_set_int(pith__new_nodes *m, pith__value *value, const char *name,
                            int64_t number);
void pith__new_node_set_float(pith__new_nodes *m, pith__value *value, const char *name,
                              float number);
void pith__new_node_set_ints(pith__new_nodes *m, pith__value *value, const char *name,
                             const int64_t *numbers, size_t count);
pith__value *pith__new_node_cast(pith__new_nodes *m, pith__value *x, int dtype);
/* Constants: a scalar, a list of one number, and numbers of any shape, which must live as long as
 * the graph. */
pith__value *pith__new_node_f32(pith__new_nodes *m, float number);
pith__value *pith__new_node_i64(pith__new_nodes *m, int64_t number);
pith__value *pith__new_node_constant(pith__new_nodes *m, const float *numbers, int rank,
                                     const int64_t *dims);

/* Makes these values the outputs of the graph, in place of those that it has, and removes the nodes
 * that nothing needs any more. names must live as long as the graph. */
pith_status pith__new_node_outputs(pith__graph *graph, pith__value *const *values,
                                   const pith_str *names, size_t count, pith_error *err);

#endif
