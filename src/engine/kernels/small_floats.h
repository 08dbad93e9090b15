/* small_floats.h - f32 to and from numbers of 8 and 16 bits. */
#ifndef PITH_ENGINE_KERNELS_SMALL_FLOATS_H
#define PITH_ENGINE_KERNELS_SMALL_FLOATS_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* f16 to f32, exactly, and back, rounded to nearest with ties to even. Families "widen", "narrow".
 */
typedef void pith__widen_f16_fn(const uint16_t *x, float *y, size_t n);
typedef void pith__narrow_f16_fn(const float *x, uint16_t *y, size_t n);
PITH_KERNEL_DECLARE(widen_f16, pith__widen_f16_fn)
PITH_KERNEL_DECLARE(narrow_f16, pith__narrow_f16_fn)

/* y = round(min(max(x / scale, low), high)) + zero, its low byte; ties to even. A NaN becomes low.
 * low, high and zero are integers of at most 255. Family "quantize". */
typedef void pith__quantize_fn(const float *x, uint8_t *y, size_t n, float scale, float low,
                               float high, int32_t zero);
PITH_KERNEL_DECLARE(quantize_u8, pith__quantize_fn)

/* Sums of bytes with a scale and a zero point each: y = quantize((a - zero) * scale + (b - zero) *
 * scale). flip is 0x80 where bytes have a sign, and their zero is 128 more then. scale, low, high
 * and zero are those of pith__quantize_fn. y may be a or b. Family "quantized_add". */
typedef struct pith__quantized_term {
    const uint8_t *x;
    float scale, zero;
    int32_t flip;
} pith__quantized_term;
typedef struct pith__quantized_sum {
    pith__quantized_term a, b;
    uint8_t *y;
    float scale, low, high;
    int32_t zero;
} pith__quantized_sum;
typedef void pith__quantized_add_fn(const pith__quantized_sum *s, size_t first, size_t n);
PITH_KERNEL_DECLARE(quantized_add_u8, pith__quantized_add_fn)

/* y = (x - zero) * scale, bytes with or without sign. Family "dequantize". */
typedef void pith__dequantize_fn(const uint8_t *x, float *y, size_t n, float scale, float zero);
PITH_KERNEL_DECLARE(dequantize_u8, pith__dequantize_fn)
PITH_KERNEL_DECLARE(dequantize_i8, pith__dequantize_fn)

/* Widens *low and *high to hold all of x, NaN aside. Family "range". */
typedef void pith__range_fn(const float *x, size_t n, float *low, float *high);
PITH_KERNEL_DECLARE(range_f32, pith__range_fn)

/* Scale and zero point (0 to 255) of n numbers as unsigned bytes, from their range and 0, as
 * DynamicQuantizeLinear has them. Quantising then takes low = -zero and high = 255 - zero. */
void pith__dynamic_scale(float *scale, float *zero, const float *x, size_t n,
                         pith__range_fn *range);

#endif
