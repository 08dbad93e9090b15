/* binary.h - y[i] = f(a[i * as], b[i * bs]) with strides 0 (one element for all) or 1; y may be an
 * operand of stride 1. min and max give NaN where either operand is NaN. The signature is that of
 * all binary loops, whatever the type. */
#ifndef PITH_ENGINE_KERNELS_BINARY_H
#define PITH_ENGINE_KERNELS_BINARY_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

typedef void pith__binary_fn(void *y, const void *a, const void *b, int64_t n, int as, int bs);

PITH_KERNEL_DECLARE(add_f32, pith__binary_fn)
PITH_KERNEL_DECLARE(div_f32, pith__binary_fn)
PITH_KERNEL_DECLARE(max_f32, pith__binary_fn)
PITH_KERNEL_DECLARE(min_f32, pith__binary_fn)
PITH_KERNEL_DECLARE(mul_f32, pith__binary_fn)
PITH_KERNEL_DECLARE(sub_f32, pith__binary_fn)

#endif
