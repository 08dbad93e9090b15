/* cast.h - numbers of one type into another, by the rules of convert.h: the pairs that models use a
 * lot. */
#ifndef PITH_ENGINE_KERNELS_CAST_H
#define PITH_ENGINE_KERNELS_CAST_H

#include "engine/kernels/kernel.h"

/* The n numbers at x become numbers of type `to` at y, which may be x where the types are equally
 * wide. False, and nothing is done: the pair has no loop. The table's dtype is that of x. */
typedef bool pith__cast_fn(void *y, int to, const void *x, size_t n);
PITH_KERNEL_DECLARE(cast_f32, pith__cast_fn)
PITH_KERNEL_DECLARE(cast_f64, pith__cast_fn)
PITH_KERNEL_DECLARE(cast_i32, pith__cast_fn)
PITH_KERNEL_DECLARE(cast_i64, pith__cast_fn)
PITH_KERNEL_DECLARE(cast_u8, pith__cast_fn)
PITH_KERNEL_DECLARE(cast_i8, pith__cast_fn)

#endif
