/* conv_f32.h - convolutions in f32 with one or two spatial axes.
 *
 * Each channel is copied once into a padded plane (kernels/taps.h), unless windows of one place make the input itself
 * do. All maps then read the planes at one offset for each channel and tap, in the order channel, kernel row, column.
 * Windows over one channel each (depthwise) are walked tap by tap, a channel at a time; the usual ones of 3 x 3 read
 * the input itself. */
#ifndef PITH_OPS_CONV_F32_H
#define PITH_OPS_CONV_F32_H

#include "kernels/conv.h"
#include "kernels/taps.h"
#include "ops/infer.h"

typedef struct pith_conv_f32 {
    pith_conv_fn *conv, *few;
    pith_taps_fn *taps;
    pith_depthwise_fn *depthwise;
    pith_taps_plane_fn *plane;
} pith_conv_f32;

/* A convolution of [batch, groups * channels, …] with weights [groups * maps, channels, …]. */
typedef struct pith_conv_sizes {
    int64_t batch, groups, channels, maps; /* channels and maps of one group */
} pith_conv_sizes;

pith_status pith_conv_f32_prepare(pith_conv_f32 *s, pith_prepare *c);
/* The same without taps, which remains NULL. */
pith_status pith_conv_f32_prepare_planes(pith_conv_f32 *s, pith_prepare *c);
/* Adds the scratch of windows w, whose sizes are set; false on overflow. */
bool pith_conv_f32_scratch(const pith_conv_sizes *z, const pith_window *w, int threads, size_t *bytes);
/* bias: [groups * maps]; NULL: none. */
void pith_conv_f32_run(pith_run *r, const pith_conv_f32 *s, const pith_conv_sizes *z, const pith_window *w,
                       const float *x, const float *weights, const float *bias, float *y);

#endif
