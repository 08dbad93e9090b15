/* compose_ops.h - replacing an operator by simpler ones when it is upgraded.
 *
 * Most operators of other engines can be written as standard ones. Replaced at load, they reach the
 * passes in the form that exporters write. Functions that make a value return NULL if memory is out
 * or if their first operand is NULL, so that calls can be nested and one check at the end is
 * enough. The node itself is removed, so its descriptor only has a name: PITH_OP_COMPOSED. */
#ifndef PITH_ENGINE_OPS_SHARED_COMPOSE_OPS_H
#define PITH_ENGINE_OPS_SHARED_COMPOSE_OPS_H

#include "engine/ops/op.h"

/* True if output i has a reader. */
bool pith__compose_wanted(const pith__node *node, int i);
/* Returns the inferred rank, else the declared one; -1 if neither is known. */
int pith__compose_rank(const pith__value *v);

/* Inserts a node of the newest opset before `at`, with the name and index of `at`. NULL inputs at
 * the end are dropped. Returns its output 0; the other outputs are those of its producer. */
pith__value *pith__compose(pith__node *at, const char *domain, const char *op_type,
                           pith__value *const *inputs, int count, int outputs);
/* The same for an operator of ai.onnx with one output and no absent operands. */
pith__value *pith__compose1(pith__node *at, const char *op_type, pith__value *a);
pith__value *pith__compose2(pith__node *at, const char *op_type, pith__value *a, pith__value *b);
pith__value *pith__compose3(pith__node *at, const char *op_type, pith__value *a, pith__value *b,
                            pith__value *c);
pith__value *pith__compose_cast(pith__node *at, pith__value *x, int dtype);
/* op_type(x, items) with a constant list of integers, such as Reshape and Unsqueeze. */
pith__value *pith__compose_list(pith__node *at, const char *op_type, pith__value *x,
                                const int64_t *items, int64_t count);
/* Transpose. */
pith__value *pith__compose_turn(pith__node *at, pith__value *x, const int64_t *perm, size_t rank);

/* Moves axis `from` to place `to`, for any rank. */
pith__value *pith__compose_move(pith__node *at, pith__value *x, int64_t from, int64_t to);
/* Sizes [from, to) of x's shape as an i64 vector. If to is INT64_MAX, up to the end. */
pith__value *pith__compose_sizes(pith__node *at, pith__value *x, int64_t from, int64_t to);
/* Concat of two vectors. */
pith__value *pith__compose_join(pith__node *at, pith__value *a, pith__value *b);

/* Set an attribute on the producer of v, and return v. */
pith__value *pith__with_int(pith__value *v, const char *name, int64_t item);
pith__value *pith__with_float(pith__value *v, const char *name, float item);
/* Copies the named attributes that `from` has; NULL ends the list. */
pith__value *pith__with_attributes(pith__value *v, const pith__node *from,
                                   const char *const *names);

/* Fails if an input of the bit set is absent, or if there are more outputs than max_outputs. */
pith_status pith__compose_require(const pith__node *node, unsigned inputs, int max_outputs,
                                  pith_error *err);
/* Fails if input i is present. */
pith_status pith__compose_refuse(const pith__node *node, int i, pith_error *err);
/* Replaces output i by v. If v is NULL, memory was out. */
pith_status pith__compose_give(pith__node *node, int i, pith__value *v, pith_error *err);
/* Replaces output 0 by v and removes the node. Other outputs that are used must have been replaced
 * before. */
pith_status pith__compose_become(pith__node *node, pith__value *v, pith_error *err);

/* The infer function of composed operators. A bound graph has none of them. */
pith_status pith__compose_infer(pith__infer *c);

/* Defines a composed operator. `since` is above every opset, so upgrade is always called. */
#define PITH_OP_COMPOSED(symbol, domain_, name_, min, max, outputs, upgrade_, ...)                 \
    const pith__op pith__op_##symbol = { .domain = domain_,                                        \
                                         .name = name_,                                            \
                                         .since = INT32_MAX,                                       \
                                         .newest = 1,                                              \
                                         .min_inputs = min,                                        \
                                         .max_inputs = max,                                        \
                                         .max_outputs = outputs,                                   \
                                         .upgrade = upgrade_,                                      \
                                         .infer = pith__compose_infer,                             \
                                         .note = __VA_ARGS__ };

#endif
