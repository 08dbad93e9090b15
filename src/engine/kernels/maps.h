/* maps.h - elementwise loops, most in plain C, for every type the tuned families (unary.h,
 * binary.h) do not have.
 *
 * One signature serves all types of a family, so that an operator needs only the family's name.
 * Strides count elements and are 0 (the same element again) or 1. y may be an operand that has
 * stride 1. Integer division by zero gives 0, the smallest number divided by -1 gives itself,
 * shifts by the width or more give 0: never a trap. Transcendental functions without f32 vectors
 * are libm's in double; f32 and smaller go through it and are rounded. */
#ifndef PITH_ENGINE_KERNELS_MAPS_H
#define PITH_ENGINE_KERNELS_MAPS_H

#include "engine/kernels/binary.h"

/* y[i] = f(x[i]); p: the operator's parameters (alpha, …), see span_map.c. */
typedef void pith__map_fn(void *y, const void *x, int64_t n, const double *p);
/* The same with two operands, as in binary.h. Comparisons write bool. */
typedef pith__binary_fn pith__map2_fn;

/* Those that have vectors (k_map.c). */
PITH_KERNEL_DECLARE(map_ceil_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_celu_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_clip_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_elu_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_floor_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_hard_sigmoid_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_hard_swish_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_leaky_relu_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_round_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_selu_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_softsign_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_swish_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_thresholded_relu_f32, pith__map_fn)
PITH_KERNEL_DECLARE(map_equal_f32, pith__map2_fn)
PITH_KERNEL_DECLARE(map_less_f32, pith__map2_fn)
PITH_KERNEL_DECLARE(map_less_equal_f32, pith__map2_fn)

#endif
