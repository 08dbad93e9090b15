/* unary.h - y[i] = f(x[i]) over n floats; y may be x. One table row "<name>", f32 each.
 *
 * Largest error over all floats against a high-precision reference, in units in the last place of
 * the true result: see vmath.h. relu(NaN) is NaN. */
#ifndef PITH_ENGINE_KERNELS_UNARY_H
#define PITH_ENGINE_KERNELS_UNARY_H

#include "engine/kernels/kernel.h"

typedef void pith__unary_f32_fn(const float *x, float *y, size_t n);

PITH_KERNEL_DECLARE(abs_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(cos_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(erf_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(exp_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(gelu_f32, pith__unary_f32_fn)        /* x / 2 * (1 + erf(x / sqrt 2)) */
PITH_KERNEL_DECLARE(gelu_coarse_f32, pith__unary_f32_fn) /* GELU after int8 matmuls, error 1.3e-4 */
/* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
PITH_KERNEL_DECLARE(gelu_tanh_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(log_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(mish_f32, pith__unary_f32_fn) /* x tanh(log(1 + e^x)) */
PITH_KERNEL_DECLARE(neg_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(quick_gelu_f32, pith__unary_f32_fn) /* x * sigmoid(1.702 x) */
PITH_KERNEL_DECLARE(reciprocal_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(relu_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(sigmoid_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(silu_f32, pith__unary_f32_fn) /* x * sigmoid(x) */
PITH_KERNEL_DECLARE(sin_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(softplus_f32, pith__unary_f32_fn) /* log(1 + e^x) */
PITH_KERNEL_DECLARE(sqrt_f32, pith__unary_f32_fn)
PITH_KERNEL_DECLARE(tanh_f32, pith__unary_f32_fn)

#endif
