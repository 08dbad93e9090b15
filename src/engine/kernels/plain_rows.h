/* plain_rows.h - functions of whole rows in plain C, for the types that norm.h does not have. */
#ifndef PITH_ENGINE_KERNELS_PLAIN_ROWS_H
#define PITH_ENGINE_KERNELS_PLAIN_ROWS_H

#include <stdint.h>

#include "engine/kernels/kernel.h"

/* rows rows of n contiguous elements; y may be x. Families "softmax", "log_softmax", "hardmax" (1
 * at the first largest). */
typedef void pith__row_f64_fn(const double *x, double *y, int64_t rows, int64_t n);

/* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, as pith__layer_norm in norm.h; family
 * "layer_norm"; "rms_norm" is without mean and beta. gamma, beta, mean_out and inv_out may be
 * NULL. */
typedef struct pith__norm_f64 {
    const double *x, *gamma, *beta;
    double *y, *mean_out, *inv_out;
    int64_t rows, n;
    double epsilon;
} pith__norm_f64;
typedef void pith__norm_f64_fn(const pith__norm_f64 *a);

#endif
