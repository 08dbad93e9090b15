/* match.h - the questions passes ask of a graph, and the one way they replace a value.
 *
 * Every question is about meaning: constants are found whether they are initialisers or folded, operands in either
 * order, axes in either sign. A question never changes the graph; "no" is false or NULL. Nothing here removes nodes: a
 * pass adds the new node and moves the users over, and what is dead afterwards is swept by the driver. */
#ifndef PITH_OPT_MATCH_H
#define PITH_OPT_MATCH_H

#include "graph/graph.h"
#include "kernels/gemm.h"

/* Is the node this operator of ai.onnx, or of the domain "pith", and is its output 0 there? NULL is nothing. */
bool pith_match_is(const pith_node *node, const char *op_type);
bool pith_match_is_own(const pith_node *node, const char *op_type);
bool pith_match_live(const pith_node *node); /* somebody reads output 0 */
/* v's producer if it is this operator of ai.onnx, else NULL; v may be NULL. */
pith_node *pith_match_maker(const pith_value *v, const char *op_type);

pith_value *pith_match_input(const pith_node *node, int i); /* NULL if absent */
/* The operand of a two-input node that is not v (the second of two equal ones). */
pith_value *pith_match_other(const pith_node *node, const pith_value *v);
/* The only node that reads v, if it reads it once and v is no graph output; else NULL. */
pith_node *pith_match_user(const pith_value *v);

/* The node whose output is an activation of v that nothing else reads, or NULL. */
pith_node *pith_match_activation(const pith_value *v, pith_activation *activation);

bool pith_match_const(const pith_value *v); /* contents known for good */
/* A constant of one element of a number type, whatever its rank. */
bool pith_match_scalar(const pith_value *v, double *x);
bool pith_match_scalar_near(const pith_value *v, double x, double tolerance);
/* Integers known before the run, all of them numbers; at most max. */
bool pith_match_ints(const pith_value *v, int64_t *items, int64_t max, int64_t *count);
/* A constant f32 of n elements that lie along the last axis. */
bool pith_match_vector(const pith_value *v, int64_t n);
/* The node reduces (input 1 or no axes input) the last axis alone, and keeps it. */
bool pith_match_reduces_last(const pith_node *node);

bool pith_match_same_shape(const pith_type *a, const pith_type *b); /* known and equal, symbolically too */
bool pith_match_f32(const pith_value *v);

/* by takes the place of old: its users, its outputs and, if old is a graph output, its name. by's type becomes old's
 * if nothing is known of it. Do not call it for a graph output if by is an input, a constant or an output already
 * (pith_match_replaceable says so). */
pith_status pith_match_replace(pith_value *old, pith_value *by, pith_error *err);
bool pith_match_replaceable(const pith_value *old, const pith_value *by);

/* Adds a bound node of domain "pith" or "" with one output in the place of `old`, before `before`. */
pith_status pith_match_put(pith_node **made, pith_value *old, pith_node *before, const char *domain,
                           const char *op_type, pith_value *const *inputs, int input_count, pith_error *err);

#endif
