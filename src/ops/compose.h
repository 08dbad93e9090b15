/* compose.h - writing an operator out as others, in its upgrade.
 *
 * Operators of other engines mostly mean nothing that plain operators do not; written out at load they meet the passes
 * in the form that every exporter's network takes. Functions that make a value give NULL if memory is out and pass on
 * the NULL of their first operand, so that calls nest and one check at the end serves. Nothing is left of the node, so
 * its descriptor only names itself: PITH_OP_COMPOSED. */
#ifndef PITH_OPS_COMPOSE_H
#define PITH_OPS_COMPOSE_H

#include "ops/op.h"

/* Somebody reads output i. */
bool pith_compose_wanted(const pith_node *node, int i);
/* As inferred, else as declared; -1 if neither says. */
int pith_compose_rank(const pith_value *v);

/* A node before `at` with `at`'s name and index; NULL inputs at the end are left out. Its output 0, whose producer has
 * the others. Node's opset is the newest. */
pith_value *pith_compose(pith_node *at, const char *domain, const char *op_type, pith_value *const *inputs, int count,
                         int outputs);
/* Of ai.onnx, with one output and all operands there. */
pith_value *pith_compose1(pith_node *at, const char *op_type, pith_value *a);
pith_value *pith_compose2(pith_node *at, const char *op_type, pith_value *a, pith_value *b);
pith_value *pith_compose3(pith_node *at, const char *op_type, pith_value *a, pith_value *b, pith_value *c);
pith_value *pith_compose_cast(pith_node *at, pith_value *x, int dtype);
/* op_type(x, list), list constant: Reshape, Unsqueeze, … */
pith_value *pith_compose_list(pith_node *at, const char *op_type, pith_value *x, const int64_t *items, int64_t count);
/* Transpose. */
pith_value *pith_compose_turn(pith_node *at, pith_value *x, const int64_t *perm, size_t rank);

/* Axis `from` at place `to`, whatever the rank. */
pith_value *pith_compose_move(pith_node *at, pith_value *x, int64_t from, int64_t to);
/* Sizes [from, to) of x, as a vector of i64; to: INT64_MAX is the end. */
pith_value *pith_compose_sizes(pith_node *at, pith_value *x, int64_t from, int64_t to);
/* Concat of two vectors. */
pith_value *pith_compose_join(pith_node *at, pith_value *a, pith_value *b);

/* v with an attribute on its producer. */
pith_value *pith_with_int(pith_value *v, const char *name, int64_t item);
pith_value *pith_with_float(pith_value *v, const char *name, float item);
/* The attributes of `from` that are named (NULL ends the list) and there. */
pith_value *pith_with_attributes(pith_value *v, const pith_node *from, const char *const *names);

/* Beyond what the descriptor demands: the inputs in the bit set must be there, not more outputs than max_outputs. */
pith_status pith_compose_require(const pith_node *node, unsigned inputs, int max_outputs, pith_error *err);
/* Fails if input i is there. */
pith_status pith_compose_refuse(const pith_node *node, int i, pith_error *err);
/* v takes the place of output i; v may be NULL for want of memory. */
pith_status pith_compose_give(pith_node *node, int i, pith_value *v, pith_error *err);
/* v takes the place of output 0, and the node is removed. Other outputs in use must have been given before. */
pith_status pith_compose_become(pith_node *node, pith_value *v, pith_error *err);

/* infer of a composed operator; never called on a bound graph. */
pith_status pith_compose_infer(pith_infer *c);

/* No opset is new enough: upgrade is always called. */
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
