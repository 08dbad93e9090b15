/* quantized_smooth.h - channels of a matmul's inputs that are much larger than others, brought
 * nearer to them before the inputs are quantised: x w = (x / s) (s w), s a number per channel. */
#ifndef PITH_FORMATS_EXPORT_QUANTIZED_SMOOTH_H
#define PITH_FORMATS_EXPORT_QUANTIZED_SMOOTH_H

#include "formats/export/quantized_weights.h"

/* Rounds this weight and all others that multiply the same inputs, with such numbers if their
 * errors on the rows are smaller then (quantized_error.h). For the kind PITH_QUANTIZED_ROWS. rows:
 * [count, k], at least one. Returns false if memory is out. Source of s: Xiao et al., "SmoothQuant"
 * (2022), with alpha 0.5. */
bool pith__quantized_smooth(pith__quantized *q, size_t weight, const float *rows, int64_t count,
                            pith__arena *scratch);

#endif
