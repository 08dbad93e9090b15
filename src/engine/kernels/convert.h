/* convert.h - element types into each other, by the rules of ONNX Cast.
 *
 * float → integer truncates towards zero (out of range and NaN give the smallest number of the 32-
 * or 64-bit type it passes through, narrower types keep the low bits); integer → integer keeps the
 * low bits; anything → bool is != 0; float → float rounds to nearest even; float → 8-bit float
 * saturates or not. Strings and complex numbers are left out. Packed types (4 and 2 bits) are
 * addressed by element index. */
#ifndef PITH_ENGINE_KERNELS_CONVERT_H
#define PITH_ENGINE_KERNELS_CONVERT_H

#include "engine/kernels/kernel.h"

bool pith__convert_known(int from, int to);

/* y[y_first + i] = x[x_first + i] for i < n; zeros for types that are not known. A packed y_first
 * must begin a byte unless the bytes it shares belong to the same caller. y and x must not overlap,
 * unless the types are equally wide and y == x. */
void pith__convert(void *y, int to, int64_t y_first, const void *x, int from, int64_t x_first,
                   int64_t n, bool saturate);

/* f32 → 8-bit exponent (e8m0). mode: 0 nearest, 1 up, 2 down. Source: ONNX Cast, attribute
 * round_mode. */
uint8_t pith__convert_e8m0(float x, int mode, bool saturate);

#endif
