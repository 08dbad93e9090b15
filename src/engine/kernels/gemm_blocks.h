/* gemm_blocks.h - GEMM of 8-bit activations by weights of 4 or 8 bits, both with a scale for every
 * block of k.
 *
 * Definition (all levels, all blockings). k is cut into blocks. With z the zero points of b, s an
 * exact integer and one accumulator per element that starts at +0, for ascending blocks t:
 *   s = sum over k in block t of a[i, k] * (b[k, j] - z[t, j])
 *   c[i, j] = fma((float)s * a_scale[i, t], b_scale[t, j], c[i, j])
 * The bias, if there is one, is added last. With the zero point's part known for each row, b stays
 * unsigned:
 *   s = (sum of a[i, k] * b[k, j]) + z[t, j] * -(sum of a[i, k])
 *
 * A row of a is a record per block: int32 `start`, `block` int8, float scale. start is -(sum of the
 * int8), times z if z is the same for all of b. The last block is filled up with zeros.
 *
 * b is packed in panels of 16 columns, the last one filled up with zeros. A panel has for each
 * block its weights and 16 scales; after the last block, if b has zero points of its own, 16 bytes
 * for each block; and it fills up 64 bytes. Weights lie in groups of 64 bytes, byte 4 * j + k mod 4
 * for column j. With 8 bits a group is 4 k. With 4 bits it is 8 k: the lower halves of its bytes
 * are the first four. The layout is the same for every level. */
#ifndef PITH_ENGINE_KERNELS_GEMM_BLOCKS_H
#define PITH_ENGINE_KERNELS_GEMM_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kernels/gemm.h"

/* Blocks have a power of two between these of k, so that sums fit 32 bits. */
enum { PITH_BLOCK_LEAST = 16, PITH_BLOCK_MOST = 256 };

typedef struct pith__blocks_form {
    int64_t k, blocks; /* blocks: k / block, rounded up */
    int32_t block;
    int32_t bits;  /* of b: 4 or 8 */
    int32_t zeros; /* 1: b has zero points of its own; 0: they are 2^(bits - 1) */
} pith__blocks_form;

/* Bytes of a row of a; of a block of a panel with its scales, and of a panel. */
static inline int64_t pith__blocks_row_bytes(const pith__blocks_form *f) {
    return f->blocks * (f->block + 8);
}
static inline int64_t pith__blocks_block_bytes(const pith__blocks_form *f) {
    return 2 * f->block * f->bits + 64;
}
static inline int64_t pith__blocks_panel_bytes(const pith__blocks_form *f) {
    return (f->blocks * (pith__blocks_block_bytes(f) + (f->zeros ? 16 : 0)) + 63) / 64 * 64;
}

/* Bytes of packed b with n columns, or -1 on overflow. */
int64_t pith__blocks_packed_size(const pith__blocks_form *f, int64_t n);

/* A panel's columns as they are stored for com.microsoft's MatMulNBits. */
typedef struct pith__blocks_columns {
    const uint8_t *b;     /* [columns][blocks][block * bits / 8], low bits first */
    const float *scale;   /* [columns][blocks] */
    const uint8_t *zeros; /* [columns][(blocks * bits + 7) / 8], low bits first; used if the form
                             has zeros */
    int64_t columns;      /* 1 to 16 */
} pith__blocks_columns;
void pith__blocks_pack_panel(void *panel, const pith__blocks_form *f,
                             const pith__blocks_columns *from);

/* Quantises rows of f32 to rows of a. For each block:
 *   scale = max |x| / 127,  q = round(x * (127 / max |x|)), the product rounded to f32 first; ties
 *                           to even
 * (as ONNX Runtime's kernels do it). A block below 2^-100 gets scale 0 and zeros; one with a number
 * that is not finite, scale NaN and zeros, so that the results of its row are NaN. */
typedef struct pith__quantize_blocks {
    const float *x; /* [rows, k], row stride ldx */
    void *q;        /* [rows], row stride pith__blocks_row_bytes; 4-byte aligned */
    const pith__blocks_form *form;
    int64_t rows, ldx;
} pith__quantize_blocks;
typedef void pith__quantize_blocks_fn(const pith__quantize_blocks *a);
PITH_KERNEL_DECLARE(quantize_blocks_i8, pith__quantize_blocks_fn) /* family "quantize_blocks" */

typedef struct pith__gemm_blocks {
    const void *a;     /* [m] rows */
    const void *b;     /* packed, 64-byte aligned */
    float *c;          /* [m, n], row stride ldc */
    const float *bias; /* [n] or NULL */
    const pith__blocks_form *form;
    int64_t n, ldc;
} pith__gemm_blocks;

/* Rows [m0, m1), columns [n0, n1) with n0 a multiple of 16, as pith__gemm_f32_fn. */
typedef void pith__gemm_blocks_fn(const pith__gemm_blocks *g, int64_t m0, int64_t m1, int64_t n0,
                                  int64_t n1);
PITH_KERNEL_DECLARE(gemm_blocks_u8, pith__gemm_blocks_fn) /* family "gemm_blocks" */
/* family "gemm_blocks_vnni": needs AVX512_VNNI or AVX_VNNI on its level */
PITH_KERNEL_DECLARE(gemm_blocks_vnni_u8, pith__gemm_blocks_fn)

/* Returns the fastest kernel that this processor can run at the level. *speed is set to its speed
 * as a multiple of f32's, roughly. */
pith__gemm_blocks_fn *pith__gemm_blocks_find(int *speed, pith__isa isa);

#endif
