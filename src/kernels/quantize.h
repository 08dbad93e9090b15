/* quantize.h - f32 to integers with scales: for the products of gemm_int8.h weights by column and activations by row,
 * and tables of looked-up rows. Rounds to nearest, ties to even; numbers must be finite. */
#ifndef PITH_KERNELS_QUANTIZE_H
#define PITH_KERNELS_QUANTIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/gemm_int8.h"

/* Rows to u8 with a scale and a zero point each, 0 being exact: scale = (max(range, 0) - min(range, 0)) / (A - 1/2),
 * q = clamp(round(x * (1 / scale)) + zero, 0, A) with A = PITH_NARROW_A. Transformers have channels far beyond all
 * others, so the range is that of the row without the PITH_I8_EXTRAS elements farthest from 0, stretched to a hundredth
 * of the farthest at least; extra is what q of those outside lacks. They are looked for among the two largest and the
 * two least of elements l, l + 16, … for each l < 16 only; what is beyond them stays in the range. A row without range
 * gets scale 0 and zeros. */
typedef struct pith_quantize_rows {
    const float *x;       /* [rows, n], row stride ldx */
    uint8_t *q;           /* [rows, n], row stride ldq */
    float *scale;         /* [rows] */
    int32_t *zero;        /* [rows] */
    pith_i8_extra *extra; /* [rows, PITH_I8_EXTRAS] */
    int64_t rows, n, ldx, ldq;
} pith_quantize_rows;
typedef void pith_quantize_rows_fn(const pith_quantize_rows *a);
PITH_KERNEL_DECLARE(quantize_rows_u8, pith_quantize_rows_fn) /* family "quantize_rows" */

/* What rows x [m, k] a product will meet, as their gram matrix x^T x tells it: with its rows and columns in this order
 * it is U^T D U, D being diagonal and U 1 on the diagonal. */
typedef struct pith_factor {
    const float *u;       /* the upper triangle of pith_unit_factor_fn, rows pith_factor_stride(k) apart */
    const int32_t *order; /* [k] */
} pith_factor;

/* A panel [k][16] of f32 (pith_gemm_pack_f32_fn) to one of pith_gemm_pack_i8_fn that is narrow: scale[j] is the least
 * that keeps |b| within 127 and the fours that narrow speaks of, each rounded, within their bound.
 * factor NULL: every weight goes to the nearest step. Else from the last of the order to the first, each after U has
 * made good in it what rounding those before it changed: the least error of x b, one weight after the other (GPTQ,
 * Frantar et al. 2023, in the form of Babai's nearest plane). work: 16 * k floats; used with factor. */
typedef void pith_quantize_panel_fn(void *packed, float *scale, const float *panel, int64_t k,
                                    const pith_factor *factor, float *work);
PITH_KERNEL_DECLARE(quantize_panel_i8, pith_quantize_panel_fn) /* family "quantize_panel" */

/* a = U^T D U, in place: a is symmetric, [n, n] with rows pith_factor_stride(n) apart, zeros between them; of it the
 * upper triangle is read and U written, with D in the diagonal's place. The lower triangle is scratch. False: a is not
 * positive definite by far enough, or not finite. column: n floats. */
typedef bool pith_unit_factor_fn(float *a, int64_t n, float *column);
PITH_KERNEL_DECLARE(unit_factor_f32, pith_unit_factor_fn) /* family "unit_factor" */
static inline int64_t pith_factor_stride(int64_t n) { return (n + 15) / 16 * 16; }

/* Rows [rows, n], dense, to i8 within +-127 with a scale for every PITH_TABLE_GROUP elements of a row (the last group
 * may be short), and one row back: y = q * scale. */
#define PITH_TABLE_GROUP 32
/* Scales of a row. */
static inline int64_t pith_table_groups(int64_t n) { return n / PITH_TABLE_GROUP + (n % PITH_TABLE_GROUP != 0); }
typedef void pith_quantize_table_fn(const float *x, int8_t *q, float *scale, int64_t rows, int64_t n);
typedef void pith_dequantize_row_fn(const int8_t *q, const float *scale, float *y, int64_t n);
PITH_KERNEL_DECLARE(quantize_table_i8, pith_quantize_table_fn) /* family "quantize_table" */
PITH_KERNEL_DECLARE(dequantize_row_i8, pith_dequantize_row_fn) /* family "dequantize_row" */

#endif
