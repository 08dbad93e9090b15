/* fourier_transform.h - one discrete Fourier transform after another, for DFT and STFT.
 *
 * Forward transforms are computed in double, inverse ones in the type of the tensor (at least f32).
 * NumPy does so, in which the standard's reference is written, and its results contain that
 * rounding. */
#ifndef PITH_ENGINE_OPS_SHARED_FOURIER_TRANSFORM_H
#define PITH_ENGINE_OPS_SHARED_FOURIER_TRANSFORM_H

#include "engine/kernels/fft.h"
#include "engine/ops/op.h"

/* x and y hold n pairs of `fft`'s type; load and store see doubles. */
typedef struct pith__transform {
    int64_t n;
    pith__fft_fn *fft;
    void *x, *y, *rest, *roots;
    const pith__run *run;
    bool single;
} pith__transform;

/* memory: what pith__transform_bytes asks for. Fails if the run must stop, as the next does. */
pith_status pith__transform_init(pith__transform *t, const pith__run *run, char *memory, int64_t n,
                                 bool single);
/* y from x; the inverse transform divides by n. */
pith_status pith__transform_run(pith__transform *t, bool inverse);
/* Adds the memory of a transform of length n to *bytes; nothing while n is not known. */
pith_status pith__transform_bytes(const pith__infer *c, pith__dim n, size_t *bytes);
/* A length or step: one number, i32 or i64. */
int64_t pith__transform_index(const pith_tensor *t);

/* Element i of x. */
static inline void pith__transform_put(const pith__transform *t, int64_t i, double re, double im) {
    if (t->single) {
        ((float *)t->x)[2 * i] = (float)re;
        ((float *)t->x)[2 * i + 1] = (float)im;
    } else {
        ((double *)t->x)[2 * i] = re;
        ((double *)t->x)[2 * i + 1] = im;
    }
}

/* Element i of y. part: 0 real, 1 imaginary. */
static inline double pith__transform_get(const pith__transform *t, int64_t i, int part) {
    return t->single ? (double)((const float *)t->y)[2 * i + part]
                     : ((const double *)t->y)[2 * i + part];
}

#endif
