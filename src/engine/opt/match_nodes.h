/* match_nodes.h - predicates for passes, and the one way in which passes replace a value.
 *
 * The predicates match meaning: constants may be initialisers or folded, operands may have either
 * order, and axes may be negative. They never change the graph and return false or NULL for "no".
 * Nothing here removes nodes: a pass adds a new node and moves the users to it, and the driver then
 * removes dead nodes. */
#ifndef PITH_ENGINE_OPT_MATCH_NODES_H
#define PITH_ENGINE_OPT_MATCH_NODES_H

#include "engine/graph/graph.h"
#include "engine/kernels/gemm.h"

/* True if the node is this operator of ai.onnx, or of the domain "pith", and has an output 0. node
 * may be NULL. */
bool pith__match_is(const pith__node *node, const char *op_type);
bool pith__match_is_own(const pith__node *node, const char *op_type);
bool pith__match_live(const pith__node *node); /* output 0 has a reader */
/* v's producer if it is this operator of ai.onnx, else NULL; v may be NULL. */
pith__node *pith__match_maker(const pith__value *v, const char *op_type);

pith__value *pith__match_input(const pith__node *node, int i); /* NULL if absent */
/* The operand of a two-input node that is not v (the second of two equal ones). */
pith__value *pith__match_other(const pith__node *node, const pith__value *v);
/* The only node that reads v, if it reads it once and v is no graph output; else NULL. */
pith__node *pith__match_user(const pith__value *v);

/* The node whose output is an activation of v that nothing else reads, or NULL. */
pith__node *pith__match_activation(const pith__value *v, pith__gemm_activation *activation);

bool pith__match_const(const pith__value *v); /* a constant */
/* A constant of one element of a number type, whatever its rank. */
bool pith__match_scalar(const pith__value *v, double *x);
bool pith__match_scalar_near(const pith__value *v, double x, double tolerance);
/* Integers known before the run, all of them numbers; at most max. */
bool pith__match_ints(const pith__value *v, int64_t *items, int64_t max, int64_t *count);
/* A constant f32 of n elements along the last axis. */
bool pith__match_vector(const pith__value *v, int64_t n);
/* The node reduces (input 1 or no axes input) the last axis alone, and keeps it. */
bool pith__match_reduces_last(const pith__node *node);

/* known and equal, symbolically too */
bool pith__match_same_shape(const pith__type *a, const pith__type *b);
bool pith__match_f32(const pith__value *v);

/* Replaces old by `by` in all its users and graph outputs; if old is a graph output, `by` gets its
 * name. If the type of `by` is unknown, it becomes that of old. Do not call it for a graph output
 * if `by` is an input, a constant or an output already; pith__match_replaceable returns false for
 * these. */
pith_status pith__match_replace(pith__value *old, pith__value *by, pith_error *err);
bool pith__match_replaceable(const pith__value *old, const pith__value *by);

/* Adds a bound node of domain "pith" or "" with one output in the place of `old`, before `before`.
 */
pith_status pith__match_put(pith__node **made, pith__value *old, pith__node *before,
                            const char *domain, const char *op_type, pith__value *const *inputs,
                            int input_count, pith_error *err);

#endif
