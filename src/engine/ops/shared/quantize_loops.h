/* quantize_loops.h - the kernels of the common case of quantising: f32 and 8 bits, with one scale
 * and one zero point. */
#ifndef PITH_ENGINE_OPS_SHARED_QUANTIZE_LOOPS_H
#define PITH_ENGINE_OPS_SHARED_QUANTIZE_LOOPS_H

#include "engine/kernels/small_floats.h"
#include "engine/ops/shared/infer_shapes.h"

/* quantize is NULL if this build does not have all of them. */
typedef struct pith__quantize_loops {
    pith__quantize_fn *quantize;
    pith__dequantize_fn *dequantize_u8, *dequantize_i8;
    pith__range_fn *range; /* the smallest and the largest number, for a scale of its own */
} pith__quantize_loops;

/* *out, which is also the node's state. */
pith_status pith__quantize_loops_find(pith__prepare *c, pith__quantize_loops **out);
/* The prepare function of operators that cannot do without them. */
pith_status pith__quantize_loops_prepare(pith__prepare *c);

#endif
