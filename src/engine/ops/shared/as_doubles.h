/* as_doubles.h - for operators that need not be fast: all inputs and outputs as doubles, whatever
 * their dtypes. A complex number is two doubles (pith__parts).
 *
 * An operator names pith__wide_scratch as its scratch (or adds to it), and in run calls
 * pith__wide_open, computes on the arrays, and calls pith__wide_close. Integers beyond 2^53 lose
 * digits: indices are read as they are, not from here. */
#ifndef PITH_ENGINE_OPS_SHARED_AS_DOUBLES_H
#define PITH_ENGINE_OPS_SHARED_AS_DOUBLES_H

#include "engine/kernels/convert.h"
#include "engine/ops/op.h"

#define PITH_WIDE_MAX 16

typedef struct pith__wide {
    double *in[PITH_WIDE_MAX], *out[PITH_WIDE_MAX]; /* NULL: absent, unused, or not a number type */
    void *rest;                                     /* scratch behind the arrays */
} pith__wide;

/* Get or set element i as a double, for any number type (pith__convert_known). For operators that
 * need single elements. */
static inline double pith__wide_get(const pith_tensor *t, int64_t i) {
    double x;
    pith__convert(&x, PITH_F64, 0, t->data, t->dtype, i, 1, true);
    return x;
}
static inline void pith__wide_put(const pith_tensor *t, int64_t i, double x) {
    pith__convert(t->data, t->dtype, i, &x, PITH_F64, 0, 1, true);
}

/* count numbers from the first ones on (pith__convert), piece by piece, as far as the run need not
 * stop. */
pith_status pith__run_convert(const pith__run *r, void *to, int to_dtype, const void *from,
                              int from_dtype, int64_t count);
/* Sets *bytes to the memory for copies of all inputs and outputs (at most PITH_WIDE_MAX of each).
 */
pith_status pith__wide_scratch(const pith__infer *c, const void *state, int threads, size_t *bytes);
/* Converts the inputs; outputs are zero. Fails if the run must stop, as the next does. */
pith_status pith__wide_open(pith__wide *w, const pith__run *r);
/* Converts the outputs. */
pith_status pith__wide_close(const pith__wide *w, const pith__run *r);

#endif
