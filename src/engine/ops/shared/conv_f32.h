/* conv_f32.h - convolutions in f32 with one or two spatial axes.
 *
 * Each channel is copied once into a padded plane (engine/kernels/sliding_windows.h), unless
 * windows of one place make the input itself do. All maps then read the planes at one offset for
 * each channel and tap, in the order channel, kernel row, column. The weights are packed when the
 * plan is made, those that are no constants in each run. Windows over one channel each (depthwise)
 * are walked tap by tap, a channel at a time; the usual ones of 3 x 3 read the input itself. */
#ifndef PITH_ENGINE_OPS_SHARED_CONV_F32_H
#define PITH_ENGINE_OPS_SHARED_CONV_F32_H

#include "engine/kernels/conv.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/sliding_windows.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/packed_constants.h"

typedef struct pith__conv_f32 {
    pith__conv_fn *conv;
    pith__gemm_pack_f32_fn *pack;
    pith__taps_fn *taps;
    pith__depthwise_fn *depthwise;
    pith__taps_plane_fn *plane;
    const void *packed; /* the weights of all groups; NULL: each run packs them, or they are
                           depthwise */
    bool constant;      /* the weights are packed, and runs do not read them */
} pith__conv_f32;

/* A convolution of [batch, groups * channels, …] with weights [groups * maps, channels, …]. */
typedef struct pith__conv_sizes {
    int64_t batch, groups, channels, maps; /* channels and maps of one group */
} pith__conv_sizes;

/* s is in memory that lives as long as the plan. */
pith_status pith__conv_f32_prepare(pith__conv_f32 *s, pith__prepare *c);
/* Finds the kernels of planes alone. */
pith_status pith__conv_f32_prepare_planes(pith__conv_f32 *s, pith__prepare *c);
/* Adds the scratch of windows w, whose sizes are set; false on overflow. */
bool pith__conv_f32_scratch(const pith__conv_f32 *s, const pith__conv_sizes *z,
                            const pith__window *w, int threads, size_t *bytes);
/* weights are not read if they are packed. bias: [groups * maps]; NULL: none. */
void pith__conv_f32_run(pith__run *r, const pith__conv_f32 *s, const pith__conv_sizes *z,
                        const pith__window *w, const float *x, const float *weights,
                        const float *bias, float *y);

#endif
