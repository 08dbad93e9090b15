/* maps.h - elementwise loops in plain C, for every type the tuned families (unary.h, binary.h) do not have.
 *
 * One signature serves all types of a family, so that an operator needs only the family's name. Strides count elements
 * and are 0 (the same element again) or 1. y may be an operand that has stride 1. Integer division by zero gives 0, the
 * smallest number divided by -1 gives itself, shifts by the width or more give 0: never a trap. Transcendental
 * functions are libm's in double; f32 and smaller go through it and are rounded. */
#ifndef PITH_KERNELS_MAPS_H
#define PITH_KERNELS_MAPS_H

#include "kernels/binary.h"

/* y[i] = f(x[i]); p: the operator's parameters (alpha, …), see map.c. */
typedef void pith_map_fn(void *y, const void *x, int64_t n, const double *p);
/* The same with two operands, as in binary.h. Comparisons write bool. */
typedef pith_binary_fn pith_map2_fn;

#endif
