/* quantized_error.h - how much worse a matmul's results become by its rounded weight, on rows that
 * it gets. */
#ifndef PITH_FORMATS_EXPORT_QUANTIZED_ERROR_H
#define PITH_FORMATS_EXPORT_QUANTIZED_ERROR_H

#include "formats/export/quantized_weights.h"

/* Sets *error to the sum of squared differences of x w, for rows x as the form quantises them and
 * the rounded weight, to the sum of squares of x w. rows: [count, k]; with count 0, and for tables,
 * the same of the weight's own numbers. Sums are in a fixed order. Returns false if memory is
 * out. */
bool pith__quantized_error(double *error, const pith__quantized *q, size_t weight,
                           const float *rows, int64_t count, pith__arena *scratch);

#endif
