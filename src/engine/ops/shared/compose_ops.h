/* compose_ops.h - replacing an operator by simpler ones when it is upgraded.
 *
 * Most operators of other engines can be written as standard ones. Replaced at load, they reach the passes in the form
 * that exporters write. Functions that make a value return NULL if memory is out or if their first operand is NULL, so
 * that calls can be nested and one check at the end is enough. The node itself is removed, so its descriptor only has a
 * name: PITH_OP_COMPOSED. */
#ifndef PITH_ENGINE_OPS_SHARED_COMPOSE_OPS_H
#define PITH_ENGINE_OPS_SHARED_COMPOSE_OPS_H

#include "engine/ops/op.h"

/* True if output i has a reader. */
bool pith_compose_wanted(const pith_node *node, int i);
/* Returns the inferred rank, else the declared one; -1 if neither is known. */
int pith_compose_rank(const pith_value *v);

/* Inserts a node of the newest opset before `at`, with the name and index of `at`. NULL inputs at the end are dropped.
 * Returns its output 0; the other outputs are those of its producer. */
pith_value *pith_compose(pith_node *at, const char *domain, const char *op_type, pith_value *const *inputs, int count,
                         int outputs);
/* The same for an operator of ai.onnx with one output and no absent operands. */
pith_value *pith_compose1(pith_node *at, const char *op_type, pith_value *a);
pith_value *pith_compose2(pith_node *at, const char *op_type, pith_value *a, pith_value *b);
pith_value *pith_compose3(pith_node *at, const char *op_type, pith_value *a, pith_value *b, pith_value *c);
pith_value *pith_compose_cast(pith_node *at, pith_value *x, int dtype);
/* op_type(x, items) with a constant list of integers, such as Reshape and Unsqueeze. */
pith_value *pith_compose_list(pith_node *at, const char *op_type, pith_value *x, const int64_t *items, int64_t count);
/* Transpose. */
pith_value *pith_compose_turn(pith_node *at, pith_value *x, const int64_t *perm, size_t rank);

/* Moves axis `from` to place `to`, for any rank. */
pith_value *pith_compose_move(pith_node *at, pith_value *x, int64_t from, int64_t to);
/* Sizes [from, to) of x's shape as an i64 vector. If to is INT64_MAX, up to the end. */
pith_value *pith_compose_sizes(pith_node *at, pith_value *x, int64_t from, int64_t to);
/* Concat of two vectors. */
pith_value *pith_compose_join(pith_node *at, pith_value *a, pith_value *b);

/* Set an attribute on the producer of v, and return v. */
pith_value *pith_with_int(pith_value *v, const char *name, int64_t item);
pith_value *pith_with_float(pith_value *v, const char *name, float item);
/* Copies the named attributes that `from` has; NULL ends the list. */
pith_value *pith_with_attributes(pith_value *v, const pith_node *from, const char *const *names);

/* Fails if an input of the bit set is absent, or if there are more outputs than max_outputs. */
pith_status pith_compose_require(const pith_node *node, unsigned inputs, int max_outputs, pith_error *err);
/* Fails if input i is present. */
pith_status pith_compose_refuse(const pith_node *node, int i, pith_error *err);
/* Replaces output i by v. If v is NULL, memory was out. */
pith_status pith_compose_give(pith_node *node, int i, pith_value *v, pith_error *err);
/* Replaces output 0 by v and removes the node. Other outputs that are used must have been replaced before. */
pith_status pith_compose_become(pith_node *node, pith_value *v, pith_error *err);

/* The infer function of composed operators. A bound graph has none of them. */
pith_status pith_compose_infer(pith_infer *c);

/* Defines a composed operator. `since` is above every opset, so upgrade is always called. */
#define PITH_OP_COMPOSED(symbol, domain_, name_, min, max, outputs, upgrade_, ...)                                     \
    const pith_op pith_op_##symbol = { .domain = domain_,                                                              \
                                       .name = name_,                                                                  \
                                       .since = INT32_MAX,                                                             \
                                       .newest = 1,                                                                    \
                                       .min_inputs = min,                                                              \
                                       .max_inputs = max,                                                              \
                                       .max_outputs = outputs,                                                         \
                                       .upgrade = upgrade_,                                                            \
                                       .infer = pith_compose_infer,                                                    \
                                       .note = __VA_ARGS__ };

#endif
