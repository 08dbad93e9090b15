/* resample.h - interpolation of f32 tensors axis by axis, for Resize: the last axis first. */
#ifndef PITH_ENGINE_OPS_SHARED_RESAMPLE_H
#define PITH_ENGINE_OPS_SHARED_RESAMPLE_H

#include "engine/kernels/interpolate.h"
#include "engine/ops/op.h"

/* One axis: from [outer, length, inner] to [outer, size, inner]. Output index i has the taps
 * index[t * size + i] with weights[t * size + i], t < taps. */
typedef struct pith__resample_axis {
    int64_t outer, length, size, inner, taps;
    int32_t *index;
    float *weights;
} pith__resample_axis;

typedef struct pith__resample {
    pith__mix_rows_fn *rows;
    pith__mix_columns_fn *columns;
} pith__resample;

enum { PITH_RESAMPLE_TAPS = 64 }; /* taps at most */

/* Finds the loops; both are NULL if there are none. */
void pith__resample_find(pith__resample *s, pith__prepare *c);
/* y = x after `count` (at least 1) axes in this order. buffers: two of as many floats as any result
 * before the last. */
void pith__resample_run(pith__run *r, const pith__resample *s, const pith__resample_axis *axes,
                        int count, const float *x, float *y, float *const buffers[2]);

#endif
