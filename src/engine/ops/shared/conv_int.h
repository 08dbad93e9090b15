/* conv_int.h - convolutions of 8-bit numbers in integers, for QLinearConv and ConvInteger with
 * constant weights and one or two spatial axes.
 *
 * The picture is turned to channels last, unless it comes so, without sign, with its zero point as
 * padding. A tile of windows is then the rows of a matrix [windows, taps * channels], which the
 * int8 GEMM multiplies by the weights. Windows over one channel each (depthwise) are summed tap by
 * tap, all channels together. Zero points are applied to the sums. */
#ifndef PITH_ENGINE_OPS_SHARED_CONV_INT_H
#define PITH_ENGINE_OPS_SHARED_CONV_INT_H

#include "engine/kernels/conv_bytes.h"
#include "engine/kernels/gemm_int8.h"
#include "engine/kernels/window_shape.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct pith__conv_int {
    bool possible;
    bool depthwise;
    bool ready;          /* depthwise: the weights are packed, not in each run */
    bool wide;           /* the result is the sums */
    bool x_last, y_last; /* channels are the last axis of the input, of the output */
    pith__gemm_i8_fn *gemm;
    pith__gemm_pack_i8_fn *pack;
    pith__turn_bytes_fn *turn;
    pith__depthwise_bytes_fn *sum_taps;
    pith__requantize_fn *requantize;
    /* the groups' weights after each other; or depthwise ones */
    const void *packed;
    int64_t packed_size, groups, channels, maps, taps; /* channels and maps of one group */
    int rank, sets;                                    /* sets: bytes of a depthwise weight */
} pith__conv_int;

/* Numbers of the node's inputs; -1: there is none. */
typedef struct pith__conv_int_inputs {
    int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} pith__conv_int_inputs;

/* Whether weights of this shape, constants of 8 bits, can be multiplied in integers. */
bool pith__conv_int_suits(const pith__type *w, int64_t groups);
/* Sets p->possible, and packs the weights if so. */
pith_status pith__conv_int_prepare(pith__conv_int *p, pith__prepare *c,
                                   const pith__conv_int_inputs *in);
/* Adds the scratch for a picture in windows w, whose sizes are set; false on overflow. */
bool pith__conv_int_scratch(const pith__conv_int *p, const pith__window *w, int threads,
                            size_t *bytes);
pith_status pith__conv_int_run(pith__run *r, const pith__conv_int *p,
                               const pith__conv_int_inputs *in, const pith__window *w);

#endif
