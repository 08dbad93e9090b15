/* elementwise.h - y = f(inputs), place by place, with NumPy broadcasting, over any mix of dtypes.
 *
 * The driver merges dimensions that are contiguous in all operands, so that the inner loop is as long as possible,
 * converts operands and result in blocks where the loop computes in another type (f16 in f32), and shares the work
 * among threads. Results do not depend on the split. */
#ifndef PITH_ENGINE_OPS_SHARED_ELEMENTWISE_H
#define PITH_ENGINE_OPS_SHARED_ELEMENTWISE_H

#include "engine/ops/shared/infer_shapes.h"

#define PITH_ELEMENTWISE_MAX 4

typedef struct pith_elementwise {
    int count;                                   /* operands */
    const pith_tensor *in[PITH_ELEMENTWISE_MAX]; /* each broadcasts to out */
    pith_tensor *out;
    int compute[PITH_ELEMENTWISE_MAX]; /* dtype that the loop takes for an operand */
    int result;                        /* dtype the loop writes */
    /* y[i] = f(x[0][i * strides[0]], …), strides 0 or 1. */
    void (*loop)(const void *context, void *y, const void *const *x, const int *strides, int64_t n);
    const void *context;
} pith_elementwise;

/* Also applies r->tail. */
void pith_elementwise_run(pith_run *r, const pith_elementwise *e);
/* The run of an operator whose pith_op.elementwise always succeeds. */
pith_status pith_elementwise_op_run(pith_run *r);

/* An elementwise computation with its dimensions merged; e outlives it. */
typedef struct pith_elementwise_job {
    const pith_elementwise *e;
    int rank;
    int64_t dims[PITH_MAX_RANK];
    int64_t strides[PITH_ELEMENTWISE_MAX][PITH_MAX_RANK]; /* 0 where the operand is broadcast */
    int64_t total, per_part;
    bool converts;
    const struct pith_tail *tail; /* NULL: none */
} pith_elementwise_job;

/* ---- tails: elementwise steps that run on the results of a step while these are in the cache ---- */

#define PITH_TAIL_MAX 4

/* The steps in their order. Each changes output 0 of the step that runs, in place. */
typedef struct pith_tail {
    int count;
    const char *names[PITH_TAIL_MAX]; /* of their operators */
    pith_elementwise stages[PITH_TAIL_MAX];
    pith_elementwise_job jobs[PITH_TAIL_MAX];
} pith_tail;

/* Adds a step, whose output has the memory of output 0 of the step that runs. `run` outlives the tail. */
void pith_tail_add(pith_tail *tail, const pith_run *run);
/* Finishes elements [begin, begin + n) of output 0, which are computed. Parts may do so at the same time. tail may be
 * NULL. */
void pith_tail_apply(const pith_tail *tail, int64_t begin, int64_t n);
/* Finishes all of output 0, on the run's threads. */
void pith_run_tail(pith_run *r);

/* The dtype that values of dtype are computed in: f32 for f16 and bf16, else dtype itself. */
int pith_compute_dtype(int dtype);

/* An operator that is one loop of maps.h (or unary.h, binary.h) over one or two inputs. */
typedef struct pith_map_state {
    pith_kernel_fn *fn;
    int compute, result; /* dtypes of the loop; of its output */
    bool direct;         /* fn is of unary.h or binary.h */
    double p[2];
} pith_map_state;

/* Finds the loop of a family for operands of dtype: "<family>" in f32, "map_<family>", or that in f64. */
pith_status pith_map_find(pith_map_state *state, const char *family, int dtype, pith_prepare *c);
/* The pith_op.elementwise of an operator of one input; r->state: pith_map_state. */
bool pith_map1_elementwise(const pith_run *r, pith_elementwise *e);
/* out = fn(a, b), to be run. */
pith_elementwise pith_map2_of(const pith_map_state *state, pith_tensor *out, const pith_tensor *a,
                              const pith_tensor *b);
/* out = fn(x); out = fn(a, b). */
void pith_map1_apply(pith_run *r, const pith_map_state *state, pith_tensor *out, const pith_tensor *x);
void pith_map2_apply(pith_run *r, const pith_map_state *state, pith_tensor *out, const pith_tensor *a,
                     const pith_tensor *b);

#endif
