/* rotary.h - rotary position embedding: the heads of one row are rotated by the angles of its
 * position. */
#ifndef PITH_ENGINE_KERNELS_ROTARY_H
#define PITH_ENGINE_KERNELS_ROTARY_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* A pair (a, b) with the angle's cosine and sine becomes (a cos - b sin, b cos + a sin); products
 * and sum are rounded one by one. A pair is (i, i + size / 2) or, interleaved, (2i, 2i + 1). cosine
 * and sine hold `size` numbers, one per element, or with per_pair size / 2. size is even; x and y
 * are not the same memory. */
typedef struct pith__rotary {
    const float *x, *cosine, *sine;
    float *y;
    int64_t heads, size, x_pitch, y_pitch; /* pitch: floats from head to head */
    int32_t interleaved, per_pair;
} pith__rotary;

typedef void pith__rotary_f32_fn(const pith__rotary *a);
PITH_KERNEL_DECLARE(rotary_f32, pith__rotary_f32_fn) /* family "rotary" */

#endif
