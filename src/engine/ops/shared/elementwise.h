/* elementwise.h - y = f(inputs), place by place, with NumPy broadcasting, over any mix of dtypes.
 *
 * The driver merges dimensions that are contiguous in all operands, so that the inner loop is as
 * long as possible, converts operands and result in blocks where the loop computes in another type
 * (f16 in f32), and shares the work among threads. Results do not depend on the split. */
#ifndef PITH_ENGINE_OPS_SHARED_ELEMENTWISE_H
#define PITH_ENGINE_OPS_SHARED_ELEMENTWISE_H

#include "engine/ops/shared/infer_shapes.h"

#define PITH_ELEMENTWISE_MAX 4

typedef struct pith__elementwise {
    int count;                                   /* operands */
    const pith_tensor *in[PITH_ELEMENTWISE_MAX]; /* each broadcasts to out */
    pith_tensor *out;
    int compute[PITH_ELEMENTWISE_MAX]; /* dtype that the loop takes for an operand */
    int result;                        /* dtype the loop writes */
    /* y[i] = f(x[0][i * strides[0]], …), strides 0 or 1. */
    void (*loop)(const void *context, void *y, const void *const *x, const int *strides, int64_t n);
    const void *context;
} pith__elementwise;

/* Also applies r->tail. */
void pith__elementwise_run(pith__run *r, const pith__elementwise *e);
/* The run of an operator whose pith__op.elementwise always succeeds. */
pith_status pith__elementwise_op_run(pith__run *r);

/* An elementwise computation with its dimensions merged; `elementwise` outlives it. */
typedef struct pith__elementwise_job {
    const pith__elementwise *elementwise;
    int rank;
    int64_t dims[PITH_MAX_RANK];
    int64_t strides[PITH_ELEMENTWISE_MAX][PITH_MAX_RANK]; /* 0 where the operand is broadcast */
    int64_t total, per_part;
    bool converts;
    const struct pith__tail *tail; /* NULL: none */
} pith__elementwise_job;

/* ---- tails: elementwise steps that run on the results of a step while these are in the cache ----
 */

#define PITH_TAIL_MAX 4

/* The steps in their order. Each changes output 0 of the step that runs, in place. */
typedef struct pith__tail {
    int count;
    const char *names[PITH_TAIL_MAX]; /* of their operators */
    pith__elementwise stages[PITH_TAIL_MAX];
    pith__elementwise_job jobs[PITH_TAIL_MAX];
} pith__tail;

/* Adds a step, whose output has the memory of output 0 of the step that runs. `run` outlives the
 * tail. */
void pith__tail_add(pith__tail *tail, const pith__run *run);
/* Finishes elements [begin, begin + n) of output 0, which are computed. Parts may do so at the same
 * time. tail may be NULL. */
void pith__tail_apply(const pith__tail *tail, int64_t begin, int64_t n);
/* Finishes all of output 0, on the run's threads. */
void pith__run_tail(pith__run *r);

/* The dtype that values of dtype are computed in: f32 for f16 and bf16, else dtype itself. */
int pith__compute_dtype(int dtype);

/* An operator that is one loop of maps.h (or unary.h, binary.h) over one or two inputs. */
typedef struct pith__map_state {
    pith__kernel_fn *fn;
    int compute, result;  /* dtypes of the loop; of its output */
    bool direct;          /* fn is of unary.h or binary.h */
    double parameters[2]; /* the operator's, such as alpha: what the loop gets as p */
} pith__map_state;

/* Finds the loop of a family for operands of dtype: "<family>" in f32, "map_<family>", or that in
 * f64. */
pith_status pith__map_find(pith__map_state *state, const char *family, int dtype, pith__prepare *c);
/* The pith__op.elementwise of an operator of one input; r->state: pith__map_state. */
bool pith__map1_elementwise(const pith__run *r, pith__elementwise *e);
/* out = fn(a, b), to be run. */
pith__elementwise pith__map2_of(const pith__map_state *state, pith_tensor *out,
                                const pith_tensor *a, const pith_tensor *b);
/* out = fn(x); out = fn(a, b). */
void pith__map1_apply(pith__run *r, const pith__map_state *state, pith_tensor *out,
                      const pith_tensor *x);
void pith__map2_apply(pith__run *r, const pith__map_state *state, pith_tensor *out,
                      const pith_tensor *a, const pith_tensor *b);

#endif
