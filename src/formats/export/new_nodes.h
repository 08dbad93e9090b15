/* new_nodes.h - nodes that the steps of an export put into a graph. */
#ifndef PITH_FORMATS_EXPORT_NEW_NODES_H
#define PITH_FORMATS_EXPORT_NEW_NODES_H

#include "engine/graph/graph.h"

/* Where nodes go, and what they are called. After a failure `status` is set, and all calls return NULL. */
typedef struct pith_maker {
    pith_graph *graph;
    pith_node *before; /* NULL: at the end */
    pith_str place;    /* the front of their names */
    pith_status status;
    pith_error *err;
} pith_maker;

/* A node of ai.onnx with one output. */
pith_value *pith_make(pith_maker *m, const char *op, pith_value *const *inputs, int count);
#define PITH_MAKE(m, op, ...)                                                                                          \
    pith_make(m, op, (pith_value *[]){ __VA_ARGS__ },                                                                  \
              (int)(sizeof((pith_value *[]){ __VA_ARGS__ }) / sizeof(pith_value *)))
/* Set an attribute of the value's node. The value may be NULL. */
void pith_make_int(pith_maker *m, pith_value *value, const char *name, int64_t number);
void pith_make_float(pith_maker *m, pith_value *value, const char *name, float number);
void pith_make_ints(pith_maker *m, pith_value *value, const char *name, const int64_t *numbers, size_t count);
pith_value *pith_make_cast(pith_maker *m, pith_value *x, int dtype);
/* Constants: a scalar, a list of one number, and numbers of any shape, which must live as long as the graph. */
pith_value *pith_make_f32(pith_maker *m, float number);
pith_value *pith_make_i64(pith_maker *m, int64_t number);
pith_value *pith_make_constant(pith_maker *m, const float *numbers, int rank, const int64_t *dims);

/* Makes these values the outputs of the graph, in place of those that it has, and removes the nodes that nothing needs
 * any more. names must live as long as the graph. */
pith_status pith_export_set_outputs(pith_graph *graph, pith_value *const *values, const pith_str *names, size_t count,
                                    pith_error *err);

#endif
