/* compose_f32.h - pieces of arithmetic in f32 between casts, for operators that are written out at
 * load (compose_ops.h). Each returns NULL if memory is out or an operand is NULL. */
#ifndef PITH_ENGINE_OPS_SHARED_COMPOSE_F32_H
#define PITH_ENGINE_OPS_SHARED_COMPOSE_F32_H

#include "engine/ops/shared/compose_ops.h"

/* Cast to f32. */
pith__value *pith__compose_f32(pith__node *at, pith__value *x);
/* v cast to x's dtype. */
pith__value *pith__compose_like(pith__node *at, pith__value *v, pith__value *x);
/* op_type(x, item) with a constant number. */
pith__value *pith__compose_number(pith__node *at, const char *op_type, pith__value *x, float item);
/* A constant vector of integers. */
pith__value *pith__compose_numbers(pith__node *at, const int64_t *items, int64_t count);
/* ReduceSum and its kind along one axis, which is kept as 1 or not. */
pith__value *pith__compose_reduce(pith__node *at, const char *op_type, pith__value *x, int64_t axis,
                                  bool keep);
/* Rows along the last axis over their root mean square. */
pith__value *pith__compose_rms(pith__node *at, pith__value *x, float epsilon);
/* v with the sizes of x but the last one, then `last` (a vector). */
pith__value *pith__compose_reshape(pith__node *at, pith__value *v, pith__value *x,
                                   pith__value *last);
/* v in the shape of x. */
pith__value *pith__compose_shaped(pith__node *at, pith__value *v, pith__value *x);

#endif
