/* recurrent.h - helpers for recurrent operators: the direction and activation functions of their
 * cells. */
#ifndef PITH_ENGINE_OPS_SHARED_RECURRENT_H
#define PITH_ENGINE_OPS_SHARED_RECURRENT_H

#include "engine/ops/op.h"

typedef struct pith__cell_fn {
    double (*f)(double x, double alpha, double beta);
    double alpha, beta;
} pith__cell_fn;

static inline double pith__cell_apply(const pith__cell_fn *a, double clip, double x) {
    if (clip > 0 && x < -clip) x = -clip;
    if (clip > 0 && x > clip) x = clip;
    return a->f(x, a->alpha, a->beta);
}

/* Whether it is the function of this name ("Sigmoid") where that has no parameters. */
bool pith__cell_fn_is(const pith__cell_fn *fn, const char *name);

typedef struct pith__directions {
    int64_t count; /* 1 or 2 */
    bool first_is_reverse;
} pith__directions;

/* Attribute direction. */
pith_status pith__directions_read(pith__directions *d, const pith__node *node, pith_error *err);
/* Attributes activations, activation_alpha and activation_beta: `count` functions, the defaults
 * named in turn. */
pith_status pith__cell_fns_read(pith__cell_fn *fns, size_t count, const char *const *defaults,
                                size_t default_count, const pith__node *node, pith_error *err);

#endif
