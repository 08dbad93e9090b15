/* vector_steps.h - the modules behind the pooling, on one text's vector: dense layers and norms.
 *
 * Each vector is computed by itself with the sums of engine/kernels/gemm.h and
 * engine/kernels/norm.h, so that its bits depend on nothing else. */
#ifndef PITH_MODELS_HEADS_VECTOR_STEPS_H
#define PITH_MODELS_HEADS_VECTOR_STEPS_H

#include "base/os/cpu.h"
#include "models/modules/modules.h"

typedef struct pith__vector_steps pith__vector_steps;

/* Packs the weights of the modules' steps, once per model, into the arena. *steps is NULL if there
 * are none. */
pith_status pith__vector_steps_prepare(const pith__vector_steps **steps,
                                       const pith__modules *modules, pith__isa isa,
                                       pith__arena *arena, pith_error *err);

/* Returns the components of the results for vectors of `in` components; 0 if a step takes another
 * number, which *needed is set to. steps may be NULL. */
int64_t pith__vector_steps_width(const pith__vector_steps *steps, int64_t in, int64_t *needed);

/* Applies the steps to x of `in` components, for which pith__vector_steps_width is not 0. *y is x,
 * or a result in scratch. Thread-safe. */
pith_status pith__vector_steps_run(const float **y, const pith__vector_steps *steps, const float *x,
                                   int64_t in, pith__arena *scratch, pith_error *err);

/* y [n]: the `top` largest components of x that are greater than 0, and zeros; of equal ones the
 * first. order: room for n pointers. y must not overlap x. */
void pith__vector_keep_top(float *y, const float *x, int64_t n, int64_t top, const float **order);

#endif
