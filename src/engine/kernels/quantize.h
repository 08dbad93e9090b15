/* quantize.h - quantising f32: weights per column and activations per row for the GEMM of
 * gemm_int8.h, and embedding tables. Rounds to nearest, ties to even; numbers must be finite. */
#ifndef PITH_ENGINE_KERNELS_QUANTIZE_H
#define PITH_ENGINE_KERNELS_QUANTIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stop.h"
#include "engine/kernels/gemm_int8.h"

/* Quantises rows to u8, with one scale and one zero point per row, so that 0 is exact. With A =
 * PITH_NARROW_A:
 *   scale = (max(range, 0) - min(range, 0)) / (A - 1/2)
 *   q = clamp(round(x * (1 / scale)) + zero, 0, A)
 * Transformers have channels with outliers. The range is therefore that of the row without its
 * PITH_I8_EXTRAS elements farthest from 0, but at least a hundredth of the farthest one. extra
 * holds what q of the outliers lacks. Outliers are looked for only among the two largest and the
 * two smallest of elements l, l + 16, … for each l < 16; any other one stays in the range. A row
 * without range gets scale 0 and zeros. */
typedef struct pith__quantize_rows {
    const float *x;        /* [rows, n], row stride ldx */
    uint8_t *q;            /* [rows, n], row stride ldq */
    float *scale;          /* [rows] */
    int32_t *zero;         /* [rows] */
    pith__i8_extra *extra; /* [rows, PITH_I8_EXTRAS] */
    int64_t rows, n, ldx, ldq;
} pith__quantize_rows;
typedef void pith__quantize_rows_fn(const pith__quantize_rows *a);
PITH_KERNEL_DECLARE(quantize_rows_u8, pith__quantize_rows_fn) /* family "quantize_rows" */

/* The statistics of the rows x [m, k] that a matmul receives, as a factor of their Gram matrix x^T
 * x. With rows and columns in this order, the matrix is U^T D U, where D is diagonal and U has 1 on
 * its diagonal. */
typedef struct pith__factor {
    const float *u;       /* the upper triangle of pith__unit_factor_fn, rows pith__factor_stride(k)
                             apart */
    const int32_t *order; /* [k] */
} pith__factor;

/* Quantises a panel [k][16] of f32 (pith__gemm_pack_f32_fn) to a narrow panel of
 * pith__gemm_pack_i8_fn. scale[j] is the smallest that keeps |b| within 127 and the rounded groups
 * of four within the bound of `narrow`. If factor is NULL, weights are rounded to nearest. Else
 * they are rounded with GPTQ, one at a time from the last of the order to the first: U compensates
 * the error of each one in the weights not yet rounded, so that the error of x b stays small
 * (Frantar et al. 2023, in the form of Babai's nearest plane). work has 16 * k floats, used with a
 * factor. */
typedef void pith__quantize_panel_fn(void *packed, float *scale, const float *panel, int64_t k,
                                     const pith__factor *factor, float *work);
PITH_KERNEL_DECLARE(quantize_panel_i8, pith__quantize_panel_fn) /* family "quantize_panel" */

/* Factors a = U^T D U in place. a is symmetric, [n, n], with row stride pith__factor_stride(n) and
 * zeros in the padding. Its upper triangle is read and replaced by U, with D on the diagonal. The
 * lower triangle is scratch. Returns false if a is not finite or not safely positive definite.
 * column has n floats. If the call must end, which stop (NULL: it never must) then goes on to say,
 * a is anything. */
typedef bool pith__unit_factor_fn(float *a, int64_t n, float *column, pith__stop *stop);
PITH_KERNEL_DECLARE(unit_factor_f32, pith__unit_factor_fn) /* family "unit_factor" */
static inline int64_t pith__factor_stride(int64_t n) { return (n + 15) / 16 * 16; }

/* Quantise dense rows [rows, n] to i8 within +-127, with one scale per PITH_TABLE_GROUP elements of
 * a row (the last group may be shorter); and convert one row back: y = q * scale. */
#define PITH_TABLE_GROUP 32
/* Returns the number of scales per row. */
static inline int64_t pith__table_groups(int64_t n) {
    return n / PITH_TABLE_GROUP + (n % PITH_TABLE_GROUP != 0);
}
typedef void pith__quantize_table_fn(const float *x, int8_t *q, float *scale, int64_t rows,
                                     int64_t n);
typedef void pith__dequantize_row_fn(const int8_t *q, const float *scale, float *y, int64_t n);
PITH_KERNEL_DECLARE(quantize_table_i8, pith__quantize_table_fn) /* family "quantize_table" */
PITH_KERNEL_DECLARE(dequantize_row_i8, pith__dequantize_row_fn) /* family "dequantize_row" */

#endif
