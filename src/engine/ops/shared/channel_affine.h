/* channel_affine.h - what the normalisations by channel share: a tensor as [batch, channels, rest],
 * checks of their operands, and the kernels of y = a x + b with a and b by channel. */
#ifndef PITH_ENGINE_OPS_SHARED_CHANNEL_AFFINE_H
#define PITH_ENGINE_OPS_SHARED_CHANNEL_AFFINE_H

#include "engine/kernels/affine.h"
#include "engine/ops/op.h"

/* [batch, channels, rest] of a tensor; rank 1 is [batch]. */
typedef struct pith__channel_form {
    int64_t batch, channels, inner;
} pith__channel_form;
pith__channel_form pith__channel_form_of(const pith_tensor *x);

/* The output is like the input, which must not be a scalar. */
pith_status pith__channel_infer(pith__infer *c);
/* Fails unless inputs [first, last] have the wanted number of elements each. */
pith_status pith__channel_check_counts(const pith__run *r, int first, int last, int64_t wanted);

/* Kernels of f32 and narrower tensors. Both NULL: the operator is computed in double (other dtypes,
 * or training_mode). */
typedef struct pith__channel_affine {
    pith__affine_fn *affine;
    pith__moments_fn *moments; /* mean and variance of a run of elements, in double */
} pith__channel_affine;
pith_status pith__channel_affine_prepare(pith__prepare *c);
/* Room for a factor and a summand of each channel of each row of the batch, of at least one row; or
 * what computing in double needs. */
pith_status pith__channel_affine_scratch(const pith__infer *c, const void *state, int threads,
                                         size_t *bytes);

#endif
